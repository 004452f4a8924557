// expect: 1 -1 0 0
#include "construct.h"

__global__ void k(int *out) { out[0] = __umulhi(0x80000000u, 2), out[1] = __mulhi(-1, 1); }

int main() { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
