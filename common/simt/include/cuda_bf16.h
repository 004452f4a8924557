/* bfloat16: conversions bit for bit, arithmetic rounded as on a card. */
#pragma once
#ifdef __cplusplus

#include "simt_small_float.h"

SIMT_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162)
#if __cplusplus >= 201703L
SIMT_SMALL_ATOMICS(__nv_bfloat16, __nv_bfloat162)
#endif
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
#define CUDART_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7F80U)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x0000U)
#define CUDART_ONE_BF16 __ushort_as_bfloat16((unsigned short)0x3F80U)

#endif
