// expect: 0 1 2 3
#include "construct.h"

__global__ void k(int *out, const int *in) { out[threadIdx.x] = __ldg(&in[threadIdx.x]); }

int main() { return show<int>(4, [&](int *out) { int h[4] = {0, 1, 2, 3}, *in; cudaMalloc((void **)&in, 16); cudaMemcpy(in, h, 16, cudaMemcpyHostToDevice); k<<<1, 4>>>(out, in); cudaFree(in); }); }
