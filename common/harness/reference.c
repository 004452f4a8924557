/* The oracle: one query row or one key row at a time, straight from the equations of docs/math.md, in double.
 *
 * Nothing here is shared with the chapters, and nothing is tiled, fused or reordered: what makes a kernel fast is what
 * a kernel gets wrong. Memory stays O(N): one row of P a thread, never the whole matrix. */
#include "reference.h"

#include "problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Without OpenMP its pragmas are unknown ones, which -Werror would refuse. */
#pragma GCC diagnostic ignored "-Wunknown-pragmas"

void reference_philox(uint32_t counter[4], uint32_t key0, uint32_t key1) {
    for (uint32_t round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * counter[0], b = (uint64_t)0xCD9E8D57u * counter[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ counter[1] ^ (key0 + round * 0x9E3779B9u), (uint32_t)b,
                            (uint32_t)(a >> 32) ^ counter[3] ^ (key1 + round * 0xBB67AE85u), (uint32_t)a};
        memcpy(counter, next, sizeof next);
    }
}

double kept_weight(const struct problem *problem, const struct sight *sight, long long j) {
    if (!(problem->dropout > 0.0f)) return 1;
    long long i = sight->query;
    uint32_t words[4] = {(uint32_t)(i / 16 * 8 + i % 8), (uint32_t)(j / 16 * 8 + j % 8), (uint32_t)sight->head,
                         sight->sequence};
    reference_philox(words, (uint32_t)problem->dropout_seed, (uint32_t)(problem->dropout_seed >> 32));
    uint32_t word = words[i / 8 % 2 * 2 + j / 8 % 2];
    return word < (uint32_t)ldexp((double)problem->dropout, 32) ? 0 : 1 / (1 - (double)problem->dropout);
}

enum { SIDE_BY_SIDE = 4 }; /* keys at a time: an addition takes as long as four, unless they wait for each other */

/* q, K (keys, d) -> elements of S from key j on, eq. 1, and the size of the terms that each is the sum of, eq. 19. */
static void products(const struct problem *problem, const float *q, const float *K, size_t keys, size_t j,
                     double s[SIDE_BY_SIDE], double size[SIDE_BY_SIDE]) {
    const float *k[SIDE_BY_SIDE];
    for (size_t n = 0; n < SIDE_BY_SIDE; n++) {
        k[n] = K + (j + n < keys ? j + n : j) * (size_t)problem->d;
        s[n] = size[n] = 0;
    }
    for (int c = 0; c < problem->d; c++)
        for (int n = 0; n < SIDE_BY_SIDE; n++) {
            double term = (double)q[c] * (double)k[n][c];
            s[n] += term, size[n] += fabs(term);
        }
    for (int n = 0; n < SIDE_BY_SIDE; n++) s[n] *= (double)problem->scale, size[n] *= fabs((double)problem->scale);
}

/* What ALiBi adds to the score of key j. */
static double bias(const struct problem *problem, const struct sight *sight, long long j) {
    int h = (int)(sight->head % (size_t)problem->heads), heads = problem->heads, power = 1;
    while (2 * power <= heads) power *= 2;
    double slope = exp2(-8.0 * (h + 1) / heads);
    if (problem->alibi == RELEASED_RULE)
        slope = h < power ? exp2(-8.0 * (h + 1) / power) : exp2(-8.0 * (2 * (h - power) + 1) / (2 * power));
    return problem->alibi ? -slope * fabs((double)(sight->position - j)) : 0;
}

/* A product as the softmax takes it. */
static double score(const struct problem *problem, const struct sight *sight, long long j, double s) {
    double cap = (double)problem->softcap;
    return (cap > 0 ? cap * tanh(s / cap) : s) + bias(problem, sight, j);
}

/* S (n) becomes P (n) in place; returns L. Eq. 5 and 8. With no keys at all, L = -inf. */
static double softmax(double *P, size_t n) {
    if (n == 0) return -INFINITY;
    double m = -INFINITY, l = 0;
    for (size_t j = 0; j < n; j++) m = fmax(m, P[j]);
    for (size_t j = 0; j < n; j++) {
        P[j] = exp(P[j] - m);
        l += P[j];
    }
    for (size_t j = 0; j < n; j++) P[j] /= l;
    return m + log(l);
}

