#include "inputs.h"

#include <math.h>

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

void fill_input(float *values, size_t rows, int N, int d, enum input_kind kind, enum input_tensor tensor,
                uint64_t seed) {
    /* A score of random inputs is about standard normal, so 4 sigma of it come to 1e4. */
    double factor = kind == INPUT_LARGE && (tensor == TENSOR_Q || tensor == TENSOR_K) ? 50.0 : 1.0;
#pragma omp parallel for
    for (size_t row = 0; row < rows; row++) {
        for (int c = 0; c < d; c++) {
            size_t i = row * (size_t)d + (size_t)c;
            if (kind == INPUT_IDENTITY)
                values[i] = (int)(row % (size_t)N) % d == c ? 1.0f : 0.0f;
            else
                values[i] = (float)(factor * standard_normal(seed, 4 * (uint64_t)i + (uint64_t)tensor));
        }
    }
}
