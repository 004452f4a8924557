// expect: 6 6 6 6
#include "construct.h"

__global__ void k(int *out) {
    int3 v = make_int3(1, 2, 3);
    out[threadIdx.x] = v.x + v.y + v.z;
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
