// expect: 3 29 1 32
#include "construct.h"

__global__ void k(int *out) { out[0] = __popc(7), out[1] = __clz(7), out[2] = __ffs(7), out[3] = __popcll(0xffffffffull); }

int main() { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
