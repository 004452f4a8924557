// expect: 10 10 10 10
#include "construct.h"

__global__ void k(int *out) {
    uchar4 v = make_uchar4(1, 2, 3, 4);
    out[threadIdx.x] = v.x + v.y + v.z + v.w;
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
