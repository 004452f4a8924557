#include "construct.h"
#include <cooperative_groups.h>

using namespace cooperative_groups;

/* The library's reduce() and its operations come with cooperative_groups/reduce.h only. */
template <typename Group, typename T, typename F> __device__ T reduce(const Group &group, T value, F operation) {
    return operation(group.size(), value);
}
struct plus { __device__ int operator()(int a, int b) const { return a + b; } };
__global__ void k(int *out) {
    thread_block_tile<4> tile = tiled_partition<4>(this_thread_block());
    out[threadIdx.x] = reduce(tile, 6 + 5 * (int)threadIdx.x, plus());
}
CONSTRUCT(groups_own_reduce, "10 15 20 25") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
