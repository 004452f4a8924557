#include "construct.h"
#include <cooperative_groups.h>

namespace active_mask {
namespace cg = cooperative_groups;

/* One atomic addition for all lanes that took the branch. */
__device__ void count(int *sum) {
    unsigned active = __activemask();
    int leader = __ffs(active) - 1, before = 0;
    if ((int)(threadIdx.x % 32) == leader) before = atomicAdd(sum, __popc(active));
    before = __shfl_sync(active, before, leader);
}

__global__ void k(const int *in, int *out) {
    int t = threadIdx.x;
    if (in[t] % 3 == 0) count(out);
    if (in[t] % 3 == 0) {
        cg::coalesced_group group = cg::coalesced_threads();
        atomicAdd(out + 1, group.thread_rank() == 0 ? 2 * (int)group.size() : 0);
    }
    __syncwarp();
    for (int round = 0; round < 2; round++) /* the last ten lanes leave the loop after the first round */
        if (round < (t < 22 ? 2 : 1)) count(out + 2 + round);
}
CONSTRUCT(active_mask, "11 22 32 22") {
    int host[32], *in = nullptr;
    for (int i = 0; i < 32; i++) host[i] = i;
    must(cudaMalloc(&in, sizeof host), "cudaMalloc");
    must(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice), "cudaMemcpy");
    return show<int>(4, [&](int *out) { k<<<1, 32>>>(in, out); });
}
} // namespace active_mask

namespace any_and_all {
__global__ void k(int *out) {
    int any = __any_sync(~0u, threadIdx.x == 5), all = __all_sync(~0u, threadIdx.x == 5);
    if (threadIdx.x == 0) out[0] = any, out[1] = all, out[2] = 1;
}
CONSTRUCT(any_and_all, "1 0 1 0") { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace any_and_all

namespace ballots {
__global__ void k(int *out) {
    unsigned odd = __ballot_sync(~0u, threadIdx.x % 2 == 0);
    if (threadIdx.x < 4) out[threadIdx.x] = odd & 0xffff;
}
CONSTRUCT(ballots, "21845 21845 21845 21845") { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace ballots

namespace match_any {
__global__ void k(int *out) {
    unsigned same = __match_any_sync(~0u, threadIdx.x % 2);
    if (threadIdx.x < 4) out[threadIdx.x] = same & 15;
}
CONSTRUCT(match_any, "5 10 5 10") { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace match_any

namespace reduce_sync {
__global__ void k(int *out) {
    unsigned t = threadIdx.x, sum = __reduce_add_sync(~0u, t), most = __reduce_max_sync(~0u, t), least = __reduce_min_sync(~0u, t);
    if (t == 0) out[0] = sum, out[1] = most, out[2] = least, out[3] = most;
}
CONSTRUCT(reduce_sync, "496 31 0 31") { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace reduce_sync

namespace shuffle_double {
__global__ void k(double *out) {
    double x = __shfl_sync(~0u, threadIdx.x == 0 ? 1.5 : 0.0, 0);
    if (threadIdx.x < 4) out[threadIdx.x] = x;
}
CONSTRUCT(shuffle_double, "1.5 1.5 1.5 1.5") { return show<double>(4, [&](double *out) { k<<<1, 32>>>(out); }); }
} // namespace shuffle_double

namespace shuffle_down {
__global__ void k(int *out) {
    int sum = threadIdx.x < 4 ? threadIdx.x : 0;
    for (int d = 2; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
    if (threadIdx.x < 4) out[threadIdx.x] = sum;
}
CONSTRUCT(shuffle_down, "6 6 5 3") { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace shuffle_down

namespace shuffle_up_width {
__global__ void k(int *out) {
    int other = __shfl_up_sync(~0u, (int)threadIdx.x, 1, 4);
    if (threadIdx.x < 4) out[threadIdx.x] = other;
}
CONSTRUCT(shuffle_up_width, "0 0 1 2") { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace shuffle_up_width

namespace shuffle_xor {
__global__ void k(int *out) {
    int other = __shfl_xor_sync(~0u, (int)threadIdx.x, 3);
    if (threadIdx.x < 4) out[threadIdx.x] = other;
}
CONSTRUCT(shuffle_xor, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace shuffle_xor

namespace warp_size {
__global__ void k(int *out) { out[threadIdx.x] = warpSize; }
CONSTRUCT(warp_size, "32 32 32 32") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace warp_size
