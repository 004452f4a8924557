// expect: 3 3 3 3
#include "construct.h"

__global__ void k(int *out) {
    double2 v = make_double2(1.0, 2.0);
    out[threadIdx.x] = (int)(v.x + v.y);
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
