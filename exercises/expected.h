/* What the warm-ups must compute: they are written as steps, and mean something else by O and L. */
#ifndef EXPECTED_H
#define EXPECTED_H

#include "problem.h"

/* Fill `values` with what the warm-up `id` must write: TENSOR_O, or TENSOR_L, which is returned. `size` is how large the
 * terms of each value are, to which its rounding error is proportional. TENSOR_COUNT when the id is of no warm-up. Both
 * arrays have room for either tensor. */
enum tensor expected_of_warm_up(const char *id, const struct problem *problem, const float *Q, double *values, double *size);

#endif
