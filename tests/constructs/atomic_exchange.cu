// expect: 8
#include "construct.h"

__global__ void k(int *out) { atomicExch(out, 8); }

int main() { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
