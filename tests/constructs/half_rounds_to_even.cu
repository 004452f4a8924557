// expect: 2048 2052 65504 0
#include "construct.h"

#include <cuda_fp16.h>
__global__ void k(float *out) {
    out[0] = __half2float(__float2half(2049.0f)), out[1] = __half2float(__float2half(2051.0f));
    out[2] = __half2float(__float2half(65519.0f)), out[3] = __half2float(__float2half(1e-8f));
}

int main() { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
