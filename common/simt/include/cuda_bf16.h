/* bfloat16: conversions bit for bit, arithmetic rounded as on a card. */
#ifndef SIMT_CUDA_BF16_H
#define SIMT_CUDA_BF16_H
#ifdef __cplusplus

#include "simt_small_float.h"

SIMT_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat162, __nv_bfloat16_raw, __nv_bfloat162_raw, simt_bfloat16_from_float,
                 simt_bfloat16_to_float, simt_bfloat16_from_double)
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

static inline __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
static inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
static inline __nv_bfloat16 __float2bfloat16_rz(float x) {
    return __nv_bfloat16::of_bits(simt_bfloat16_from_double(x, SIMT_TOWARD_ZERO));
}
static inline __nv_bfloat16 __float2bfloat16_ru(float x) {
    return __nv_bfloat16::of_bits(simt_bfloat16_from_double(x, SIMT_UP));
}
static inline __nv_bfloat16 __float2bfloat16_rd(float x) {
    return __nv_bfloat16::of_bits(simt_bfloat16_from_double(x, SIMT_DOWN));
}
static inline __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(x); }
static inline float __bfloat162float(__nv_bfloat16 x) { return float(x); }
static inline __nv_bfloat162 __float2bfloat162_rn(float x) { return __nv_bfloat162(x, x); }
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return __nv_bfloat162(x, y); }
static inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return __nv_bfloat162(v.x, v.y); }
static inline float2 __bfloat1622float2(__nv_bfloat162 v) { return make_float2(float(v.x), float(v.y)); }
static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return __nv_bfloat162(x, x); }
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return __nv_bfloat162(x, y); }
static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return __nv_bfloat162(x, y); }
static inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
static inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
static inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 v) { return __nv_bfloat162(v.x, v.x); }
static inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 v) { return __nv_bfloat162(v.y, v.y); }
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
static inline short __bfloat16_as_short(__nv_bfloat16 x) { return (short)x.bits; }
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16::of_bits(bits); }
static inline __nv_bfloat16 __short_as_bfloat16(short bits) { return __nv_bfloat16::of_bits((unsigned short)bits); }
static inline __nv_bfloat16 __int2bfloat16_rn(int x) { return __nv_bfloat16(x); }
static inline __nv_bfloat16 __uint2bfloat16_rn(unsigned x) { return __nv_bfloat16(x); }
static inline int __bfloat162int_rn(__nv_bfloat16 x) { return __float2int_rn(float(x)); }
static inline int __bfloat162int_rz(__nv_bfloat16 x) { return __float2int_rz(float(x)); }
#define CUDART_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7F80U)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x0000U)
#define CUDART_ONE_BF16 __ushort_as_bfloat16((unsigned short)0x3F80U)

#endif
#endif
