// expect: 1 1 1 1
#include "construct.h"

__global__ void k(int *out) {
    extern __shared__ int big[];
    big[15000 + threadIdx.x] = 1;
    out[threadIdx.x] = big[15000 + threadIdx.x];
}

int main() { return show<int>(4, [&](int *out) { cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 64000); k<<<1, 4, 64000>>>(out); }); }
