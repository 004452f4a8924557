/* The oracle's border for query heads that share K and V: the oracle itself sees one head of K and V per query head. */
#ifndef GROUPED_H
#define GROUPED_H

#include "attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As reference_forward_rows(), with K and V (batch, kv_heads(), N_kv, d). Each row that is asked for becomes a problem of one head:
 * its row of its head of Q, and the K and V of its group. */
double grouped_forward_rows(const struct problem *problem, const float *Q, const float *K, const float *V, const size_t *rows,
                            size_t count, double *O_rows, double *L_rows);

#ifdef __cplusplus
}
#endif

#endif
