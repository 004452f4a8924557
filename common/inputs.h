/* Test inputs, the same on every machine. */
#ifndef INPUTS_H
#define INPUTS_H

#include "attention.h"

#include <stdint.h>

enum input_kind {
    INPUT_RANDOM,   /* every element standard normal */
    INPUT_IDENTITY, /* row i is 1 in column i % d, 0 elsewhere: a wrong index shows at once */
    INPUT_LARGE,    /* random, with Q and K scaled so that scores reach about +-1e4 */
};

enum input_tensor { TENSOR_Q, TENSOR_K, TENSOR_V, TENSOR_dO };

/* Fill `values` (rows, d), rows counted over all heads of N rows each. Element i of a random tensor is
 * sqrt(-2 ln u1) cos(2 pi u2) (Box and Muller 1958), u1 and u2 from the two halves of splitmix64's output
 * (Steele, Lea, Flood 2014) at counter 4 i + tensor, offset by the seed: any element can be computed alone. */
void fill_input(float *values, size_t rows, int N, int d, enum input_kind kind, enum input_tensor tensor,
                uint64_t seed);

#endif
