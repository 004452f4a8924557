// expect: 1 1 1 1
#include "construct.h"

__global__ void k(int *out, int n) { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = 1; }

int main() { return show<int>(4, [&](int *out) { k<<<1, 3>>>(out, 4); }); }
