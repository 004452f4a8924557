// expect: 1 1 1 1
#include "construct.h"

__global__ void k(float *out) {
    float4 v = {1.0f};
    out[threadIdx.x] = v.x + v.y;
}

int main() { return show<float>(4, [&](float *out) { k<<<1, 4>>>(out); }); }
