/* The types of 8 bits: all conversions from half, against a table of their 256 values; and wgmma m64nNk32 against plain C: both widths of
 * fp8.cuh, both types, A from shared memory and from registers. For cards of compute_capability = 90. */
#include "device_test.h"

#include <algorithm>
#include <math.h>
#include <stdint.h>

#include "fp8.cuh"

static void need_hopper() {
    need_device();
    cudaDeviceProp device;
    EXPECT_OK(cudaGetDeviceProperties(&device, 0));
    if (device.major != 9) cr_skip_test("needs compute capability 9.0");
}

TestSuite(fp8, .init = need_hopper, .timeout = 120);

/* ---- conversions ---- */

static double value_of(int bits, bool e5m2) {
    int fraction = e5m2 ? 2 : 3, bias = e5m2 ? 15 : 7, field = bits >> fraction & (e5m2 ? 31 : 15);
    int units = bits & ((1 << fraction) - 1);
    if (e5m2 ? field == 31 : (bits & 0x7f) == 0x7f)
        return e5m2 && units == 0 ? (bits & 0x80 ? -INFINITY : INFINITY) : NAN;
    double size = ldexp(units + (field > 0) * (1 << fraction), (field > 0 ? field : 1) - bias - fraction);
    return bits & 0x80 ? -size : size;
}

/* The nearest of all numbers, the even one of two; what is nearer to the number that would follow the largest is too large. */
static int nearest(double x, bool e5m2, bool saturates) {
    int largest = e5m2 ? 0x7b : 0x7e, best = 0, sign = signbit(x) ? 0x80 : 0;
    double size = fabs(x), past = value_of(largest, e5m2) + (e5m2 ? 8192.0 : 32.0);
    if (x != x) return 0x7f;
    for (int bits = 0; bits <= largest + 1; bits++) {
        double value = bits <= largest ? value_of(bits, e5m2) : past, distance = fabs(size - value);
        double before = fabs(size - (best <= largest ? value_of(best, e5m2) : past));
        if (distance < before || (distance == before && bits % 2 == 0)) best = bits;
    }
    if (best > largest || isinf(x)) best = saturates ? largest : largest + 1;
    return sign | best;
}

template <class T, __nv_fp8_interpretation_t TYPE>
__global__ static void convert_all(uint8_t *saturated, uint8_t *other, uint16_t *pairs, float *values) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __half_raw x;
    x.x = (unsigned short)i;
    float wide = __half2float(__half(x));
    saturated[i] = T(wide).__x;
    other[i] = __nv_cvt_halfraw_to_fp8(x, __NV_NOSAT, TYPE);
    pairs[i] = __nv_cvt_float2_to_fp8x2(make_float2(wide, -1.0f), __NV_SATFINITE, TYPE);
    T narrow;
    narrow.__x = (uint8_t)i;
    values[i] = (float)narrow;
}

template <class T, __nv_fp8_interpretation_t TYPE> static void check_conversions() {
    enum { ALL = 65536 };
    const bool e5m2 = TYPE == __NV_E5M2;
    uint8_t *saturated = filled_on_device<uint8_t>(0xff, ALL), *other = filled_on_device<uint8_t>(0xff, ALL);
    uint16_t *pairs = filled_on_device<uint16_t>(0xff, ALL);
    float *values = filled_on_device<float>(0xff, ALL);
    convert_all<T, TYPE><<<ALL / 256, 256>>>(saturated, other, pairs, values);
    std::vector<uint8_t> to = take_back(saturated, ALL), to_other = take_back(other, ALL);
    std::vector<uint16_t> to_pairs = take_back(pairs, ALL);
    std::vector<float> from = take_back(values, ALL);
    int minus_one = nearest(-1.0, e5m2, true);
    for (int i = 0; i < ALL; i++) {
        __half_raw bits;
        bits.x = (unsigned short)i;
        double x = (double)__half2float(__half(bits)), value = value_of(i & 255, e5m2);
        cr_assert_eq(to[(size_t)i], nearest(x, e5m2, true), "half %#x becomes %#x", i, to[(size_t)i]);
        cr_assert_eq(to_other[(size_t)i], nearest(x, e5m2, false), "half %#x becomes %#x without saturation", i,
                     to_other[(size_t)i]);
        cr_assert_eq(to_pairs[(size_t)i], nearest(x, e5m2, true) | minus_one << 8, "the pair of half %#x", i);
        cr_assert((double)from[(size_t)i] == value || (isnan(from[(size_t)i]) && isnan(value)), "number %#x is %g",
                  i & 255, (double)from[(size_t)i]);
    }
}
Test(fp8, e4m3_of_all_halves) { check_conversions<__nv_fp8_e4m3, __NV_E4M3>(); }
Test(fp8, e5m2_of_all_halves) { check_conversions<__nv_fp8_e5m2, __NV_E5M2>(); }

