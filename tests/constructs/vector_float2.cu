// expect: 3 7 0 0
#include "construct.h"

__global__ void k(float *out) {
    float2 a = {1, 2}, b = make_float2(3, 4);
    out[0] = a.x + a.y, out[1] = b.x + b.y;
}

int main() { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
