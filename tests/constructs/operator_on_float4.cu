// expect: 10 10 10 10
#include "construct.h"

__device__ float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
__global__ void k(float *out) {
    float4 a = make_float4(1, 2, 3, 4), b = make_float4(9, 8, 7, 6), c = a + b;
    out[0] = c.x, out[1] = c.y, out[2] = c.z, out[3] = c.w;
}

int main() { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
