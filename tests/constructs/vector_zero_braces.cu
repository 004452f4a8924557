// expect: 0 0 0 0
#include "construct.h"

__global__ void k(float *out) {
    float4 v = {};
    out[threadIdx.x] = v.x + v.w;
}

int main() { return show<float>(4, [&](float *out) { k<<<1, 4>>>(out); }); }
