/* Conversions of float16, bfloat16 and the two types of 8 bits, bit for bit as a card makes them: to nearest even unless said otherwise. */
#include "machine.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

float simt_half_to_float(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = bits & 0x7fff;
    if (rest >= 0x7c00) return float_of(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    if (rest < 0x400) return (sign != 0 ? -1.0f : 1.0f) * (float)rest * 0x1p-24f;
    return float_of(sign | ((rest << 13) + ((127 - 15) << 23)));
}

float simt_bfloat16_to_float(uint16_t bits) { return float_of((uint32_t)bits << 16); }

float simt_fp8_to_float(uint8_t bits, int is_e5m2) {
    if (is_e5m2) return simt_half_to_float((uint16_t)(bits << 8));
    uint32_t sign = (uint32_t)(bits & 0x80) << 24, rest = bits & 0x7f;
    if (rest == 0x7f) return float_of(0x7fffffff);
    if (rest < 8) return (sign != 0 ? -1.0f : 1.0f) * (float)rest * 0x1p-9f;
    return float_of(sign | ((rest << 20) + ((127 - 7) << 23)));
}

uint8_t simt_fp8_from_double(double x, int is_e5m2, int saturates) {
    int fraction = is_e5m2 ? 2 : 3, lowest = is_e5m2 ? -14 : -6, exponent = lowest;
    uint8_t sign = signbit(x) != 0 ? 0x80 : 0, largest = is_e5m2 ? 0x7b : 0x7e;
    double a = fabs(x);
    if (x != x) return sign | 0x7f;
    if (isinf(x)) a = 0x1p20;
    if (a > 0.0) frexp(a, &exponent), exponent--;
    if (exponent < lowest) exponent = lowest;
    double bits = nearbyint(ldexp(a, fraction - exponent)) + ldexp(exponent - lowest, fraction);
    if (bits <= largest) return sign | (uint8_t)bits;
    return sign | (saturates ? largest : (uint8_t)(largest + 1)); /* in e5m2 infinity follows, in e4m3 NaN */
}

/* A format of 16 bits with `fraction` bits after the point and a smallest normal exponent of `lowest`. */
static uint16_t round_to(double x, int fraction, int lowest, enum simt_rounding rounding) {
    const uint16_t infinity = (uint16_t)(0x7fff >> fraction << fraction);
    if (x != x) return 0x7fff;
    bool negative = signbit(x) != 0;
    uint16_t sign = negative ? 0x8000 : 0;
    double a = fabs(x);
    int exponent = lowest;
    if (a > 0.0) frexp(a, &exponent), exponent--;
    if (exponent < lowest) exponent = lowest;
    double units = ldexp(a, fraction - exponent);                                   /* exact: a power of two */
    bool away = rounding != SIMT_TOWARD_ZERO && (rounding == SIMT_UP) == !negative; /* from 0, if not to nearest */
    double whole = rounding == SIMT_NEAREST ? nearbyint(units) : away ? ceil(units) : floor(units);
    /* Below 2^lowest the exponent field is 0, and a carry out of the fraction moves on to it by itself. */
    double bits = whole + ldexp(exponent - lowest, fraction);
    if (bits < infinity) return sign | (uint16_t)bits;
    return sign | (isinf(x) || rounding == SIMT_NEAREST || away ? infinity : (uint16_t)(infinity - 1));
}

uint16_t simt_half_from_double(double x, enum simt_rounding rounding) { return round_to(x, 10, -14, rounding); }
uint16_t simt_bfloat16_from_double(double x, enum simt_rounding rounding) { return round_to(x, 7, -126, rounding); }

uint16_t simt_half_from_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude < 0x38800000 || magnitude >= 0x47800000) return simt_half_from_double(x, SIMT_NEAREST);
    magnitude += 0xfff + (magnitude >> 13 & 1); /* to nearest even */
    return (uint16_t)((bits >> 16 & 0x8000) | ((magnitude - 0x38000000) >> 13));
}

uint16_t simt_bfloat16_from_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x) return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* ---- one operation in another rounding mode: volatile, so that the compiler computes nothing before the mode is set ---------- */
static const int modes[] = {
    [SIMT_NEAREST] = FE_TONEAREST, [SIMT_TOWARD_ZERO] = FE_TOWARDZERO, [SIMT_UP] = FE_UPWARD, [SIMT_DOWN] = FE_DOWNWARD};

#define ROUNDED(name, type, root, fused)                                                                                       \
    type name(enum simt_operation operation, enum simt_rounding rounding, long double a, long double b, long double c) {       \
        volatile long double wide = a;                                                                                         \
        volatile type x = (type)a, y = (type)b, z = (type)c, result;                                                           \
        int before = fegetround();                                                                                             \
        fesetround(modes[rounding & 3]);                                                                                       \
        switch (operation) {                                                                                                   \
        case SIMT_SUM: result = x + y; break;                                                                                  \
        case SIMT_DIFFERENCE: result = x - y; break;                                                                           \
        case SIMT_PRODUCT: result = x * y; break;                                                                              \
        case SIMT_QUOTIENT: result = x / y; break;                                                                             \
        case SIMT_FUSED: result = fused(x, y, z); break;                                                                       \
        case SIMT_ROOT: result = root(x); break;                                                                               \
        case SIMT_CONVERT: result = (type)wide; break;                                                                         \
        }                                                                                                                      \
        fesetround(before);                                                                                                    \
        return result;                                                                                                         \
    }
ROUNDED(simt_rounded_float, float, sqrtf, fmaf)
ROUNDED(simt_rounded_double, double, sqrt, fma)
