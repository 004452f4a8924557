/* Attention as it is written down, in fp32 on the host: what a kernel's rounding errors are compared with. It shares no
 * code with the kernels or with the oracle in reference.c. */
#ifndef MATH_ATTENTION_H
#define MATH_ATTENTION_H

#include "run.h"

/* S = scale Q K^T, P = softmax(S), O = P V; then dV = P^T dO, dP = dO V^T, dS = P o (dP - rowsum(P o dP)),
 * dQ = scale dS K, dK = scale dS^T Q. Every product, sum and exponential is rounded to fp32, sums are added up in order.
 * With a 16-bit problem->dtype, P, dS and the outputs are rounded to it, once each, and rowsum(P o dP) is rowsum(dO o O) of the
 * rounded O: what a kernel must round that multiplies on tensor cores. In FP8 a row of P is rounded to e4m3 where its largest weight is
 * 256, and O to bf16.
 * Of the inputs of a run, on the host: O, and with a backward pass dQ dK dV. L and the inputs stay NULL. Free it by free_math(). */
struct tensors math_attention(const struct run *run);
void free_math(struct tensors *tensors);

#endif
