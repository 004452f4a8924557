// expect: 5
#include "construct.h"

#include <cuda/pipeline>
__global__ void k(int *out, const int *in) {
    __shared__ int tile[8];
    auto pipe = cuda::make_pipeline();
    for (int i = 0; i < 5; i++) {
        pipe.producer_acquire();
        cuda::memcpy_async(&tile[i], &in[i], sizeof(int), pipe);
        pipe.producer_commit();
    }
    cuda::pipeline_consumer_wait_prior<0>(pipe);
    out[0] = tile[4];
}

int main() { return show<int>(1, [&](int *out) { int h[8] = {1, 2, 3, 4, 5, 6, 7, 8}, *in; cudaMalloc(&in, 32); cudaMemcpy(in, h, 32, cudaMemcpyHostToDevice); k<<<1, 1>>>(out, in); cudaFree(in); }); }
