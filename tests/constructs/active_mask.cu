// expect: 11 22 32 22
#include "construct.h"
#include <cooperative_groups.h>
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

int main() {
    int host[32], *in = nullptr;
    for (int i = 0; i < 32; i++) host[i] = i;
    must(cudaMalloc(&in, sizeof host), "cudaMalloc");
    must(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice), "cudaMemcpy");
    return show<int>(4, [&](int *out) { k<<<1, 32>>>(in, out); });
}
