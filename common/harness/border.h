/* The oracle's border: what it does not see of a problem (attention.h), types of 16 and 8 bits, rotary embedding and the pages of a
 * cache. */
#pragma once

#include "problem.h"

#include <stdint.h>

/* Largest relative error of rounding to the type: 2^-24, 2^-11, 2^-8, and 2^-4 of E4M3, to which P is rounded in FP8. */
double unit_roundoff(enum dtype dtype);

/* A number in 16 bits, and back; FP8's is that of O, BF16. Rounding is to nearest, ties to even, as the cards do it. */
uint16_t packed_as(float value, enum dtype dtype);
float unpacked(uint16_t bits, enum dtype dtype);

/* The nearest number that the type can hold; in FP8 the number itself, for it depends on a scale. */
float rounded_to(float value, enum dtype dtype);

/* A number in 8 bits, to nearest, ties to even, and the largest one beyond it; and back. */
uint8_t fp8_of(float value, enum fp8 format);
float of_fp8(uint8_t bits, enum fp8 format);
float largest_fp8(enum fp8 format);

/* FP8: Q, K or V as 8-bit numbers, and the scale of each SCALE_ROWS rows of a head. A scale takes the largest finite size among the
 * rows that share it to the largest number of the type; where that size is 0 or the scale would be subnormal, it is 1 or 2^-126. */
void quantise(const struct problem *problem, enum tensor tensor, const float *values, uint8_t *bits, float *scales);
size_t scale_count(const struct problem *problem, enum tensor tensor);

/* Rows rows[0..count) of Q or K, all where rows is NULL, rotated by their positions, where the problem says so: values (count, d). Back: dQ or dK, by the opposite
 * angles. With squares: of the size of each number, whose squares add up. */
void rotate_rows(const struct problem *problem, enum tensor tensor, const size_t *rows, size_t count, double *values, bool back,
                 bool squares);

/* A copy of Q, K or V as the oracle sees it: rotated, or multiplied by a Hadamard matrix, and rounded to the type, in FP8 with its scales,
 * for the caller to free. */
float *as_seen(const struct problem *problem, enum tensor tensor, const float *values);

/* Pages for the lengths of the problem: sets page_count and a table of page numbers in an order that `seed` draws, with a few pages
 * that nobody uses. The table, (batch, pages_per_sequence()), is the caller's to free; entries of keys that do not exist are -1. */
int *make_pages(struct problem *problem, unsigned long long seed);

/* K or V (batch, kv_heads(), N_kv, d) as pages (page_count, kv_heads(), page_size, d), NaN where no key lies; the caller's to free. */
float *in_pages(const struct problem *problem, const float *values);
