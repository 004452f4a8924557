// expect: 1 1 2 6
#include "construct.h"

__device__ int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }
__global__ void k(int *out) { out[threadIdx.x] = factorial(threadIdx.x); }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
