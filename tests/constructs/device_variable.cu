// expect: 5 6 0 0
#include "construct.h"

__device__ int counter = 5;
__global__ void k(int *out) { out[blockIdx.x] = atomicAdd(&counter, 1); }

int main() { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); k<<<1, 1>>>(out + 1); }); }
