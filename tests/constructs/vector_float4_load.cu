// expect: 1 2 3 4
#include "construct.h"

__global__ void k(float *out, const float4 *in) { *(float4 *)out = *in; }

int main() { return show<float>(4, [&](float *out) { float h[4] = {1, 2, 3, 4}; float4 *in; cudaMalloc(&in, 16); cudaMemcpy(in, h, 16, cudaMemcpyHostToDevice); k<<<1, 1>>>(out, in); cudaFree(in); }); }
