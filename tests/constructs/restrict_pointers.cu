// expect: 1 2 3 4
#include "construct.h"

__global__ void k(int *__restrict__ out, const int *__restrict__ in) { out[threadIdx.x] = in[threadIdx.x] + 1; }

int main() { return show<int>(4, [&](int *out) { int h[4] = {0, 1, 2, 3}, *in; cudaMalloc(&in, 16); cudaMemcpy(in, h, 16, cudaMemcpyHostToDevice); k<<<1, 4>>>(out, in); cudaFree(in); }); }
