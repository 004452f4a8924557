// expect: 1 1 2 2
#include "construct.h"

__global__ void k(int *out) { out[threadIdx.x] = 1; }
__global__ void k(int *out, float) { out[threadIdx.x + 2] = 2; }

int main() { return show<int>(4, [&](int *out) { k<<<1, 2>>>(out); k<<<1, 2>>>(out, 1.0f); }); }
