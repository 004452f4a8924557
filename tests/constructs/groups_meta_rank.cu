// expect: 0 0 1 1 2 2 3 3 0 0 1 1 2 2 3 3
#include "construct.h"

#include <cooperative_groups.h>
namespace cg = cooperative_groups;
/* The tile's place in the block; and in a larger tile: 0, 1, 0, 1. */
__global__ void k(int *out) {
    auto pair = cg::tiled_partition<2>(cg::this_thread_block());
    auto in_four = cg::tiled_partition<2>(cg::tiled_partition<4>(cg::this_thread_block()));
    out[threadIdx.x] = pair.meta_group_rank();
    out[8 + threadIdx.x] = in_four.meta_group_rank() + 2 * (threadIdx.x / 4) * (in_four.meta_group_size() == 2);
}

int main() { return show<int>(16, [&](int *out) { k<<<1, 8>>>(out); }); }
