// expect: 0
#include "construct.h"

__global__ void k(int *out) { atomicDec((unsigned *)out, 3); }

int main() { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
