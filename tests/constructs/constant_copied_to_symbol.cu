// expect: 1 4 9 16
#include "construct.h"

__constant__ int table[4];
__global__ void k(int *out) { out[threadIdx.x] = table[threadIdx.x]; }

int main() { return show<int>(4, [&](int *out) { int h[4] = {1, 4, 9, 16}; cudaMemcpyToSymbol(table, h, sizeof h); k<<<1, 4>>>(out); }); }
