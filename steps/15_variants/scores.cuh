// Softcap: tanh and its derivative from one exponential.
//
// tanh(x) = 1 - 2 r and 1 - tanh(x)^2 = 4 r (1 - r) with r = 1 / (1 + e^2x). Its error is some 2^-23, also where softcap multiplies
// it by 50; the machine's tanh.approx has 2^-11, which would be 0.02 in the score, and 2 % in the weight.
#ifndef SCORES_CUH
#define SCORES_CUH

#include "ptx.cuh"
#include "tensor.cuh"

// s becomes tanh(s factor), with factor = scale / softcap. Returns the derivative of softcap tanh(x / softcap): 1 - tanh^2.
__device__ __forceinline__ float cap(float &s, float factor) {
    float r = __fdividef(1.0f, 1.0f + exp2_approx(s * (factor * 2.0f * LOG2_E)));
    s = 1.0f - 2.0f * r;
    return 4.0f * r * (1.0f - r);
}

#endif
