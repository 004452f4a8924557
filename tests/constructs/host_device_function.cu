// expect: 0 1 4 9
#include "construct.h"

__host__ __device__ int square(int x) { return x * x; }
__global__ void k(int *out) { out[threadIdx.x] = square(threadIdx.x); }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
