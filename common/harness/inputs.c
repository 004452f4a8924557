#include "inputs.h"

#include "border.h"

#include <math.h>
#include <string.h>

const char *const input_names[INPUT_KINDS] = {"random", "identity", "large", "example"};

const struct problem example_problem = {.batch = 1, .heads = 1, .N_q = 4, .N_kv = 4, .d = 4, .scale = 0.693147180559945309f};

static const float example[TENSOR_COUNT][4][4] = {
    [TENSOR_Q] = {{0, 0, 1, 0}, {0, 0, 1, 1}, {1, 0, 0, 0}, {2, 1, 1, 0}},
    [TENSOR_K] = {{0, 0, 1, 0}, {0, 2, 0, 0}, {-1, 0, 2, 1}, {1, 1, 0, 0}},
    [TENSOR_V] = {{1, 0, 2, 0}, {0, 3, 0, 1}, {4, 0, 0, -2}, {0, 1, -1, 5}},
    [TENSOR_dO] = {{1, 0, 0, 0}, {0, 1, 0, 1}, {0, 0, 1, 0}, {1, 1, 0, 0}},
};

static uint64_t splitmix64(uint64_t counter) {
    uint64_t z = (counter + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double standard_normal(uint64_t seed, uint64_t counter) {
    const double two_pi = 6.28318530717958647692;
    uint64_t bits = splitmix64(splitmix64(seed) + counter);
    double u1 = ((double)(bits >> 32) + 1.0) / 4294967296.0; /* in (0, 1], so that its logarithm is finite */
    double u2 = (double)(bits & 0xffffffffu) / 4294967296.0;
    return sqrt(-2.0 * log(u1)) * cos(two_pi * u2);
}

void fill_input(float *values, const struct problem *problem, enum tensor tensor, enum input_kind kind, uint64_t seed) {
    size_t rows = tensor_rows(problem, tensor), d = tensor_columns(problem, tensor);
    size_t N = (size_t)(tensor_table[tensor].per_key ? problem->N_kv : problem->N_q);
    if (kind == INPUT_EXAMPLE) {
        memcpy(values, example[tensor], sizeof example[tensor]);
        return;
    }
    /* A score of random inputs is about standard normal, so 4 sigma of it come to 1e4; in FP8, whose scores are exact to 13 bits, to 64. */
    double factor =
        kind == INPUT_LARGE && (tensor == TENSOR_Q || tensor == TENSOR_K) ? problem->dtype == FP8 ? 4.0 : 50.0 : 1.0;
    uint64_t stream = tensor == TENSOR_dO ? 3 : (uint64_t)tensor; /* Q, K, V, dO take turns in the counter */
#pragma omp parallel for
    for (size_t row = 0; row < rows; row++) {
        for (size_t c = 0; c < d; c++) {
            size_t i = row * d + c;
            if (kind == INPUT_IDENTITY)
                values[i] = row % N % d == c ? 1.0f : 0.0f;
            else
                values[i] = rounded_to((float)(factor * standard_normal(seed, 4 * (uint64_t)i + stream)), problem->dtype);
        }
    }
}
