// expect: 32 32 32 32
#include "construct.h"

__global__ void k(int *out) { out[threadIdx.x] = warpSize; }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
