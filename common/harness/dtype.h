/* The 16-bit floating-point formats, on the host. Rounding is to nearest, ties to even, as the cards do it. */
#pragma once

#include "attention.h"

#include <stdint.h>

/* Largest relative error of rounding to the type: 2^-24, 2^-11 and 2^-8. */
double unit_roundoff(enum dtype dtype);

/* A number in 16 bits, and back; only for FP16 and BF16. */
uint16_t packed_as(float value, enum dtype dtype);
float unpacked(uint16_t bits, enum dtype dtype);

/* The nearest number that the type can hold. */
float rounded_to(float value, enum dtype dtype);
