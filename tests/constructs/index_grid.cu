// expect: 0 1 2 3
#include "construct.h"

__global__ void k(int *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x * 2 + threadIdx.x; }

int main() { return show<int>(4, [&](int *out) { k<<<2, 2>>>(out); }); }
