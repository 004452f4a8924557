/* The oracle's border: what it does not see of a problem (attention.h), 16-bit types, rotary embedding and the pages of a cache. */
#pragma once

#include "problem.h"

#include <stdint.h>

/* Largest relative error of rounding to the type: 2^-24, 2^-11 and 2^-8. */
double unit_roundoff(enum dtype dtype);

/* A number in 16 bits, and back; only for FP16 and BF16. Rounding is to nearest, ties to even, as the cards do it. */
uint16_t packed_as(float value, enum dtype dtype);
float unpacked(uint16_t bits, enum dtype dtype);

/* The nearest number that the type can hold. */
float rounded_to(float value, enum dtype dtype);

/* Rows rows[0..count) of Q or K, all where rows is NULL, rotated by their positions, where the problem says so: values (count, d). Back: dQ or dK, by the opposite
 * angles. With squares: of the size of each number, whose squares add up. */
void rotate_rows(const struct problem *problem, enum tensor tensor, const size_t *rows, size_t count, double *values, bool back,
                 bool squares);

/* A copy of Q or K as the oracle sees it: rotated and rounded to the type, for the caller to free. */
float *rotated(const struct problem *problem, enum tensor tensor, const float *values);

/* Pages for the lengths of the problem: sets page_count and a table of page numbers in an order that `seed` draws, with a few pages
 * that nobody uses. The table, (batch, pages_per_sequence()), is the caller's to free; entries of keys that do not exist are -1. */
int *make_pages(struct problem *problem, unsigned long long seed);

/* K or V (batch, kv_heads(), N_kv, d) as pages (page_count, kv_heads(), page_size, d), NaN where no key lies; the caller's to free. */
float *in_pages(const struct problem *problem, const float *values);
