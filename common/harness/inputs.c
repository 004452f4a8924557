#include "inputs.h"

#include "border.h"

#include <math.h>
#include <string.h>

const char *const input_names[INPUT_KINDS] = {"random", "identity", "large", "example", "outliers", "sink", "flat"};

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

/* Element i of a tensor, one of its own in each of 2^8 series. */
static double normal_of(uint64_t seed, enum tensor tensor, size_t i, uint64_t series) {
    uint64_t stream = tensor == TENSOR_dO ? 3 : (uint64_t)tensor; /* Q, K, V, dO take turns in the counter */
    return standard_normal(seed, (4 * (uint64_t)i + stream) | series << 56);
}
static double uniform_of(uint64_t seed, enum tensor tensor, size_t i, uint64_t series) {
    return (double)(splitmix64(splitmix64(seed) + ((4 * (uint64_t)i + (uint64_t)tensor) | series << 56)) >> 11) * 0x1p-53;
}

/* FlashAttention-3's distribution (Shah et al. 2024, section 4.3): N(0, 1) + N(0, 100), the latter with probability 0.001. */
static double outlier_of(uint64_t seed, enum tensor tensor, size_t i) {
    return uniform_of(seed, tensor, i, 1) < 0.001 ? 10.0 * normal_of(seed, tensor, i, 2) : 0.0;
}

/* The last column carries the score of key 0 and no other one: Q has 8 there, K has 0, and in key 0 what makes the score ln(16 (N_kv - 1)) + 1/2,
 * since the weights of standard normal scores are e^(1/2) in the mean. The other columns of key 0 are 0. The last column is one of the
 * pair that a rotary embedding turns least. */
static double sink_of(const struct problem *problem, enum tensor tensor, size_t row, size_t c, double number) {
    const double in_Q = 8.0, largest = 1024.0;
    bool last = c + 1 == (size_t)problem->d, key0 = row % (size_t)problem->N_kv == 0;
    if (tensor == TENSOR_Q) return last ? in_Q : number;
    if (tensor == TENSOR_V) return key0 ? 0.0 : number;
    if (tensor != TENSOR_K || !(last || key0)) return number;
    double scale = (double)problem->scale, score = log(16.0 * fmax(problem->N_kv - 1, 1)) + 0.5;
    return last && key0 && scale != 0.0 ? fmax(-largest, fmin(score / scale / in_Q, largest)) : 0.0;
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
#pragma omp parallel for
    for (size_t row = 0; row < rows; row++) {
        for (size_t c = 0; c < d; c++) {
            size_t i = row * d + c;
            double number = factor * normal_of(seed, tensor, i, 0);
            if (kind == INPUT_IDENTITY) number = row % N % d == c;
            if (kind == INPUT_OUTLIERS && tensor <= TENSOR_V) number += outlier_of(seed, tensor, i);
            if (kind == INPUT_SINK) number = sink_of(problem, tensor, row, c, number);
            if (kind == INPUT_FLAT && tensor == TENSOR_Q) number = 0.0;
            if (kind == INPUT_FLAT && tensor == TENSOR_V) number = uniform_of(seed, tensor, i, 1);
            values[i] = rounded_to((float)number, problem->dtype);
        }
    }
}
