// expect: 1 2 3 4
#include "construct.h"

__device__ __forceinline__ int next(int x) { return x + 1; }
__global__ void k(int *out) { out[threadIdx.x] = next(threadIdx.x); }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
