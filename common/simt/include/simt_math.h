/* Arithmetic intrinsics: what each computes. Fast approximations (__expf) are the C library's accurate functions. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- min and max of any two arithmetic types, as CUDA's overloads convert them ---- */
#define SIMT_MIN_MAX(type, a_type, b_type)                                                                                     \
    static inline constexpr type min(a_type a, b_type b) { return (type)a < (type)b ? (type)a : (type)b; }                     \
    static inline constexpr type max(a_type a, b_type b) { return (type)a > (type)b ? (type)a : (type)b; }
#define SIMT_MIN_MAX_INTEGERS(s, u) SIMT_MIN_MAX(s, s, s) SIMT_MIN_MAX(u, u, u) SIMT_MIN_MAX(u, s, u) SIMT_MIN_MAX(u, u, s)
SIMT_MIN_MAX_INTEGERS(int, unsigned)
SIMT_MIN_MAX_INTEGERS(long, unsigned long)
SIMT_MIN_MAX_INTEGERS(long long, unsigned long long)
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
static inline double min(float a, double b) { return fmin(a, b); }
static inline double max(float a, double b) { return fmax(a, b); }
static inline double min(double a, float b) { return fmin(a, b); }
static inline double max(double a, float b) { return fmax(a, b); }
static inline unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
static inline unsigned umax(unsigned a, unsigned b) { return a > b ? a : b; }

/* ---- fast functions: macros where the C library has private functions of these names ---- */
#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __tanhf(x) tanhf(x)
#define __powf(x, y) powf(x, y)
#define __sincosf(x, sine, cosine) sincosf(x, sine, cosine)
static inline float __fdividef(float a, float b) { return a / b; }
static inline float fdividef(float a, float b) { return a / b; }
static inline float __saturatef(float x) { return !(x > 0.0f) ? 0.0f : x > 1.0f ? 1.0f : x; }
#if !__GLIBC_PREREQ(2, 42) /* glibc has them since then, and sinpi and cospi since 2.41 */
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
#endif
static inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
static inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
static inline double rcbrt(double x) { return 1.0 / cbrt(x); }
static inline float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
static inline float norm3df(float x, float y, float z) { return sqrtf(x * x + y * y + z * z); }
static inline float rnorm3df(float x, float y, float z) { return 1.0f / norm3df(x, y, z); }
#if !__GLIBC_PREREQ(2, 41)
static inline float sinpif(float x) { return (float)sin(M_PI * fmod(x, 2.0)); }
static inline float cospif(float x) { return (float)cos(M_PI * fmod(x, 2.0)); }
static inline double sinpi(double x) { return sin(M_PI * fmod(x, 2.0)); }
static inline double cospi(double x) { return cos(M_PI * fmod(x, 2.0)); }
#endif
static inline float normcdff(float x) { return 0.5f * erfcf(x * -0.70710678f); }
static inline double normcdf(double x) { return 0.5 * erfc(x * -0.70710678118654752); }

/* ---- arithmetic rounded to nearest, and never contracted ---- */
#define SIMT_ROUNDED(prefix, type, sqrt_)                                                                                      \
    static inline type prefix##add_rn(type a, type b) { return a + b; }                                                        \
    static inline type prefix##sub_rn(type a, type b) { return a - b; }                                                        \
    static inline type prefix##mul_rn(type a, type b) { return a * b; }                                                        \
    static inline type prefix##div_rn(type a, type b) { return a / b; }                                                        \
    static inline type prefix##sqrt_rn(type a) { return sqrt_(a); }                                                            \
    static inline type prefix##rcp_rn(type a) { return (type)1 / a; }
SIMT_ROUNDED(__f, float, sqrtf)
SIMT_ROUNDED(__d, double, sqrt)
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
static inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }

/* ---- conversions ---- */
namespace simt {
template <typename To, typename From> static inline To bit_cast(const From &from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}
/* Rounded already: what lies outside of the type becomes its nearest value, and NaN becomes 0. */
template <typename To> static inline To saturate(double x) {
    const To lowest = To(-1) < To(0) ? To(To(1) << (sizeof(To) * 8 - 1)) : To(0), highest = To(~lowest);
    return x != x ? To(0) : x <= (double)lowest ? lowest : x >= (double)highest ? highest : (To)x;
}
} // namespace simt
#define SIMT_BIT_CAST(name, to, from)                                                                                          \
    static inline to name(from x) { return simt::bit_cast<to>(x); }
SIMT_BIT_CAST(__float_as_int, int, float)
SIMT_BIT_CAST(__float_as_uint, unsigned, float)
SIMT_BIT_CAST(__int_as_float, float, int)
SIMT_BIT_CAST(__uint_as_float, float, unsigned)
SIMT_BIT_CAST(__double_as_longlong, long long, double)
SIMT_BIT_CAST(__longlong_as_double, double, long long)
static inline int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
static inline int __double2loint(double x) { return (int)__double_as_longlong(x); }
static inline double __hiloint2double(int high, int low) {
    return __longlong_as_double((long long)((uint64_t)(unsigned)high << 32 | (unsigned)low));
}
#define SIMT_TO_INTEGER(name, to, from)                                                                                        \
    static inline to name##_rn(from x) { return simt::saturate<to>(nearbyint(x)); }                                            \
    static inline to name##_rz(from x) { return simt::saturate<to>(trunc(x)); }                                                \
    static inline to name##_ru(from x) { return simt::saturate<to>(ceil(x)); }                                                 \
    static inline to name##_rd(from x) { return simt::saturate<to>(floor(x)); }
SIMT_TO_INTEGER(__float2int, int, float)
SIMT_TO_INTEGER(__float2uint, unsigned, float)
SIMT_TO_INTEGER(__float2ll, long long, float)
SIMT_TO_INTEGER(__float2ull, unsigned long long, float)
SIMT_TO_INTEGER(__double2int, int, double)
SIMT_TO_INTEGER(__double2uint, unsigned, double)
SIMT_TO_INTEGER(__double2ll, long long, double)
SIMT_TO_INTEGER(__double2ull, unsigned long long, double)
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline float __ll2float_rn(long long x) { return (float)x; }
static inline float __ull2float_rn(unsigned long long x) { return (float)x; }
static inline double __int2double_rn(int x) { return x; }
static inline double __uint2double_rn(unsigned x) { return x; }
static inline double __ll2double_rn(long long x) { return (double)x; }
static inline float __double2float_rn(double x) { return (float)x; }

/* ---- integers ---- */
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
static inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned long long __brevll(unsigned long long x) {
    unsigned long long reversed = 0;
    for (int i = 0; i < 64; i++) reversed |= (x >> i & 1) << (63 - i);
    return reversed;
}
static inline unsigned __brev(unsigned x) { return (unsigned)(__brevll(x) >> 32); }
static inline int __mul24(int a, int b) { return (int)((unsigned)(a << 8 >> 8) * (unsigned)(b << 8 >> 8)); }
static inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
static inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline unsigned __sad(int a, int b, unsigned c) { return c + (unsigned)(a > b ? a - b : b - a); }
static inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }
static inline int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
static inline int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    uint64_t bytes = (uint64_t)y << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) result |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
    return result;
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)((((uint64_t)high << 32 | low) << (shift & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}
static inline int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 32; i += 8) c += (int8_t)(a >> i) * (int8_t)(b >> i);
    return c;
}
