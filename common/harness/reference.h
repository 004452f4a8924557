/* The oracle: attention forward and backward on the CPU, in double precision, written to be obviously right.
 * Shapes as in attention.h. Rows are counted over all heads: row r is query r % N_q of head r / N_q; key rows likewise
 * with N_kv. Windows, softcap, ALiBi, dropout, packed sequences, lengths and grouped heads are terms of its mask and of its scores;
 * 16-bit types, pages and rotary embedding are not its concern (border.h). Pointers in struct problem are the host's here. */
#pragma once

#include "variants.h"

/* Philox 4x32-10 (attention.h); the counter becomes four random words. */
void reference_philox(uint32_t counter[4], uint32_t key0, uint32_t key1);

/* What dropout multiplies the weight of key j of the sequence by: 0 or 1 / (1 - dropout). */
double kept_weight(const struct problem *problem, const struct sight *sight, long long j);

/* Forward for the query rows listed in rows[0..count), the first ones where rows is NULL: O_rows (count, d), L_rows (count).
 * Each row depends on no other, so a large problem can be checked on a sample of its rows. Returns the largest
 * scale * sum_c |q_c k_c| over the unmasked pairs of those rows: the size of the terms in a score, to which a score's
 * rounding error is proportional. */
double reference_forward_rows(const struct problem *problem, const float *Q, const float *K, const float *V, const size_t *rows,
                              size_t count, double *O_rows, double *L_rows);

/* Forward for every row: O (batch, heads, N_q, d), L (batch, heads, N_q). Returns as above. */
double reference_forward(const struct problem *problem, const float *Q, const float *K, const float *V, double *O, double *L);

/* Backward for every row, from the inputs and dO alone (O and L are computed again in double):
 * dQ (batch, heads, N_q, d), dK and dV (batch, kv_heads(), N_kv, d). docs/math.md, backward. */
void reference_backward(const struct problem *problem, const float *Q, const float *K, const float *V, const float *dO,
                        double *dQ, double *dK, double *dV);

/* D_i = dO_i . O_i for every query row: D (batch, heads, N_q). */
void reference_D(const struct problem *problem, const float *dO, const double *O, double *D);

/* Backward for the query rows listed in rows[0..count), every row where rows is NULL, with L and D (batch, heads, N_q)
 * given, so that a row costs O(N_kv d): dQ (count, d). `size` (count, d) is how large the terms of each sum are, as the
 * root of the sum of their squares, with the terms of dP - D before they cancel: what a rounding error is relative to. */
void reference_backward_rows(const struct problem *problem, const float *Q, const float *K, const float *V, const float *dO,
                             const double *L, const double *D, const size_t *rows, size_t count, double *dQ, double *size);

/* The same for key rows: dK and dV (count, d) and their sizes. */
void reference_backward_keys(const struct problem *problem, const float *Q, const float *K, const float *V, const float *dO,
                             const double *L, const double *D, const size_t *keys, size_t count, double *dK, double *dV,
                             double *dK_size, double *dV_size);