/* ---- products ---- */

extern __shared__ __align__(1024) uint8_t tile[];

/* A (64, 32), B (32, N) as its columns, C (64, N); the first 32 bytes of rows of SPAN. */
template <class T, int N, int SPAN, bool A_IN_REGISTERS>
__global__ static void multiply(const uint8_t *A, const uint8_t *B, float *C, float before, bool add) {
    uint8_t *A_tile = tile, *B_tile = tile + 64 * SPAN;
    int t = threadIdx.x, warp = t / 32, lane = t % 32;
    for (int i = t; i < (64 + N) * SPAN; i += blockDim.x) tile[i] = 0;
    __syncthreads();
    for (int i = t; i < (64 + N) * 32; i += blockDim.x) {
        int at = i / 32 * SPAN + i % 32;
        tile[at ^ (at >> 7 & (SPAN / 16 - 1)) << 4] = i < 64 * 32 ? A[i] : B[i - 64 * 32];
    }
    fence_proxy_async();
    __syncthreads();
    float C_reg[N / 8][4];
    for (int n = 0; n < N / 8; n++)
        for (int e = 0; e < 4; e++) C_reg[n][e] = before;
    uint32_t A_reg[4];
    for (int r = 0; r < 4; r++)
        A_reg[r] = *(const uint32_t *)&A[(warp * 16 + lane / 4 + r % 2 * 8) * 32 + lane % 4 * 4 + r / 2 * 16];
    wgmma_fence();
    if constexpr (A_IN_REGISTERS)
        wgmma_fp8(T(), C_reg, A_reg, bytes_tile<SPAN>(B_tile), add);
    else
        wgmma_fp8(T(), C_reg, bytes_tile<SPAN>(A_tile), bytes_tile<SPAN>(B_tile), add);
    wgmma_commit();
    wgmma_wait<0>();
    for (int n = 0; n < N / 8; n++)
        for (int e = 0; e < 4; e++)
            C[(warp * 16 + lane / 4 + e / 2 * 8) * N + n * 8 + lane % 4 * 2 + e % 2] = C_reg[n][e];
}

template <class T, int N, int SPAN, bool A_IN_REGISTERS>
static void check(const uint8_t *A, const uint8_t *B, float before, bool add, const float *wanted) {
    uint8_t *A_device = on_device(A, 64 * 32), *B_device = on_device(B, N * 32);
    float *C = filled_on_device<float>(0xff, 64 * N);
    multiply<T, N, SPAN, A_IN_REGISTERS><<<1, 128, (64 + N) * SPAN>>>(A_device, B_device, C, before, add);
    expect_values(C, wanted, 64 * N, "C");
    EXPECT_OK(cudaFree(A_device));
    EXPECT_OK(cudaFree(B_device));
}

