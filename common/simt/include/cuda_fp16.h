/* float16: conversions bit for bit, arithmetic rounded as on a card. */
#pragma once
#ifdef __cplusplus

#include "simt_small_float.h"

SIMT_SMALL_FLOAT(__half, __half2, half, half2)
#if __cplusplus >= 201703L
SIMT_SMALL_ATOMICS(__half, __half2)
#endif
typedef __half half, nv_half, __nv_half;
typedef __half2 half2, nv_half2, __nv_half2;
#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7C00U)
#define CUDART_NAN_FP16 __ushort_as_half((unsigned short)0x7FFFU)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7BFFU)
#define CUDART_ZERO_FP16 __ushort_as_half((unsigned short)0x0000U)
#define CUDART_ONE_FP16 __ushort_as_half((unsigned short)0x3C00U)

#endif
