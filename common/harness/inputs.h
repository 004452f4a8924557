/* Test inputs, the same on every machine. */
#pragma once

#include "problem.h"

#include <stdint.h>

enum input_kind {
    INPUT_RANDOM,   /* every element standard normal */
    INPUT_IDENTITY, /* row i is 1 in column i % d, 0 elsewhere: a wrong index shows at once */
    INPUT_LARGE,    /* random, with Q and K scaled so that scores reach about +-1e4 */
    INPUT_EXAMPLE,  /* the 4 x 4 example of docs/math.md: example_problem */
    INPUT_OUTLIERS, /* random, and in Q, K and V one element in a thousand gets a normal number of standard deviation 10 more */
    INPUT_SINK, /* random, but key 0 has 16 times the weight of all other keys together, more or less, and its row of V is 0 */
    INPUT_FLAT, /* Q is 0, so that all weights of a row are equal, and V lies evenly between 0 and 1 */
    INPUT_KINDS
};
extern const char *const input_names[INPUT_KINDS];

/* One head, 4 queries, 4 keys, d 4, scale ln 2: exp(S) are powers of two, and every weight is a fraction. */
extern const struct problem example_problem;

/* Fill an input tensor of the problem, with numbers that its data type can hold. Element i of a random tensor is
 * sqrt(-2 ln u1) cos(2 pi u2) (Box and Muller 1958), u1 and u2 from the two halves of splitmix64's output (Steele, Lea,
 * Flood 2014) at a counter of i and the tensor, offset by the seed: any element can be computed alone. */
void fill_input(float *values, const struct problem *problem, enum tensor tensor, enum input_kind kind, uint64_t seed);
