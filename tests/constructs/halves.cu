#include "construct.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace bfloat16_arithmetic {
__global__ void k(float *out) {
    __nv_bfloat16 a = __float2bfloat16(1.0f), b = __float2bfloat16(2.0f);
    out[0] = __bfloat162float(__hadd(a, b)), out[1] = __bfloat162float(__float2bfloat16(257.0f));
    out[2] = __bfloat162float(a / b), out[3] = a < b;
}
CONSTRUCT(bfloat16_arithmetic, "3 256 0.5 1") { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
} // namespace bfloat16_arithmetic

namespace bfloat16_pair {
__global__ void k(float *out) {
    __nv_bfloat162 a = __floats2bfloat162_rn(1.0f, 2.0f), b = __floats2bfloat162_rn(3.0f, 4.0f), c = __hadd2(a, b);
    out[0] = __low2float(c), out[1] = __high2float(c), out[2] = __low2float(a), out[3] = __high2float(a);
}
CONSTRUCT(bfloat16_pair, "4 6 1 2") { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
} // namespace bfloat16_pair

namespace half_arithmetic {
__global__ void k(float *out) {
    half a = __float2half(1.0f), b = __float2half(2.0f);
    out[0] = __half2float(__hadd(a, b)), out[1] = __half2float(b * (a + b)), out[2] = __half2float(a / b), out[3] = a < b;
}
CONSTRUCT(half_arithmetic, "3 6 0.5 1") { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
} // namespace half_arithmetic

namespace half_fma_rounds_once {
__global__ void k(float *out) {
    half a = __float2half(1.0009765625f), one = __float2half(1.0f);
    float fused = __half2float(__hfma(a, a, __hneg(__hmul(a, a))));
    out[threadIdx.x] = fused != 0.0f && __half2float(__hmul(a, one)) == 1.0009765625f;
}
CONSTRUCT(half_fma_rounds_once, "1 1 1 1") { return show<float>(4, [&](float *out) { k<<<1, 4>>>(out); }); }
} // namespace half_fma_rounds_once

namespace half_pair {
__global__ void k(float *out) {
    half2 a = __floats2half2_rn(1.0f, 2.0f), b = __floats2half2_rn(3.0f, 4.0f);
    float2 sum = __half22float2(__hadd2(a, b)), product = __half22float2(__hmul2(a, b));
    out[0] = sum.x, out[1] = sum.y, out[2] = product.x, out[3] = product.y;
}
CONSTRUCT(half_pair, "4 6 3 8") { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
} // namespace half_pair

namespace half_rounds_to_even {
__global__ void k(float *out) {
    out[0] = __half2float(__float2half(2049.0f)), out[1] = __half2float(__float2half(2051.0f));
    out[2] = __half2float(__float2half(65519.0f)), out[3] = __half2float(__float2half(1e-8f));
}
CONSTRUCT(half_rounds_to_even, "2048 2052 65504 0") { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
} // namespace half_rounds_to_even
