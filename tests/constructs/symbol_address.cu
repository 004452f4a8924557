// expect: 8 8 8 8
#include "construct.h"

__device__ int four[4];
__global__ void fill(int *x) { x[threadIdx.x] = 8; }
__global__ void k(int *out) { out[threadIdx.x] = four[threadIdx.x]; }

int main() { return show<int>(4, [&](int *out) { int *x; cudaGetSymbolAddress((void **)&x, four); fill<<<1, 4>>>(x); k<<<1, 4>>>(out); }); }
