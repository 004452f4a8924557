// expect: 67305985 0 0 0
#include "construct.h"

__global__ void k(int *out) { out[0] = __byte_perm(0x01020304, 0, 0x0123); }

int main() { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
