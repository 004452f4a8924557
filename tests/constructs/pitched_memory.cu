// expect: 5 5 5 5
#include "construct.h"

__global__ void k(int *out, const char *rows, size_t pitch) { out[threadIdx.x] = ((const int *)(rows + (threadIdx.x / 2) * pitch))[threadIdx.x % 2]; }

int main() { return show<int>(4, [&](int *out) { char *rows; size_t pitch; cudaMallocPitch(&rows, &pitch, 8, 2); int h[4] = {5, 5, 5, 5}; cudaMemcpy2D(rows, pitch, h, 8, 8, 2, cudaMemcpyHostToDevice); k<<<1, 4>>>(out, rows, pitch); cudaFree(rows); }); }
