// Softcap: c tanh(s / c) and its derivative, as accurate as s itself at every c.
//
// tanh(x) = 1 - 2 / (1 + e^2x) has an absolute error of some 2^-22: where c is large beside s, c tanh(s / c) would lose s in it. The
// machine's tanh.approx has a relative error of 2^-11, which would be 0.02 in a score of 50, and 2 % in the weight. A quotient of two
// polynomials has a relative error below 5 * 2^-23, and it takes one operation of the unit for exponentials instead of two.
#ifndef SCORES_CUH
#define SCORES_CUH

#include <math.h>

#include "attention.h"
#include "ptx.cuh"
#include "tensor.cuh"

// Largest cap that is computed with. A larger one would change no score below 2^28, and above it fp32 does not have units.
__device__ __forceinline__ float largest_score(const problem &p) { return fminf(p.softcap, 0x1p40f); }

// tanh(x) = x A(x^2) / B(x^2) up to |x| = 8, where it is 1 to two units in the last place. The coefficients minimise the largest relative
// error under A(0) = B(0) = 1: a small x stays as it is. NaN stays NaN.
__device__ __forceinline__ float capped_at_1(float x) {
    float z = x * x;
    float A = fmaf(fmaf(fmaf(1.1474953e-5f, z, 2.9557919e-3f), z, 0.12930340f), z, 1.0f);
    float B = fmaf(fmaf(fmaf(fmaf(2.4731835e-7f, z, 2.3931276e-4f), z, 0.023835720f), z, 0.46263594f), z, 1.0f);
    return fabsf(x) > 8.0f ? copysignf(1.0f, x) : x * A * reciprocal_approx(B);
}

// s becomes tanh(s factor), with factor = scale / softcap. Returns the derivative of softcap tanh(x / softcap): 1 - tanh^2.
__device__ __forceinline__ float cap(float &s, float factor) {
    s = capped_at_1(s * factor);
    return 1.0f - s * s;
}

#endif
