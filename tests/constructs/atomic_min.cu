// expect: -3
#include "construct.h"

__global__ void k(int *out) { atomicMin(out, -(int)threadIdx.x); }

int main() { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
