/* The right answers for a run's inputs, in double precision (common/harness/reference.h), and how large the terms of each gradient are. */
#ifndef ORACLE_H
#define ORACLE_H

#include <criterion/criterion.h>

#include "border.h"
#include "reference.h"
#include "run.h"

#include <stdlib.h>

struct oracle {
    double
        *values[TENSOR_COUNT]; /* O and L; with a backward pass dQ, dK and dV, and the size of their terms; else NULL */
    double *size[TENSOR_COUNT];
    double *D;
};

static inline double *doubles(size_t count) {
    double *values = calloc(count, sizeof *values);
    cr_assert_not_null(values);
    return values;
}

/* Free it by free_oracle(). */
static inline struct oracle ask_oracle(const struct run *run) {
    const struct problem *p = &run->problem;
    float *const *in = run->host;
    struct oracle oracle = {.D = doubles(tensor_rows(p, TENSOR_Q))};
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        if (!is_output(tensor) || (is_backward(tensor) && !run->backward)) continue;
        oracle.values[tensor] = doubles(tensor_elements(p, tensor));
        oracle.size[tensor] = doubles(tensor_elements(p, tensor));
    }
    const double *L = oracle.values[TENSOR_L], *D = oracle.D;
    float *Q = as_seen(p, TENSOR_Q, in[TENSOR_Q]), *K = as_seen(p, TENSOR_K, in[TENSOR_K]), *V = as_seen(p, TENSOR_V, in[TENSOR_V]);
    reference_forward_rows(p, Q, K, V, NULL, tensor_rows(p, TENSOR_Q), oracle.values[TENSOR_O],
                         oracle.values[TENSOR_L]);
    free(V);
    if (!run->backward) {
        free(Q), free(K);
        return oracle;
    }
    reference_D(p, in[TENSOR_dO], oracle.values[TENSOR_O], oracle.D);
    reference_backward_rows(p, Q, K, in[TENSOR_V], in[TENSOR_dO], L, D, NULL,
                            tensor_rows(p, TENSOR_Q), oracle.values[TENSOR_dQ], oracle.size[TENSOR_dQ]);
    reference_backward_keys(p, Q, K, in[TENSOR_V], in[TENSOR_dO], L, D, NULL,
                            tensor_rows(p, TENSOR_K), oracle.values[TENSOR_dK], oracle.values[TENSOR_dV],
                            oracle.size[TENSOR_dK], oracle.size[TENSOR_dV]);
    free(Q), free(K);
    for (enum tensor tensor = TENSOR_dQ; tensor <= TENSOR_dK; tensor++) {
        rotate_rows(p, tensor, NULL, tensor_rows(p, tensor), oracle.values[tensor], true, false);
        rotate_rows(p, tensor, NULL, tensor_rows(p, tensor), oracle.size[tensor], true, true);
    }
    return oracle;
}

static inline void free_oracle(struct oracle *oracle) {
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++)
        free(oracle->values[tensor]), free(oracle->size[tensor]);
    free(oracle->D);
}

/* math_attention.c: attention as it is written down, in fp32 on the host: what a kernel's rounding errors are compared with. It shares no
 * code with the kernels or with the oracle in reference.c. */

/* S = scale Q K^T, P = softmax(S), O = P V; then dV = P^T dO, dP = dO V^T, dS = P o (dP - rowsum(P o dP)),
 * dQ = scale dS K, dK = scale dS^T Q. Every product, sum and exponential is rounded to fp32, sums are added up in order.
 * With a 16-bit problem->dtype, P, dS and the outputs are rounded to it, once each, and rowsum(P o dP) is rowsum(dO o O) of the
 * rounded O: what a kernel must round that multiplies on tensor cores. In FP8 a row of P is rounded to e4m3 where its largest weight is
 * 256, and O to bf16.
 * Of the inputs of a run, on the host: O, and with a backward pass dQ dK dV. L and the inputs stay NULL. Free it by free_math(). */
struct tensors math_attention(const struct run *run);
void free_math(struct tensors *tensors);

#endif
