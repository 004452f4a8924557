// expect: 15
#include "construct.h"

__global__ void k(int *out) { atomicXor(out, 1 << threadIdx.x); }

int main() { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
