// expect: 4 3 2 1
#include "construct.h"

__device__ int table[4] = {1, 2, 3, 4};
__global__ void k(int *out) { out[threadIdx.x] = table[3 - threadIdx.x]; }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
