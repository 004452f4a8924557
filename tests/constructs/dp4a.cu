// expect: 0 70 -6 70
#include "construct.h"

#include <sm_61_intrinsics.h>
__global__ void k(int *out) { // 1 2 3 4 times 5 6 7 8, with and without signs
    out[0] = __dp4a(0x0403fe01, 0x0807f605, 0) - 78; // 5 + 20 + 21 + 32
    out[1] = (int)__dp4a(0x04030201u, 0x08070605u, 0u);
    out[2] = __dp4a(make_char4(1, -2, 3, 4), make_char4(5, -10, 7, 8), -84);
    out[3] = (int)__dp4a(make_uchar4(1, 2, 3, 4), make_uchar4(5, 6, 7, 8), 0u);
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