/* One query row of the forward pass: O_row (d) and *L; P (N_kv) is scratch. Eq. 1-3. Returns the largest term size. */
static double forward_row(const struct problem *problem, const float *Q, const float *K, const float *V, size_t row, double *P,
                          double *O_row, double *L) {
    size_t d = (size_t)problem->d;
    struct sight sight = sight_of_query(problem, row);
    const float *q = Q + row * d;                                                     /* (d) */
    const float *K_seen = K + sight.first_row * d, *V_seen = V + sight.first_row * d; /* (keys, d) */

    double terms = 0;
    for (size_t j = 0; j < sight.keys; j += SIDE_BY_SIDE) {
        double s[SIDE_BY_SIDE], size[SIDE_BY_SIDE];
        products(problem, q, K_seen, sight.keys, j, s, size);
        for (size_t n = 0; n < SIDE_BY_SIDE && j + n < sight.keys; n++) {
            P[j + n] = score(problem, &sight, sight.first + (long long)(j + n), s[n]);
            terms = fmax(terms, size[n]);
        }
    }
    *L = softmax(P, sight.keys);

    for (size_t c = 0; c < d; c++) O_row[c] = 0;
    for (size_t j = 0; j < sight.keys; j++) {
        long long key = sight.first + (long long)j;
        double weight = P[j] * kept_weight(problem, &sight, key);
        for (size_t c = 0; c < d; c++) O_row[c] += weight * (double)V_seen[j * d + c];
        if (P[j] > 1e-7) terms = fmax(terms, fabs(bias(problem, &sight, key))); /* others' errors weigh nothing */
    }
    return terms;
}

double reference_forward_rows(const struct problem *problem, const float *Q, const float *K, const float *V, const size_t *rows,
                              size_t count, double *O, double *L) {
    double terms = 0;
#pragma omp parallel reduction(max : terms)
    {
        double *P = host_doubles((size_t)problem->N_kv); /* (N_kv), each thread its own */
#pragma omp for schedule(dynamic, 8) /* causal rows differ in length, so they are dealt out a few at a time */
        for (size_t r = 0; r < count; r++) {
            size_t row = rows != NULL ? rows[r] : r;
            double row_terms = forward_row(problem, Q, K, V, row, P, O + r * (size_t)problem->d, L + r);
            terms = fmax(terms, row_terms);
        }
        free(P);
    }
    return terms;
}

double reference_forward(const struct problem *problem, const float *Q, const float *K, const float *V, double *O, double *L) {
    return reference_forward_rows(problem, Q, K, V, NULL, tensor_rows(problem, TENSOR_Q), O, L);
}

/* What the backward pass knows of one unmasked pair (query row i, key row j of the same head). */
struct pair {
    double P;       /* exp(S_ij - L_i), eq. 9, times what dropout leaves of it: the factor of dO_i in dV_j */
    double dS;      /* P_ij (dP_ij - D_i), with dP_ij = dO_i . v_j, times the derivative of softcap */
    double dS_size; /* P_ij times the sizes of dP, of its terms, and of D, none of which cancel */
};

/* q, k, v, dO (d): the rows of this pair. L and D: the query row's logsumexp and its D_i = dO_i . O_i. */
static struct pair backward_pair(const struct problem *problem, const struct sight *sight, long long j, const float *q,
                                 const float *k, const float *v, const float *dO, double L, double D) {
    double s = 0, dP = 0, squares = 0;
    double kept = kept_weight(problem, sight, j), slope = 1, slope_size = 1;
    for (int c = 0; c < problem->d; c++) {
        double term = (double)dO[c] * (double)v[c];
        s += (double)q[c] * (double)k[c];
        dP += term;
        squares += term * term;
    }
    s *= (double)problem->scale;
    double P = exp(score(problem, sight, j, s) - L);
    if (problem->softcap > 0) {
        double t = tanh(s / (double)problem->softcap);
        slope = 1 - t * t;
        slope_size = fmax(slope, 1e-3); /* 1 and t^2 cancel */
    }
    return (struct pair){.P = P * kept,
                         .dS = P * (kept * dP - D) * slope,
                         .dS_size = P * (kept * fabs(dP) + kept * sqrt(squares) + fabs(D)) * slope_size};
}

/* dQ_row (d) = scale * sum over keys j of dS_ij k_j. A row that attends to no key keeps its zeros. */
static void backward_query_row(const struct problem *problem, const float *Q, const float *K, const float *V, const float *dO,
                               const double *L, const double *D, size_t row, double *dQ_row, double *size) {
    size_t d = (size_t)problem->d;
    struct sight sight = sight_of_query(problem, row);
    double scale = (double)problem->scale;

    for (size_t c = 0; c < d; c++) dQ_row[c] = size[c] = 0;
    for (size_t n = 0; n < sight.keys; n++) {
        size_t j = sight.first_row + n;
        struct pair pair = backward_pair(problem, &sight, sight.first + (long long)n, Q + row * d, K + j * d, V + j * d,
                                         dO + row * d, L[row], D[row]);
        for (size_t c = 0; c < d; c++) {
            double k = scale * (double)K[j * d + c];
            dQ_row[c] += pair.dS * k;
            size[c] += pair.dS_size * k * (pair.dS_size * k);
        }
    }
    for (size_t c = 0; c < d; c++) size[c] = sqrt(size[c]);
}

