// expect: 0 1 10 11
#include "construct.h"

__global__ void k(int *out) { out[threadIdx.y * blockDim.x + threadIdx.x] = 10 * threadIdx.y + threadIdx.x; }

int main() { return show<int>(4, [&](int *out) { k<<<1, dim3(2, 2)>>>(out); }); }
