/* Conversions of float16 and bfloat16, bit for bit as a card makes them: to nearest even unless said otherwise. */
#include "machine.h"

#include <math.h>
#include <string.h>

float simt_half_to_float(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = bits & 0x7fff;
    if (rest >= 0x7c00) return float_of(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    if (rest < 0x400) return (sign != 0 ? -1.0f : 1.0f) * (float)rest * 0x1p-24f;
    return float_of(sign | ((rest << 13) + ((127 - 15) << 23)));
}

float simt_bfloat16_to_float(uint16_t bits) { return float_of((uint32_t)bits << 16); }

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
