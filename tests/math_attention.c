#include "math_attention.h"

#include "dtype.h"

#include <math.h>
#include <stdlib.h>

/* C (rows, cols) = alpha A B, A (rows, depth) with elements A_step and rows A_row apart, B (depth, cols) likewise. */
static void matmul(float *C, const float *A, size_t A_row, size_t A_step, const float *B, size_t B_row, size_t B_step,
                   int rows, int cols, int depth, float alpha) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            float sum = 0.0f;
            for (int k = 0; k < depth; k++)
                sum += A[(size_t)i * A_row + (size_t)k * A_step] * B[(size_t)k * B_row + (size_t)j * B_step];
            C[(size_t)i * (size_t)cols + (size_t)j] = alpha * sum;
        }
}

/* One row of S becomes P; its keys from `attended` on get 0. */
static void softmax(float *S, int keys, int attended) {
    float largest = -INFINITY, sum = 0.0f;
    for (int j = 0; j < attended; j++) largest = fmaxf(largest, S[j]);
    for (int j = 0; j < attended; j++) sum += S[j] = expf(S[j] - largest);
    for (int j = 0; j < keys; j++) S[j] = j < attended ? S[j] / sum : 0.0f;
}

static void round_all(float *values, size_t count, enum dtype dtype) {
    for (size_t i = 0; i < count; i++) values[i] = rounded_to(values[i], dtype);
}

static void head_attention(const struct problem *p, const float *Q, const float *K, const float *V, const float *dO,
                           float *O, float *dQ, float *dK, float *dV) {
    size_t d = (size_t)p->d, N_kv = (size_t)p->N_kv;
    float *P = malloc((size_t)p->N_q * N_kv * sizeof *P), *dS = malloc((size_t)p->N_q * N_kv * sizeof *dS);
    if (P == NULL || dS == NULL) abort();
    matmul(P, Q, d, 1, K, 1, d, p->N_q, p->N_kv, p->d, p->scale);
    for (int i = 0; i < p->N_q; i++) {
        int last = p->causal ? i + p->N_kv - p->N_q : p->N_kv - 1; /* the last key that query i attends to */
        softmax(P + (size_t)i * N_kv, p->N_kv, last + 1);
    }
    float *rounded = malloc((size_t)p->N_q * N_kv * sizeof *rounded);
    if (rounded == NULL) abort();
    for (size_t i = 0; i < (size_t)p->N_q * N_kv; i++) rounded[i] = P[i];
    round_all(rounded, (size_t)p->N_q * N_kv, p->dtype);
    matmul(O, rounded, N_kv, 1, V, d, 1, p->N_q, p->d, p->N_kv, 1.0f);
    round_all(O, (size_t)p->N_q * d, p->dtype);
    matmul(dS, dO, d, 1, V, 1, d, p->N_q, p->N_kv, p->d, 1.0f); /* dP first */
    for (int i = 0; i < p->N_q; i++) {
        float *P_row = P + (size_t)i * N_kv, *dS_row = dS + (size_t)i * N_kv, D = 0.0f;
        for (int j = 0; j < p->N_kv && p->dtype == FP32; j++) D += P_row[j] * dS_row[j];
        for (size_t c = 0; c < d && p->dtype != FP32; c++) D += dO[(size_t)i * d + c] * O[(size_t)i * d + c];
        for (int j = 0; j < p->N_kv; j++) dS_row[j] = P_row[j] * (dS_row[j] - D);
    }
    round_all(dS, (size_t)p->N_q * N_kv, p->dtype);
    matmul(dV, rounded, 1, N_kv, dO, d, 1, p->N_kv, p->d, p->N_q, 1.0f);
    matmul(dQ, dS, N_kv, 1, K, d, 1, p->N_q, p->d, p->N_kv, p->scale);
    matmul(dK, dS, 1, N_kv, Q, d, 1, p->N_kv, p->d, p->N_q, p->scale);
    round_all(dQ, (size_t)p->N_q * d, p->dtype);
    round_all(dK, N_kv * d, p->dtype);
    round_all(dV, N_kv * d, p->dtype);
    free(P), free(dS), free(rounded);
}

void math_attention(const struct problem *p, const struct tensors *t) {
    for (int head = 0; head < p->batch * p->heads; head++) {
        size_t queries = (size_t)head * (size_t)p->N_q * (size_t)p->d,
               keys = (size_t)head * (size_t)p->N_kv * (size_t)p->d;
        head_attention(p, t->Q + queries, t->K + keys, t->V + keys, t->dO + queries, t->O + queries, t->dQ + queries,
                       t->dK + keys, t->dV + keys);
    }
}
