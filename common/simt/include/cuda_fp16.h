/* float16: conversions bit for bit, arithmetic rounded as on a card. */
#ifndef SIMT_CUDA_FP16_H
#define SIMT_CUDA_FP16_H
#ifdef __cplusplus

#include "simt_small_float.h"

SIMT_SMALL_FLOAT(__half, __half2, __half_raw, __half2_raw, simt_half_from_float, simt_half_to_float, simt_half_from_double)
typedef __half half, nv_half;
typedef __half2 half2, nv_half2;

static inline __half __float2half(float x) { return __half(x); }
static inline __half __float2half_rn(float x) { return __half(x); }
static inline __half __float2half_rz(float x) { return __half::of_bits(simt_half_from_double(x, SIMT_TOWARD_ZERO)); }
static inline __half __float2half_ru(float x) { return __half::of_bits(simt_half_from_double(x, SIMT_UP)); }
static inline __half __float2half_rd(float x) { return __half::of_bits(simt_half_from_double(x, SIMT_DOWN)); }
static inline __half __double2half(double x) { return __half(x); }
static inline float __half2float(__half x) { return float(x); }
static inline __half2 __float2half2_rn(float x) { return __half2(x, x); }
static inline __half2 __floats2half2_rn(float x, float y) { return __half2(x, y); }
static inline __half2 __float22half2_rn(float2 v) { return __half2(v.x, v.y); }
static inline float2 __half22float2(__half2 v) { return make_float2(float(v.x), float(v.y)); }
static inline __half2 __half2half2(__half x) { return __half2(x, x); }
static inline __half2 __halves2half2(__half x, __half y) { return __half2(x, y); }
static inline __half2 make_half2(__half x, __half y) { return __half2(x, y); }
static inline __half2 make___half2(__half x, __half y) { return __half2(x, y); }
static inline __half __low2half(__half2 v) { return v.x; }
static inline __half __high2half(__half2 v) { return v.y; }
static inline __half2 __low2half2(__half2 v) { return __half2(v.x, v.x); }
static inline __half2 __high2half2(__half2 v) { return __half2(v.y, v.y); }
static inline __half2 __lowhigh2highlow(__half2 v) { return __half2(v.y, v.x); }
static inline __half2 __lows2half2(__half2 a, __half2 b) { return __half2(a.x, b.x); }
static inline __half2 __highs2half2(__half2 a, __half2 b) { return __half2(a.y, b.y); }
static inline unsigned short __half_as_ushort(__half x) { return x.bits; }
static inline short __half_as_short(__half x) { return (short)x.bits; }
static inline __half __ushort_as_half(unsigned short bits) { return __half::of_bits(bits); }
static inline __half __short_as_half(short bits) { return __half::of_bits((unsigned short)bits); }
static inline __half __int2half_rn(int x) { return __half(x); }
static inline __half __uint2half_rn(unsigned x) { return __half(x); }
static inline __half __short2half_rn(short x) { return __half((int)x); }
static inline int __half2int_rn(__half x) { return __float2int_rn(float(x)); }
static inline int __half2int_rz(__half x) { return __float2int_rz(float(x)); }
static inline unsigned __half2uint_rn(__half x) { return __float2uint_rn(float(x)); }
static inline unsigned __half2uint_rz(__half x) { return __float2uint_rz(float(x)); }
#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7C00U)
#define CUDART_NAN_FP16 __ushort_as_half((unsigned short)0x7FFFU)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7BFFU)
#define CUDART_ZERO_FP16 __ushort_as_half((unsigned short)0x0000U)
#define CUDART_ONE_FP16 __ushort_as_half((unsigned short)0x3C00U)

#endif
#endif
