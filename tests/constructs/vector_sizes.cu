// expect: 4 8 12 16
#include "construct.h"

__global__ void k(int *out) {
    out[0] = sizeof(float1), out[1] = sizeof(float2), out[2] = sizeof(float3), out[3] = sizeof(float4);
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
