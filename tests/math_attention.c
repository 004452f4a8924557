#include "oracle.h"

#include "border.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    for (size_t i = 0; i < count; i++) values[i] = rounded_to(values[i], dtype == FP8 ? BF16 : dtype);
}

/* P in FP8: each row times what makes its largest weight 256, in e4m3. */
static void round_rows(float *P, int rows, size_t keys) {
    for (int i = 0; i < rows; i++, P += keys) {
        float largest = 0.0f;
        for (size_t j = 0; j < keys; j++) largest = fmaxf(largest, P[j]);
        for (size_t j = 0; j < keys && largest > 0.0f; j++) P[j] = of_fp8(fp8_of(256.0f * P[j] / largest, E4M3), E4M3) * largest / 256.0f;
    }
}

static float *floats(size_t count) {
    float *values = calloc(count, sizeof *values);
    if (values == NULL) abort();
    return values;
}

/* dO is NULL where there is no backward pass. */
static void head_attention(const struct problem *p, const float *Q, const float *K, const float *V, const float *dO,
                           float *O, float *dQ, float *dK, float *dV) {
    size_t d = (size_t)p->d, N_kv = (size_t)p->N_kv, queries = (size_t)p->N_q * d, keys = N_kv * d,
           scores = (size_t)p->N_q * N_kv;
    float *P = floats(scores), *rounded_P = floats(scores), *dS = floats(scores);
    matmul(P, Q, d, 1, K, 1, d, p->N_q, p->N_kv, p->d, p->scale);
    for (int i = 0; i < p->N_q; i++) {
        int last = p->causal ? i + p->N_kv - p->N_q : p->N_kv - 1; /* the last key that query i attends to */
        softmax(P + (size_t)i * N_kv, p->N_kv, last + 1);
    }
    memcpy(rounded_P, P, scores * sizeof *P);
    if (p->dtype == FP8)
        round_rows(rounded_P, p->N_q, N_kv);
    else
        round_all(rounded_P, scores, p->dtype);
    matmul(O, rounded_P, N_kv, 1, V, d, 1, p->N_q, p->d, p->N_kv, 1.0f);
    round_all(O, queries, p->dtype);
    if (dO != NULL) {
        matmul(dS, dO, d, 1, V, 1, d, p->N_q, p->N_kv, p->d, 1.0f); /* dP first */
        for (int i = 0; i < p->N_q; i++) {
            float *P_row = P + (size_t)i * N_kv, *dS_row = dS + (size_t)i * N_kv, D = 0.0f;
            if (p->dtype == FP32)
                for (int j = 0; j < p->N_kv; j++) D += P_row[j] * dS_row[j];
            else
                for (size_t c = (size_t)i * d; c < ((size_t)i + 1) * d; c++) D += dO[c] * O[c];
            for (int j = 0; j < p->N_kv; j++) dS_row[j] = P_row[j] * (dS_row[j] - D);
        }
        round_all(dS, scores, p->dtype);
        matmul(dV, rounded_P, 1, N_kv, dO, d, 1, p->N_kv, p->d, p->N_q, 1.0f);
        matmul(dQ, dS, N_kv, 1, K, d, 1, p->N_q, p->d, p->N_kv, p->scale);
        matmul(dK, dS, 1, N_kv, Q, d, 1, p->N_kv, p->d, p->N_q, p->scale);
        round_all(dQ, queries, p->dtype);
        round_all(dK, keys, p->dtype);
        round_all(dV, keys, p->dtype);
    }
    free(P), free(rounded_P), free(dS);
}

struct tensors math_attention(const struct run *run) {
    const struct problem *p = &run->problem;
    size_t queries = tensor_elements(p, TENSOR_Q), keys = tensor_elements(p, TENSOR_K);
    int heads = p->batch * p->heads;
    float *Q = as_seen(p, TENSOR_Q, run->host[TENSOR_Q]), *K = as_seen(p, TENSOR_K, run->host[TENSOR_K]);
    float *V = as_seen(p, TENSOR_V, run->host[TENSOR_V]);
    struct tensors t = {Q, K, V, .O = floats(queries)};
    if (run->backward) t.dO = run->host[TENSOR_dO], t.dQ = floats(queries), t.dK = floats(keys), t.dV = floats(keys);
    for (size_t head = 0; head < (size_t)heads; head++) {
        size_t q = head * queries / (size_t)heads, k = head * keys / (size_t)heads;
        if (run->backward)
            head_attention(p, t.Q + q, t.K + k, t.V + k, t.dO + q, t.O + q, t.dQ + q, t.dK + k, t.dV + k);
        else
            head_attention(p, t.Q + q, t.K + k, t.V + k, NULL, t.O + q, NULL, NULL, NULL);
    }
    t.Q = t.K = t.V = NULL;
    free(Q), free(K), free(V);
    return t;
}

void free_math(struct tensors *t) { free(t->O), free(t->dQ), free(t->dK), free(t->dV); }
