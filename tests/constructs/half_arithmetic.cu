// expect: 3 6 0.5 1
#include "construct.h"

#include <cuda_fp16.h>
__global__ void k(float *out) {
    half a = __float2half(1.0f), b = __float2half(2.0f);
    out[0] = __half2float(__hadd(a, b)), out[1] = __half2float(b * (a + b)), out[2] = __half2float(a / b), out[3] = a < b;
}

int main() { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
