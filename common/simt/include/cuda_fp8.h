/* The floating-point types of 8 bits: conversions bit for bit, to nearest even; arithmetic they have none. Types convert saturating. */
#pragma once
#ifdef __cplusplus

#include "cuda_bf16.h"
#include "cuda_fp16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned __nv_fp8x4_storage_t;
typedef enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE } __nv_saturation_t;
typedef enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 } __nv_fp8_interpretation_t;

static inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturate, __nv_fp8_interpretation_t type) {
    return simt_fp8_from_double(x, type == __NV_E5M2, saturate == __NV_SATFINITE);
}
static inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturate, __nv_fp8_interpretation_t type) {
    return x != x ? 0x7f : __nv_cvt_double_to_fp8(x, saturate, type); /* NaN loses its sign */
}
static inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t saturate,
                                                         __nv_fp8_interpretation_t type) {
    return __nv_cvt_float_to_fp8(simt_half_to_float(x.x), saturate, type);
}
static inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x, __nv_saturation_t saturate,
                                                             __nv_fp8_interpretation_t type) {
    return __nv_cvt_float_to_fp8(simt_bfloat16_to_float(x.x), saturate, type);
}
static inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t type) {
    float wide = simt_fp8_to_float(x, type == __NV_E5M2);
    return {wide != wide ? (unsigned short)0x7fff : simt_half_from_float(wide)};
}
/* Pairs: the first number in the lower half. */
#define SIMT_FP8_PAIR(name, T, first, second)                                                                                  \
    static inline __nv_fp8x2_storage_t __nv_cvt_##name##_to_fp8x2(T x, __nv_saturation_t saturate,                             \
                                                                  __nv_fp8_interpretation_t type) {                            \
        unsigned low = first, high = second;                                                                                   \
        return (__nv_fp8x2_storage_t)(low | high << 8);                                                                        \
    }
SIMT_FP8_PAIR(double2, double2, __nv_cvt_double_to_fp8(x.x, saturate, type), __nv_cvt_double_to_fp8(x.y, saturate, type))
SIMT_FP8_PAIR(float2, float2, __nv_cvt_float_to_fp8(x.x, saturate, type), __nv_cvt_float_to_fp8(x.y, saturate, type))
SIMT_FP8_PAIR(halfraw2, __half2_raw, __nv_cvt_halfraw_to_fp8({x.x}, saturate, type),
              __nv_cvt_halfraw_to_fp8({x.y}, saturate, type))
SIMT_FP8_PAIR(bfloat16raw2, __nv_bfloat162_raw, __nv_cvt_bfloat16raw_to_fp8({x.x}, saturate, type),
              __nv_cvt_bfloat16raw_to_fp8({x.y}, saturate, type))
#undef SIMT_FP8_PAIR
static inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t type) {
    return {__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)x, type).x,
            __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(x >> 8), type).x};
}

#define SIMT_FP8(T, interpretation)                                                                                            \
    struct __nv_fp8_##T {                                                                                                      \
        __nv_fp8_storage_t __x;                                                                                                \
        __nv_fp8_##T() = default;                                                                                              \
        explicit __nv_fp8_##T(float x) : __x(__nv_cvt_float_to_fp8(x, __NV_SATFINITE, interpretation)) {}                      \
        explicit __nv_fp8_##T(double x) : __x(__nv_cvt_double_to_fp8(x, __NV_SATFINITE, interpretation)) {}                    \
        explicit __nv_fp8_##T(__half x) : __nv_fp8_##T(float(x)) {}                                                            \
        explicit __nv_fp8_##T(__nv_bfloat16 x) : __nv_fp8_##T(float(x)) {}                                                     \
        template <typename _I, typename = typename std::enable_if<std::is_integral<_I>::value>::type>                          \
        explicit __nv_fp8_##T(_I x) : __nv_fp8_##T((double)x) {}                                                               \
        explicit operator float() const { return simt_fp8_to_float(__x, interpretation == __NV_E5M2); }                        \
        explicit operator double() const { return float(*this); }                                                              \
        explicit operator __half() const { return __half(__nv_cvt_fp8_to_halfraw(__x, interpretation)); }                      \
        explicit operator __nv_bfloat16() const { return __nv_bfloat16(float(*this)); }                                        \
        explicit operator bool() const { return (__x & 0x7f) != 0; }                                                           \
    };                                                                                                                         \
    struct alignas(2) __nv_fp8x2_##T {                                                                                         \
        __nv_fp8x2_storage_t __x;                                                                                              \
        __nv_fp8x2_##T() = default;                                                                                            \
        explicit __nv_fp8x2_##T(float2 x) : __x(__nv_cvt_float2_to_fp8x2(x, __NV_SATFINITE, interpretation)) {}                \
        explicit operator float2() const {                                                                                     \
            return make_float2(simt_fp8_to_float((__nv_fp8_storage_t)__x, interpretation == __NV_E5M2),                        \
                               simt_fp8_to_float((__nv_fp8_storage_t)(__x >> 8), interpretation == __NV_E5M2));                \
        }                                                                                                                      \
        explicit operator __half2() const { return __half2(__half(float2(*this).x), __half(float2(*this).y)); }                \
    };                                                                                                                         \
    struct alignas(4) __nv_fp8x4_##T {                                                                                         \
        __nv_fp8x4_storage_t __x;                                                                                              \
        __nv_fp8x4_##T() = default;                                                                                            \
        explicit __nv_fp8x4_##T(float4 x)                                                                                      \
            : __x(__nv_fp8x2_##T(make_float2(x.x, x.y)).__x | (unsigned)__nv_fp8x2_##T(make_float2(x.z, x.w)).__x << 16) {}    \
    };
SIMT_FP8(e4m3, __NV_E4M3)
SIMT_FP8(e5m2, __NV_E5M2)
#undef SIMT_FP8

#endif
