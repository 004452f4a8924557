// expect: 1
#include "construct.h"

__global__ void k(int *out) { atomicCAS(out, 0, 1); }

int main() { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
