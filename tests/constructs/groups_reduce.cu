// expect: 496
#include "construct.h"

#include <cooperative_groups/reduce.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int *out) {
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
    int sum = cg::reduce(warp, (int)threadIdx.x, cg::plus<int>());
    if (warp.thread_rank() == 0) *out = sum;
}

int main() { return show<int>(1, [&](int *out) { k<<<1, 32>>>(out); }); }
