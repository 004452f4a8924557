// expect: 1 1 1 1
#include "construct.h"

#ifndef __CUDACC__
#error not compiled as CUDA
#endif
__global__ void k(int *out) { out[threadIdx.x] = 1; }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
