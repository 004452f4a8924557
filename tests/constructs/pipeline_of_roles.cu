// expect: 1 2 3 4 5 6 7 8
#include "construct.h"

#include <cooperative_groups.h>
#include <cuda/pipeline>
#pragma nv_diag_suppress static_var_with_dynamic_init
__global__ void k(int *out, const int *in) { // the first warp copies, the second one uses
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ int tile[2];
    auto block = cooperative_groups::this_thread_block();
    bool produces = threadIdx.x < 32;
    auto role = produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    for (int i = 0; i < 8; i++) {
        if (produces) {
            pipe.producer_acquire();
            if (threadIdx.x == 0) cuda::memcpy_async(&tile[i % 2], &in[i], sizeof(int), pipe);
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            if (threadIdx.x == 40) out[i] = tile[i % 2];
            pipe.consumer_release();
        }
    }
}

int main() { return show<int>(8, [&](int *out) { int h[8] = {1, 2, 3, 4, 5, 6, 7, 8}, *in; cudaMalloc(&in, 32); cudaMemcpy(in, h, 32, cudaMemcpyHostToDevice); k<<<1, 64>>>(out, in); cudaFree(in); }); }