/* Small integers, exact in 13 bits whatever the order in which a card adds. A from registers is e4m3. */
template <class T, int N, int SPAN, bool A_IN_REGISTERS> static void check_integers() {
    uint8_t A[64 * 32], B[N * 32];
    static float a[64 * 32], b[N * 32], wanted[64 * N];
    for (int i = 0; i < 64 * 32; i++) {
        a[i] = (float)(scrambled(i) % 8);
        A[i] = A_IN_REGISTERS ? __nv_fp8_e4m3(a[i]).__x : T(a[i]).__x;
    }
    for (int i = 0; i < N * 32; i++) B[i] = T(b[i] = (float)(scrambled(i + 5000) % 7)).__x;
    for (int add = 0; add < 2; add++) {
        for (int i = 0; i < 64 * N; i++) {
            wanted[i] = add ? 1000.0f : 0.0f;
            for (int k = 0; k < 32; k++) wanted[i] += a[i / N * 32 + k] * b[i % N * 32 + k];
        }
        check<T, N, SPAN, A_IN_REGISTERS>(A, B, 1000.0f, add, wanted);
    }
}
template <class T, int N> static void check_all() {
    check_integers<T, N, 64, false>(), check_integers<T, N, 128, false>();
    check_integers<T, N, 64, true>(), check_integers<T, N, 128, true>();
}
Test(fp8, products_of_e4m3) { check_all<__nv_fp8_e4m3, 64>(), check_all<__nv_fp8_e4m3, 128>(); }
Test(fp8, products_of_e5m2) { check_all<__nv_fp8_e5m2, 64>(), check_all<__nv_fp8_e5m2, 128>(); }

/* The accumulator. C and the 32 products are cut off 13 bits below the largest exponent, towards zero, where a product's exponent is the
 * sum of its factors' and a subnormal number has the smallest of its type; the rest is added exactly, and the sum is cut off to 13 bits of
 * fraction. On the H200 all results of `sums_of_random_tiles` have these bits. */
static void check_sum(float before, float first, float others, float wanted) {
    uint8_t A[64 * 32], B[64 * 32];
    static float all[64 * 64];
    for (int i = 0; i < 64 * 32; i++) {
        A[i] = __nv_fp8_e4m3(i % 32 == 0 ? first : others).__x;
        B[i] = __nv_fp8_e4m3(1.0f).__x;
    }
    for (int i = 0; i < 64 * 64; i++) all[i] = wanted;
    check<__nv_fp8_e4m3, 64, 128, false>(A, B, before, true, all);
}
Test(fp8, accumulator_of_13_bits) {
    check_sum(1.0f + 0x1p-13f, 0.0f, 0.0f, 1.0f + 0x1p-13f);
    check_sum(1.0f + 0x1p-14f, 0.0f, 0.0f, 1.0f);
    check_sum(-1.0f - 0x1p-14f, 0.0f, 0.0f, -1.0f);
    check_sum(0.0f, 64.0f, 0x1p-7f, 64.0f + 31 * 0x1p-7f); // 13 bits below 2^6
    check_sum(0.0f, 128.0f, 0x1p-7f, 128.0f);              // 14: 31 of them would be 0.24
    check_sum(-4096.0f, 0.0f, 0x1p-1f, -4096.0f + 31 * 0x1p-1f);
    check_sum(8192.0f, 0.0f, 0x1.8p-1f, 8192.0f);
}

struct number {
    double value;
    int exponent; // of zero: far below all
};
static number number_of(int bits, bool e5m2) {
    int fraction = e5m2 ? 2 : 3, field = bits >> fraction & (e5m2 ? 31 : 15);
    return {value_of(bits, e5m2), (bits & 0x7f) == 0 ? -1000 : (field > 0 ? field : 1) - (e5m2 ? 15 : 7)};
}
static double cut(double x, int last_bit) { return ldexp(trunc(ldexp(x, -last_bit)), last_bit); }
static float sum_of(const number *a, const number *b, float before) {
    int most = before != 0.0f ? ilogb((double)before) : -1000;
    for (int k = 0; k < 32; k++) most = std::max(most, a[k].exponent + b[k].exponent);
    if (most <= -900) return 0.0f;
    double sum = cut((double)before, most - 13);
    for (int k = 0; k < 32; k++) sum += cut(a[k].value * b[k].value, most - 13);
    return sum == 0.0 ? 0.0f : (float)cut(sum, ilogb(sum) - 13);
}

