#include "construct.h"
#include <math_constants.h>
#include <sm_61_intrinsics.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <curand_kernel.h>

namespace bit_casts {
__global__ void k(int *out) { out[threadIdx.x] = __float_as_int(__int_as_float(1)); }
CONSTRUCT(bit_casts, "1 1 1 1") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace bit_casts

namespace bit_counts {
__global__ void k(int *out) { out[0] = __popc(7), out[1] = __clz(7), out[2] = __ffs(7), out[3] = __popcll(0xffffffffull); }
CONSTRUCT(bit_counts, "3 29 1 32") { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
} // namespace bit_counts

namespace bit_reverse {
__global__ void k(int *out) { out[0] = __brev(0x80000000), out[1] = (int)(__brevll(0x4000000000000000ull)); }
CONSTRUCT(bit_reverse, "1 2 0 0") { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
} // namespace bit_reverse

namespace byte_permute {
__global__ void k(int *out) { out[0] = __byte_perm(0x01020304, 0, 0x0123); }
CONSTRUCT(byte_permute, "67305985 0 0 0") { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
} // namespace byte_permute

namespace bytes_side_by_side {
__global__ void k(unsigned *out) {
    out[0] = __vadd4(0x01ff80fe, 0x01010101) == 0x020081ffu, out[1] = __vaddss4(0x7f80017f, 0x01ff0180) == 0x7f8002ffu;
    out[2] = __vaddus2(0xffff0001, 0x00020001) == 0xffff0002u, out[3] = __vsubus4(0x01020304, 0x02020202) == 0x00000102u;
    out[4] = __vabsdiffu4(5, 7) + __vmaxs2(3, 9) + __sad(3, 5, 1), out[5] = __vabsdiffs2(0x80007fff, 0x7fff8000) == 0xffffffffu;
    out[6] = __vcmpgts4(0x01ff7f80, 0x00000000) == 0xff00ff00u, out[7] = __vsetltu2(0x00018000, 0x00027fff);
    out[8] = __vsadu4(0x01020304, 0x04030201), out[9] = __vsads2(0xffff0001, 0x00010001);
    out[10] = __vavgs2(0xfffdfffe, 0x0000ffff) == 0xfffefffeu, out[11] = __vavgu4(0xff000103, 0xff010104) == 0xff010104u;
    out[12] = __vhaddu4(0xff000103, 0xff010104) == 0xff000103u, out[13] = __vabsss4(0x80ff017f) == 0x7f01017fu;
    out[14] = __vneg2(0x80000001) == 0x8000ffffu, out[15] = __vminu4(0x80ff017f, 0x017f80ff) == 0x017f017fu;
}
CONSTRUCT(bytes_side_by_side, "1 1 1 1 14 1 1 65536 8 2 1 1 1 1 1 1") { return show<unsigned>(16, [&](unsigned *out) { k<<<1, 1>>>(out); }); }
} // namespace bytes_side_by_side

namespace dp4a_sum {
__global__ void k(int *out) { // 1 2 3 4 times 5 6 7 8, with and without signs
    out[0] = __dp4a(0x0403fe01, 0x0807f605, 0) - 78; // 5 + 20 + 21 + 32
    out[1] = (int)__dp4a(0x04030201u, 0x08070605u, 0u);
    out[2] = __dp4a(make_char4(1, -2, 3, 4), make_char4(5, -10, 7, 8), -84);
    out[3] = (int)__dp4a(make_uchar4(1, 2, 3, 4), make_uchar4(5, 6, 7, 8), 0u);
}
CONSTRUCT(dp4a_sum, "0 70 -6 70") { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
} // namespace dp4a_sum

namespace dpx_of_three {
__global__ void k(int *out) {
    int a = threadIdx.x;
    bool first, second;
    out[0] = __viaddmax_s32(a + 1, 3, 5) + __vimax3_s32(a, 7, 2) + (int)__viaddmax_s16x2(1, 2, 3), out[1] = __vimax_s32_relu(a - 9, -1);
    out[2] = __viaddmin_s32(0x7fffffff, 1, 5) < 0, out[3] = __vimin3_u16x2(0x00058000, 0x00077fff, 0x00060001) == 0x00050001u;
    out[4] = __vibmax_s32(2, 2, &first) * 2 + first, out[5] = __vibmin_u16x2(0x00020001, 0x00010002, &first, &second) == 0x00010001u;
    out[6] = first, out[7] = second;
}
CONSTRUCT(dpx_of_three, "15 0 1 1 5 1 0 1") { return show<int>(8, [&](int *out) { k<<<1, 1>>>(out); }); }
} // namespace dpx_of_three

namespace fast_functions {
__global__ void k(float *out) { out[0] = __expf(0.0f), out[1] = __logf(1.0f), out[2] = __cosf(0.0f), out[3] = __fdividef(4.0f, 2.0f); }
CONSTRUCT(fast_functions, "1 0 1 2") { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
} // namespace fast_functions

namespace high_products {
__global__ void k(int *out) { out[0] = __umulhi(0x80000000u, 2), out[1] = __mulhi(-1, 1); }
CONSTRUCT(high_products, "1 -1 0 0") { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
} // namespace high_products

namespace infinity_and_nan {
__global__ void k(int *out) { out[threadIdx.x] = isinf(INFINITY) && isnan(nanf("")); }
CONSTRUCT(infinity_and_nan, "1 1 1 1") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace infinity_and_nan

namespace math_constants {
__global__ void k(int *out) { out[threadIdx.x] = CUDART_INF_F > 3e38f; }
CONSTRUCT(math_constants, "1 1 1 1") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace math_constants

namespace min_max_mixed {
__global__ void k(float *out) { out[0] = min(2, 3), out[1] = max(2u, 3u), out[2] = min(1.5f, 2.5f), out[3] = fmaxf(1.5f, 2.5f); }
CONSTRUCT(min_max_mixed, "2 3 1.5 2.5") { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
} // namespace min_max_mixed

namespace rounding_conversions {
__global__ void k(int *out) { out[0] = __float2int_rn(2.5f), out[1] = __float2int_rz(2.9f), out[2] = __float2int_ru(2.1f), out[3] = __float2int_rd(-2.1f); }
CONSTRUCT(rounding_conversions, "2 2 3 -3") { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
} // namespace rounding_conversions

namespace saturate {
__global__ void k(float *out) { out[0] = __saturatef(-1.0f), out[1] = __saturatef(0.5f), out[2] = __saturatef(2.0f), out[3] = __saturatef(NAN); }
CONSTRUCT(saturate, "0 0.5 1 0") { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
} // namespace saturate

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

namespace vector_double2 {
__global__ void k(int *out) {
    double2 v = make_double2(1.0, 2.0);
    out[threadIdx.x] = (int)(v.x + v.y);
}
CONSTRUCT(vector_double2, "3 3 3 3") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace vector_double2

namespace vector_float2 {
__global__ void k(float *out) {
    float2 a = {1, 2}, b = make_float2(3, 4);
    out[0] = a.x + a.y, out[1] = b.x + b.y;
}
CONSTRUCT(vector_float2, "3 7 0 0") { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
} // namespace vector_float2

namespace vector_float4_load {
__global__ void k(float *out, const float4 *in) { *(float4 *)out = *in; }
CONSTRUCT(vector_float4_load, "1 2 3 4") { return show<float>(4, [&](float *out) { float h[4] = {1, 2, 3, 4}; float4 *in; cudaMalloc(&in, 16); cudaMemcpy(in, h, 16, cudaMemcpyHostToDevice); k<<<1, 1>>>(out, in); cudaFree(in); }); }
} // namespace vector_float4_load

namespace vector_int3 {
__global__ void k(int *out) {
    int3 v = make_int3(1, 2, 3);
    out[threadIdx.x] = v.x + v.y + v.z;
}
CONSTRUCT(vector_int3, "6 6 6 6") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace vector_int3

namespace vector_one_brace {
__global__ void k(float *out) {
    float4 v = {1.0f};
    out[threadIdx.x] = v.x + v.y;
}
CONSTRUCT(vector_one_brace, "1 1 1 1") { return show<float>(4, [&](float *out) { k<<<1, 4>>>(out); }); }
} // namespace vector_one_brace

namespace vector_sizes {
__global__ void k(int *out) {
    out[0] = sizeof(float1), out[1] = sizeof(float2), out[2] = sizeof(float3), out[3] = sizeof(float4);
}
CONSTRUCT(vector_sizes, "4 8 12 16") { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
} // namespace vector_sizes

namespace vector_uchar4 {
__global__ void k(int *out) {
    uchar4 v = make_uchar4(1, 2, 3, 4);
    out[threadIdx.x] = v.x + v.y + v.z + v.w;
}
CONSTRUCT(vector_uchar4, "10 10 10 10") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace vector_uchar4

namespace vector_zero_braces {
__global__ void k(float *out) {
    float4 v = {};
    out[threadIdx.x] = v.x + v.w;
}
CONSTRUCT(vector_zero_braces, "0 0 0 0") { return show<float>(4, [&](float *out) { k<<<1, 4>>>(out); }); }
} // namespace vector_zero_braces

/* What cuRAND 13's own header computes, compiled for the host. */
namespace words_of_generators {
template <typename State> __device__ void words(double *out) {
    State state;
    curand_init(0xdeadbeefcafe1234ull, 12345678901ull, 98765432109ull, &state);
    for (int i = 0; i < 3; i++) out[i] = curand(&state) % 999999937;
    skipahead(1234567ull, &state);
    skipahead_sequence(77ull, &state);
    out[3] = curand(&state) % 999999937;
}
__global__ void k(double *out) {
    words<curandState>(out);
    words<curandStatePhilox4_32_10_t>(out + 4);
}
CONSTRUCT(words_of_generators,
          "918272577 608429083 439327203 392141468 622194584 369587075 592316814 96438351") {
    return show<double>(8, [&](double *out) { k<<<1, 1>>>(out); });
}
} // namespace words_of_generators

namespace numbers_of_generators {
template <typename State> __device__ void numbers(float *out) {
    State state;
    curand_init(1234, 5, 3, &state);
    out[0] = curand_uniform(&state);
    out[1] = (float)curand_uniform_double(&state);
    out[2] = curand_normal(&state);
    out[3] = curand_normal(&state);
    out[4] = (float)curand_normal_double(&state);
    out[5] = curand_log_normal(&state, 0.5f, 0.25f);
    for (int i = 0; i < 6; i++) out[i] = rintf(1e5f * out[i]); /* a card's sine differs in the last bits */
}
__global__ void k(float *out) {
    numbers<curandStateXORWOW_t>(out);
    numbers<curandStatePhilox4_32_10_t>(out + 6);
    curandStatePhilox4_32_10_t state;
    curand_init(1234, 5, 3, &state);
    float4 four = curand_uniform4(&state);
    out[12] = rintf(1e5f * four.x), out[13] = rintf(1e5f * four.w);
}
CONSTRUCT(numbers_of_generators,
          "38029 62933 -84876 16344 182920 202171 74057 36079 157628 54376 40547 140860 74057 19713") {
    return show<float>(14, [&](float *out) { k<<<1, 1>>>(out); });
}
} // namespace numbers_of_generators