/* dK_row (d) = scale * sum over queries i of dS_ij q_i;  dV_row (d) = sum over queries i of P_ij dO_i.
 * Only the queries that see this key take part, those of every head that reads it. */
static void backward_key_row(const struct problem *problem, const float *Q, const float *K, const float *V, const float *dO,
                             const double *L, const double *D, size_t key_row, double *dK_row, double *dV_row, double *dK_size,
                             double *dV_size) {
    size_t d = (size_t)problem->d, N_q = (size_t)problem->N_q, head_kv = key_row / (size_t)problem->N_kv;
    size_t group = (size_t)(problem->heads / kv_heads(problem)); /* query heads, whose rows follow each other */
    size_t batch = head_kv / (size_t)kv_heads(problem), head = head_kv * group;
    const float *k = K + key_row * d, *v = V + key_row * d; /* (d) each */
    double scale = (double)problem->scale;

    for (size_t c = 0; c < d; c++) dK_row[c] = dV_row[c] = dK_size[c] = dV_size[c] = 0;
    for (size_t row = head_kv * group * N_q; row < (head_kv + 1) * group * N_q; row++) {
        if (row == (head + 1) * N_q) head++;
        struct sight sight = sight_within(problem, batch, head, head_kv, (long long)(row - head * N_q));
        if (key_row < sight.first_row || key_row >= sight.first_row + sight.keys) continue;
        struct pair pair = backward_pair(problem, &sight, sight.first + (long long)(key_row - sight.first_row), Q + row * d, k,
                                         v, dO + row * d, L[row], D[row]);
        for (size_t c = 0; c < d; c++) {
            double q = scale * (double)Q[row * d + c], dV_term = pair.P * (double)dO[row * d + c];
            dK_row[c] += pair.dS * q;
            dV_row[c] += dV_term;
            dK_size[c] += pair.dS_size * q * (pair.dS_size * q);
            dV_size[c] += dV_term * dV_term;
        }
    }
    for (size_t c = 0; c < d; c++) {
        dK_size[c] = sqrt(dK_size[c]);
        dV_size[c] = sqrt(dV_size[c]);
    }
}

void reference_D(const struct problem *problem, const float *dO, const double *O, double *D) {
    size_t d = (size_t)problem->d, rows = tensor_rows(problem, TENSOR_Q);
    for (size_t row = 0; row < rows; row++) {
        D[row] = 0;
        for (size_t c = 0; c < d; c++) D[row] += (double)dO[row * d + c] * O[row * d + c];
    }
}

/* Every query row gathers its own dQ and every key row its own dK and dV, so no two threads write the same element.
 * The price is that each pair is computed twice. */
void reference_backward_rows(const struct problem *problem, const float *Q, const float *K, const float *V, const float *dO,
                             const double *L, const double *D, const size_t *rows, size_t count, double *dQ, double *size) {
    size_t d = (size_t)problem->d;
#pragma omp parallel for schedule(dynamic, 8)
    for (size_t r = 0; r < count; r++)
        backward_query_row(problem, Q, K, V, dO, L, D, rows != NULL ? rows[r] : r, dQ + r * d, size + r * d);
}

void reference_backward_keys(const struct problem *problem, const float *Q, const float *K, const float *V, const float *dO,
                             const double *L, const double *D, const size_t *keys, size_t count, double *dK, double *dV,
                             double *dK_size, double *dV_size) {
    size_t d = (size_t)problem->d;
#pragma omp parallel for schedule(dynamic, 8)
    for (size_t r = 0; r < count; r++) {
        backward_key_row(problem, Q, K, V, dO, L, D, keys != NULL ? keys[r] : r, dK + r * d, dV + r * d, dK_size + r * d,
                         dV_size + r * d);
    }
}

void reference_backward(const struct problem *problem, const float *Q, const float *K, const float *V, const float *dO,
                        double *dQ, double *dK, double *dV) {
    size_t d = (size_t)problem->d, rows_q = tensor_rows(problem, TENSOR_Q), rows_kv = tensor_rows(problem, TENSOR_K);
    size_t longer = rows_q > rows_kv ? rows_q : rows_kv;
    double *O = host_doubles(rows_q * d);                                            /* (batch, heads, N_q, d) */
    double *L = host_doubles(rows_q), *D = host_doubles(rows_q);                     /* (batch, heads, N_q) */
    double *size = host_doubles(longer * d), *other_size = host_doubles(longer * d); /* not asked for */

    reference_forward(problem, Q, K, V, O, L);
    reference_D(problem, dO, O, D);
    reference_backward_rows(problem, Q, K, V, dO, L, D, NULL, rows_q, dQ, size);
    reference_backward_keys(problem, Q, K, V, dO, L, D, NULL, rows_kv, dK, dV, size, other_size);

    free(O), free(L), free(D), free(size), free(other_size);
}
