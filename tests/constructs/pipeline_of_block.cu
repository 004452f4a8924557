// expect: 2 1 4 3 6 5 8 7
#include "construct.h"

#include <cooperative_groups.h>
#include <cuda/pipeline>
#pragma nv_diag_suppress static_var_with_dynamic_init
__global__ void k(int *out, const int *in) { // two threads, four batches of two, two stages
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ int tile[2][2];
    auto block = cooperative_groups::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int fetched = 0;
    for (int batch = 0; batch < 4; batch++) {
        for (; fetched < 4 && fetched < batch + 2; fetched++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, tile[fetched % 2], in + 2 * fetched, sizeof(int) * 2, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        out[2 * batch + threadIdx.x] = tile[batch % 2][1 - threadIdx.x];
        pipe.consumer_release();
    }
}

int main() { return show<int>(8, [&](int *out) { int h[8] = {1, 2, 3, 4, 5, 6, 7, 8}, *in; cudaMalloc(&in, 32); cudaMemcpy(in, h, 32, cudaMemcpyHostToDevice); k<<<1, 2>>>(out, in); cudaFree(in); }); }
