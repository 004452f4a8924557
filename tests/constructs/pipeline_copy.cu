// expect: 4 3 2 1
#include "construct.h"

#include <cuda_pipeline.h>
__global__ void k(int *out, const int *in) {
    __shared__ int tile[4];
    __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[threadIdx.x] = tile[3 - threadIdx.x];
}

int main() { return show<int>(4, [&](int *out) { int h[4] = {1, 2, 3, 4}, *in; cudaMalloc(&in, 16); cudaMemcpy(in, h, 16, cudaMemcpyHostToDevice); k<<<1, 4>>>(out, in); cudaFree(in); }); }
