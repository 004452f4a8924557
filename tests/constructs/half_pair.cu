// expect: 4 6 3 8
#include "construct.h"

#include <cuda_fp16.h>
__global__ void k(float *out) {
    half2 a = __floats2half2_rn(1.0f, 2.0f), b = __floats2half2_rn(3.0f, 4.0f);
    float2 sum = __half22float2(__hadd2(a, b)), product = __half22float2(__hmul2(a, b));
    out[0] = sum.x, out[1] = sum.y, out[2] = product.x, out[3] = product.y;
}

int main() { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
