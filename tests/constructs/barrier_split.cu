// expect: 28 28 28 28 28 28 28 28
#include "construct.h"

#include <cooperative_groups.h>
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init
namespace cg = cooperative_groups;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;
__global__ void k(int *out) {
    __shared__ block_barrier all;
    __shared__ int sum;
    cg::thread_block block = cg::this_thread_block();
    if (block.thread_rank() == 0) {
        init(&all, block.size());
        sum = 0;
    }
    block.sync();
    atomicAdd(&sum, (int)threadIdx.x);
    block_barrier::arrival_token token = all.arrive();
    int own = 0; // work that needs nobody else
    all.wait(std::move(token));
    out[threadIdx.x] = sum + own;
}

int main() { return show<int>(8, [&](int *out) { k<<<1, 8>>>(out); }); }
