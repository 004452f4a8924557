#include "dtype.h"

#include <math.h>
#include <string.h>

__extension__ typedef _Float16 half; /* the compiler's own IEEE binary16 */

double unit_roundoff(enum dtype dtype) { return dtype == FP32 ? 0x1p-24 : dtype == FP16 ? 0x1p-11 : 0x1p-8; }

uint16_t packed_as(float value, enum dtype dtype) {
    uint16_t packed;
    if (dtype == FP16) {
        half number = (half)value;
        memcpy(&packed, &number, sizeof packed);
        return packed;
    }
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value)) return (uint16_t)(bits >> 16 | 0x40); /* rounding must not make an infinity of it */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float unpacked(uint16_t packed, enum dtype dtype) {
    if (dtype == FP16) {
        half number;
        memcpy(&number, &packed, sizeof number);
        return (float)number;
    }
    uint32_t bits = (uint32_t)packed << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float rounded_to(float value, enum dtype dtype) { return dtype == FP32 ? value : unpacked(packed_as(value, dtype), dtype); }
