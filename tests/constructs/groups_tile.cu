// expect: 6 6 6 6
#include "construct.h"

#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int *out) {
    auto tile = cg::tiled_partition<4>(cg::this_thread_block());
    int sum = tile.thread_rank();
    for (int d = tile.size() / 2; d > 0; d /= 2) sum += tile.shfl_xor(sum, d);
    out[threadIdx.x] = sum;
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
