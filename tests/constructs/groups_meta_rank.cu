// expect: 0 0 1 1
#include "construct.h"

#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int *out) {
    auto pair = cg::tiled_partition<2>(cg::this_thread_block());
    out[threadIdx.x] = pair.meta_group_rank();
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
