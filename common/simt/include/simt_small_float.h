/* What float16 and bfloat16 have in common: a type, a packed pair, operators and intrinsics. Each operation computes in a
 * format wide enough that rounding its result once gives what a card gives. */
#pragma once

#include "cuda_runtime.h"

/* T: the type; T2: the pair; N and N2: what they are called in names. */
#define SIMT_SMALL_FLOAT(T, T2, N, N2)                                                                                         \
    struct T##_raw {                                                                                                           \
        unsigned short x;                                                                                                      \
    };                                                                                                                         \
    struct T2##_raw {                                                                                                          \
        unsigned short x, y;                                                                                                   \
    };                                                                                                                         \
    struct alignas(2) T {                                                                                                      \
        unsigned short bits;                                                                                                   \
        T() = default;                                                                                                         \
        T(const T##_raw &raw) : bits(raw.x) {}                                                                                 \
        T(float x) : bits(simt_##N##_from_float(x)) {}                                                                         \
        T(double x) : bits(simt_##N##_from_double(x, SIMT_NEAREST)) {}                                                         \
        T(int x) : T((double)x) {} /* and what becomes an int: a value of an enumeration */                                    \
        template <typename _I, typename = typename std::enable_if<std::is_integral<_I>::value>::type>                          \
        T(_I x) : T((double)x) {}                                                                                              \
        operator float() const { return simt_##N##_to_float(bits); }                                                           \
        operator T##_raw() const { return {bits}; }                                                                            \
        static T of_bits(unsigned short bits) {                                                                                \
            T value;                                                                                                           \
            value.bits = bits;                                                                                                 \
            return value;                                                                                                      \
        }                                                                                                                      \
        static T rounded(double x) { return of_bits(simt_##N##_from_double(x, SIMT_NEAREST)); }                                \
        T &operator++() { return *this = T(float(*this) + 1.0f); }                                                             \
        T &operator--() { return *this = T(float(*this) - 1.0f); }                                                             \
        T operator+() const { return *this; }                                                                                  \
        T operator-() const { return of_bits(bits ^ 0x8000); }                                                                 \
    };                                                                                                                         \
    struct alignas(4) T2 {                                                                                                     \
        T x, y;                                                                                                                \
        SIMT_COPIED_AT_ONCE(T2, 4)                                                                                             \
        T2(const T &x_, const T &y_) : x(x_), y(y_) {}                                                                         \
    };                                                                                                                         \
    static inline double simt_wide(T a) { return simt_##N##_to_float(a.bits); }                                                \
                                                                                                                               \
    /* ---- arithmetic: one operation, its operator, and the pair's ---- */                                                    \
    SIMT_SMALL_BINARY(T, T2, __hadd, +, simt_wide(a) + simt_wide(b))                                                           \
    SIMT_SMALL_BINARY(T, T2, __hsub, -, simt_wide(a) - simt_wide(b))                                                           \
    SIMT_SMALL_BINARY(T, T2, __hmul, *, simt_wide(a) * simt_wide(b))                                                           \
    SIMT_SMALL_BINARY(T, T2, __hdiv, /, simt_wide(a) / simt_wide(b))                                                           \
    static inline T2 __h2div(T2 a, T2 b) { return a / b; }                                                                     \
    static inline T __hadd_rn(T a, T b) { return a + b; }                                                                      \
    static inline T __hsub_rn(T a, T b) { return a - b; }                                                                      \
    static inline T __hmul_rn(T a, T b) { return a * b; }                                                                      \
    static inline T2 operator-(T2 a) { return T2(-a.x, -a.y); }                                                                \
    static inline T __hfma(T a, T b, T c) { return T::rounded(simt_wide(a) * simt_wide(b) + simt_wide(c)); }                   \
    static inline T2 __hfma2(T2 a, T2 b, T2 c) { return T2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }                    \
    static inline T simt_clamp(T a) { return float(a) > 1.0f ? T(1.0f) : float(a) > 0.0f ? a : T(0.0f); }                      \
    static inline T __hadd_sat(T a, T b) { return simt_clamp(a + b); }                                                         \
    static inline T __hmul_sat(T a, T b) { return simt_clamp(a * b); }                                                         \
    static inline T __hfma_sat(T a, T b, T c) { return simt_clamp(__hfma(a, b, c)); }                                          \
    static inline T __hfma_relu(T a, T b, T c) {                                                                               \
        T sum = __hfma(a, b, c);                                                                                               \
        return float(sum) < 0.0f ? T(0.0f) : sum;                                                                              \
    }                                                                                                                          \
    static inline T2 __hfma2_relu(T2 a, T2 b, T2 c) { return T2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)); }     \
    SIMT_SMALL_UNARY(T, T2, __hneg, __hneg2, -a)                                                                               \
    SIMT_SMALL_UNARY(T, T2, __habs, __habs2, T::of_bits(a.bits & 0x7fff))                                                      \
    SIMT_SMALL_UNARY(T, T2, hsqrt, h2sqrt, T::rounded(sqrt(simt_wide(a))))                                                     \
    SIMT_SMALL_UNARY(T, T2, hrsqrt, h2rsqrt, T::rounded(1.0 / sqrt(simt_wide(a))))                                             \
    SIMT_SMALL_UNARY(T, T2, hrcp, h2rcp, T::rounded(1.0 / simt_wide(a)))                                                       \
    SIMT_SMALL_UNARY(T, T2, hexp, h2exp, T::rounded(exp(simt_wide(a))))                                                        \
    SIMT_SMALL_UNARY(T, T2, hexp2, h2exp2, T::rounded(exp2(simt_wide(a))))                                                     \
    SIMT_SMALL_UNARY(T, T2, hexp10, h2exp10, T::rounded(exp10(simt_wide(a))))                                                  \
    SIMT_SMALL_UNARY(T, T2, hlog, h2log, T::rounded(log(simt_wide(a))))                                                        \
    SIMT_SMALL_UNARY(T, T2, hlog2, h2log2, T::rounded(log2(simt_wide(a))))                                                     \
    SIMT_SMALL_UNARY(T, T2, hlog10, h2log10, T::rounded(log10(simt_wide(a))))                                                  \
    SIMT_SMALL_UNARY(T, T2, hsin, h2sin, T::rounded(sin(simt_wide(a))))                                                        \
    SIMT_SMALL_UNARY(T, T2, hcos, h2cos, T::rounded(cos(simt_wide(a))))                                                        \
    SIMT_SMALL_UNARY(T, T2, htanh, h2tanh, T::rounded(tanh(simt_wide(a))))                                                     \
    SIMT_SMALL_UNARY(T, T2, hfloor, h2floor, T::rounded(floor(simt_wide(a))))                                                  \
    SIMT_SMALL_UNARY(T, T2, hceil, h2ceil, T::rounded(ceil(simt_wide(a))))                                                     \
    SIMT_SMALL_UNARY(T, T2, hrint, h2rint, T::rounded(nearbyint(simt_wide(a))))                                                \
    SIMT_SMALL_UNARY(T, T2, htrunc, h2trunc, T::rounded(trunc(simt_wide(a))))                                                  \
                                                                                                                               \
    /* ---- comparisons; u: true when an operand is NaN ---- */                                                                \
    static inline bool __hisnan(T a) { return float(a) != float(a); }                                                          \
    static inline int __hisinf(T a) { return std::isinf(float(a)) ? (float(a) < 0 ? -1 : 1) : 0; }                             \
    SIMT_SMALL_COMPARISON(T, T2, eq, ==)                                                                                       \
    SIMT_SMALL_COMPARISON(T, T2, ne, !=)                                                                                       \
    SIMT_SMALL_COMPARISON(T, T2, lt, <)                                                                                        \
    SIMT_SMALL_COMPARISON(T, T2, le, <=)                                                                                       \
    SIMT_SMALL_COMPARISON(T, T2, gt, >)                                                                                        \
    SIMT_SMALL_COMPARISON(T, T2, ge, >=)                                                                                       \
    static inline T __hmax(T a, T b) { return __hisnan(a) ? b : __hisnan(b) ? a : float(a) > float(b) ? a : b; }               \
    static inline T __hmin(T a, T b) { return __hisnan(a) ? b : __hisnan(b) ? a : float(a) < float(b) ? a : b; }               \
    static inline T __hmax_nan(T a, T b) { return __hisnan(a) || __hisnan(b) ? T::of_bits(0x7fff) : __hmax(a, b); }            \
    static inline T __hmin_nan(T a, T b) { return __hisnan(a) || __hisnan(b) ? T::of_bits(0x7fff) : __hmin(a, b); }            \
    static inline T2 __hmax2(T2 a, T2 b) { return T2(__hmax(a.x, b.x), __hmax(a.y, b.y)); }                                    \
    static inline T2 __hmin2(T2 a, T2 b) { return T2(__hmin(a.x, b.x), __hmin(a.y, b.y)); }                                    \
                                                                                                                               \
    /* ---- halves of a pair ---- */                                                                                           \
    static inline float __low2float(T2 a) { return float(a.x); }                                                               \
    static inline float __high2float(T2 a) { return float(a.y); }                                                              \
    static inline T __low2##N(T2 v) { return v.x; }                                                                            \
    static inline T __high2##N(T2 v) { return v.y; }                                                                           \
    static inline T2 __low2##N2(T2 v) { return T2(v.x, v.x); }                                                                 \
    static inline T2 __high2##N2(T2 v) { return T2(v.y, v.y); }                                                                \
    static inline T2 __lowhigh2highlow(T2 v) { return T2(v.y, v.x); }                                                          \
    static inline T2 __lows2##N2(T2 a, T2 b) { return T2(a.x, b.x); }                                                          \
    static inline T2 __highs2##N2(T2 a, T2 b) { return T2(a.y, b.y); }                                                         \
    static inline T2 __##N##2##N2(T x) { return T2(x, x); }                                                                    \
    static inline T2 __halves2##N2(T x, T y) { return T2(x, y); }                                                              \
    static inline T2 make_##N2(T x, T y) { return T2(x, y); }                                                                  \
    static inline T2 make_##T2(T x, T y) { return T2(x, y); }                                                                  \
                                                                                                                               \
    /* ---- conversions ---- */                                                                                                \
    static inline T __float2##N(float x) { return T(x); }                                                                      \
    static inline T __float2##N##_rn(float x) { return T(x); }                                                                 \
    static inline T __float2##N##_rz(float x) { return T::of_bits(simt_##N##_from_double(x, SIMT_TOWARD_ZERO)); }              \
    static inline T __float2##N##_ru(float x) { return T::of_bits(simt_##N##_from_double(x, SIMT_UP)); }                       \
    static inline T __float2##N##_rd(float x) { return T::of_bits(simt_##N##_from_double(x, SIMT_DOWN)); }                     \
    static inline T __double2##N(double x) { return T(x); }                                                                    \
    static inline float __##N##2float(T x) { return float(x); }                                                                \
    static inline T2 __float2##N2##_rn(float x) { return T2(x, x); }                                                           \
    static inline T2 __floats2##N2##_rn(float x, float y) { return T2(x, y); }                                                 \
    static inline T2 __float22##N2##_rn(float2 v) { return T2(v.x, v.y); }                                                     \
    static inline float2 __##N2##2float2(T2 v) { return make_float2(float(v.x), float(v.y)); }                                 \
    static inline unsigned short __##N##_as_ushort(T x) { return x.bits; }                                                     \
    static inline short __##N##_as_short(T x) { return (short)x.bits; }                                                        \
    static inline T __ushort_as_##N(unsigned short bits) { return T::of_bits(bits); }                                          \
    static inline T __short_as_##N(short bits) { return T::of_bits((unsigned short)bits); }                                    \
    SIMT_SMALL_FROM(T, N, rn, SIMT_NEAREST)                                                                                    \
    SIMT_SMALL_FROM(T, N, rz, SIMT_TOWARD_ZERO)                                                                                \
    SIMT_SMALL_FROM(T, N, rd, SIMT_DOWN)                                                                                       \
    SIMT_SMALL_FROM(T, N, ru, SIMT_UP)

/* One request and one rounding for each half, by compare and swap of the 4 bytes around it. */
#define SIMT_SMALL_ATOMICS(T, T2)                                                                                              \
    static inline T2 atomicAdd(T2 *address, T2 operand) {                                                                      \
        unsigned old = atomicAdd((unsigned *)address, 0u), seen;                                                               \
        do {                                                                                                                   \
            seen = old;                                                                                                        \
            T2 sum = simt::bit_cast<T2>(seen) + operand;                                                                       \
            old = atomicCAS((unsigned *)address, seen, simt::bit_cast<unsigned>(sum));                                         \
        } while (old != seen);                                                                                                 \
        return simt::bit_cast<T2>(seen);                                                                                       \
    }                                                                                                                          \
    static inline T atomicAdd(T *address, T operand) {                                                                         \
        bool high = ((uintptr_t)address & 2) != 0;                                                                             \
        unsigned *word = (unsigned *)((uintptr_t)address & ~(uintptr_t)3), old = atomicAdd(word, 0u), seen;                    \
        T before;                                                                                                              \
        do {                                                                                                                   \
            seen = old;                                                                                                        \
            before = T::of_bits((unsigned short)(high ? seen >> 16 : seen));                                                   \
            unsigned short sum = (before + operand).bits;                                                                      \
            old = atomicCAS(word, seen, high ? (seen & 0xffff) | (unsigned)sum << 16 : (seen & 0xffff0000) | sum);             \
        } while (old != seen);                                                                                                 \
        return before;                                                                                                         \
    }

#define SIMT_SMALL_BINARY(T, T2, name, op, expression)                                                                         \
    static inline T operator op(const T &a, const T &b) { return T::rounded(expression); }                                     \
    static inline T name(T a, T b) { return a op b; }                                                                          \
    static inline T &operator op##=(T &a, const T &b) { return a = a op b; }                                                   \
    static inline T2 operator op(const T2 &a, const T2 &b) { return T2(a.x op b.x, a.y op b.y); }                              \
    static inline T2 &operator op##=(T2 &a, T2 b) { return a = a op b; }                                                       \
    static inline T2 name##2(T2 a, T2 b) { return a op b; }
#define SIMT_SMALL_UNARY(T, T2, name, name2, expression)                                                                       \
    static inline T name(T a) { return expression; }                                                                           \
    static inline T2 name2(T2 a) { return T2(name(a.x), name(a.y)); }
#define SIMT_SMALL_COMPARISON(T, T2, name, op)                                                                                 \
    static inline bool operator op(const T &a, const T &b) { return float(a) op float(b); }                                    \
    static inline bool __h##name(T a, T b) { return float(a) op float(b); }                                                    \
    static inline bool __h##name##u(T a, T b) { return float(a) op float(b) || __hisnan(a) || __hisnan(b); }                   \
    static inline T2 __h##name##2(T2 a, T2 b) { return T2(T(float(a.x op b.x)), T(float(a.y op b.y))); }                       \
    static inline bool __hb##name##2(T2 a, T2 b) { return a.x op b.x && a.y op b.y; }
#define SIMT_SMALL_FROM(T, N, suffix, mode)                                                                                    \
    static inline T __int2##N##_##suffix(int x) { return T::of_bits(simt_##N##_from_double(x, mode)); }                        \
    static inline T __uint2##N##_##suffix(unsigned x) { return T::of_bits(simt_##N##_from_double(x, mode)); }                  \
    static inline T __short2##N##_##suffix(short x) { return T::of_bits(simt_##N##_from_double(x, mode)); }                    \
    static inline T __ushort2##N##_##suffix(unsigned short x) { return T::of_bits(simt_##N##_from_double(x, mode)); }          \
    static inline int __##N##2int_##suffix(T x) { return __float2int_##suffix(float(x)); }                                     \
    static inline unsigned __##N##2uint_##suffix(T x) { return __float2uint_##suffix(float(x)); }