/* Seven kinds of numbers: any bits but the specials; of few exponents; positive; mostly zeros; mostly small, with outliers; powers of 2;
 * subnormal and tiny. */
static int draw(int kind, bool e5m2) {
    static uint64_t state = 1;
    auto below = [&](unsigned end) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (int)((unsigned)(state >> 33) % end);
    };
    int fraction = e5m2 ? 2 : 3, bias = e5m2 ? 15 : 7, sign = below(2) << 7;
    auto with = [&](int exponent) { return sign | (exponent + bias) << fraction | below(1 << fraction); };
    switch (kind) {
    case 0: return sign | below(e5m2 ? 0x7c : 0x7f);
    case 1: return with(below(4) - 2);
    case 2: return with(below(3)) & 0x7f;
    case 3: return below(8) == 0 ? with(below(8) - 4) : 0;
    case 4: return with(below(16) == 0 ? 6 : below(3) - 6);
    case 5: return with(below(12) - 6) >> fraction << fraction;
    default: return sign | below(4 << fraction);
    }
}

template <class T, bool A_IN_REGISTERS> static void check_random_tiles(bool e5m2) {
    enum { TILES = 5, KINDS = 7 }; // of each kind, 4096 sums each
    static float wanted[64 * 64];
    for (int i = 0; i < TILES * KINDS; i++) {
        uint8_t A[64 * 32], B[64 * 32];
        static number a[64 * 32], b[64 * 32];
        for (int j = 0; j < 64 * 32; j++) {
            A[j] = (uint8_t)draw(i % KINDS, e5m2), B[j] = (uint8_t)draw(i % KINDS, e5m2);
            a[j] = number_of(A[j], e5m2), b[j] = number_of(B[j], e5m2);
        }
        float before = i % 3 == 0 ? 0.0f : ldexpf(8192 + draw(0, true), i % 20 - 20) * (i % 2 != 0 ? 1.0f : -1.0f);
        for (int j = 0; j < 64 * 64; j++) wanted[j] = sum_of(a + j / 64 * 32, b + j % 64 * 32, before);
        check<T, 64, 128, A_IN_REGISTERS>(A, B, before, true, wanted);
    }
}
Test(fp8, sums_of_random_tiles) {
    check_random_tiles<__nv_fp8_e4m3, false>(false), check_random_tiles<__nv_fp8_e4m3, true>(false);
    check_random_tiles<__nv_fp8_e5m2, false>(true);
}

/* NaN and infinity stay in their row; e4m3 has no infinity. */
Test(fp8, not_finite) {
    uint8_t A[64 * 32], B[64 * 32];
    for (int i = 0; i < 64 * 32; i++) A[i] = B[i] = __nv_fp8_e5m2(1.0f).__x;
    A[5 * 32 + 17] = 0x7c, A[20 * 32] = 0x7f;
    uint8_t *A_device = on_device(A), *B_device = on_device(B);
    float *C = filled_on_device<float>(0xff, 64 * 64);
    multiply<__nv_fp8_e5m2, 64, 128, false><<<1, 128, 128 * 128>>>(A_device, B_device, C, 0.0f, false);
    std::vector<float> got = take_back(C, 64 * 64);
    for (int i = 0; i < 64 * 64; i++)
        cr_assert(i / 64 == 5    ? isinf(got[(size_t)i])
                  : i / 64 == 20 ? isnan(got[(size_t)i])
                                 : got[(size_t)i] == 32.0f,
                  "row %d, column %d: %g", i / 64, i % 64, (double)got[(size_t)i]);
    EXPECT_OK(cudaFree(A_device));
    EXPECT_OK(cudaFree(B_device));
}
