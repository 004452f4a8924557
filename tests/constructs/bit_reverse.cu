// expect: 1 2 0 0
#include "construct.h"

__global__ void k(int *out) { out[0] = __brev(0x80000000), out[1] = (int)(__brevll(0x4000000000000000ull)); }

int main() { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
