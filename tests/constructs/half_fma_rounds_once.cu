// expect: 1 1 1 1
#include "construct.h"

#include <cuda_fp16.h>
__global__ void k(float *out) {
    half a = __float2half(1.0009765625f), one = __float2half(1.0f);
    float fused = __half2float(__hfma(a, a, __hneg(__hmul(a, a))));
    out[threadIdx.x] = fused != 0.0f && __half2float(__hmul(a, one)) == 1.0009765625f;
}

int main() { return show<float>(4, [&](float *out) { k<<<1, 4>>>(out); }); }
