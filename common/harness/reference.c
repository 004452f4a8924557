/* The oracle: one query row or one key row at a time, straight from the equations of docs/math.md, in double.
 *
 * Nothing here is shared with the chapters, and nothing is tiled, fused or reordered: what makes a kernel fast is what
 * a kernel gets wrong. Memory stays O(N): one row of P a thread, never the whole matrix. */
#include "reference.h"

#include "problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Without OpenMP its pragmas are unknown ones, which -Werror would refuse. */
#pragma GCC diagnostic ignored "-Wunknown-pragmas"

static double *allocate(size_t count) {
    double *values = malloc((count > 0 ? count : 1) * sizeof *values);
    if (values == NULL) {
        fprintf(stderr, "reference: no memory for %zu doubles\n", count);
        abort();
    }
    return values;
}

/* Keys 0 .. n-1 of its head are the ones that query i attends to; returns n, which may be 0. Eq. 7. */
static size_t visible_keys(const struct problem *problem, size_t i) {
    if (!problem->causal) return (size_t)problem->N_kv;
    long long n = (long long)i + 1 + problem->N_kv - problem->N_q;
    return n > 0 ? (size_t)n : 0;
}

/* x, y (d) -> x . y */
static double dot(const float *x, const float *y, size_t d) {
    double sum = 0;
    for (size_t c = 0; c < d; c++) sum += (double)x[c] * (double)y[c];
    return sum;
}

/* q, k (d) -> one element of S. Eq. 1. */
static double score(const struct problem *problem, const float *q, const float *k) {
    return (double)problem->scale * dot(q, k, (size_t)problem->d);
}

/* q, k (d) -> the size of the terms that a score is the sum of. Eq. 19. */
static double term_size(const struct problem *problem, const float *q, const float *k) {
    double sum = 0;
    for (int c = 0; c < problem->d; c++) sum += fabs((double)q[c] * (double)k[c]);
    return fabs((double)problem->scale) * sum;
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
    size_t d = (size_t)problem->d, N_q = (size_t)problem->N_q, N_kv = (size_t)problem->N_kv;
    size_t head = row / N_q, n = visible_keys(problem, row % N_q);
    const float *q = Q + row * d;              /* (d) */
    const float *K_head = K + head * N_kv * d; /* (N_kv, d) */
    const float *V_head = V + head * N_kv * d; /* (N_kv, d) */

    double terms = 0;
    for (size_t j = 0; j < n; j++) {
        P[j] = score(problem, q, K_head + j * d);
        terms = fmax(terms, term_size(problem, q, K_head + j * d));
    }
    *L = softmax(P, n);

    for (size_t c = 0; c < d; c++) O_row[c] = 0;
    for (size_t j = 0; j < n; j++) {
        for (size_t c = 0; c < d; c++) O_row[c] += P[j] * (double)V_head[j * d + c];
    }
    return terms;
}

double reference_forward_rows(const struct problem *problem, const float *Q, const float *K, const float *V, const size_t *rows,
                              size_t count, double *O, double *L) {
    double terms = 0;
#pragma omp parallel reduction(max : terms)
    {
        double *P = allocate((size_t)problem->N_kv); /* (N_kv), each thread its own */
#pragma omp for schedule(dynamic, 8)                 /* causal rows differ in length, so they are dealt out a few at a time */
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
    double P;       /* exp(S_ij - L_i), eq. 9 */
    double dS;      /* P_ij (dP_ij - D_i), with dP_ij = dO_i . v_j */
    double dS_size; /* P_ij times the sizes of dP, of its terms, and of D, none of which cancel */
};

/* q, k, v, dO (d): the rows of this pair. L and D: the query row's logsumexp and its D_i = dO_i . O_i. */
static struct pair backward_pair(const struct problem *problem, const float *q, const float *k, const float *v, const float *dO,
                                 double L, double D) {
    double P = exp(score(problem, q, k) - L), dP = 0, squares = 0;
    for (int c = 0; c < problem->d; c++) {
        double term = (double)dO[c] * (double)v[c];
        dP += term;
        squares += term * term;
    }
    return (struct pair){.P = P, .dS = P * (dP - D), .dS_size = P * (fabs(dP) + sqrt(squares) + fabs(D))};
}

/* dQ_row (d) = scale * sum over keys j of dS_ij k_j. A row that attends to no key keeps its zeros. */
static void backward_query_row(const struct problem *problem, const float *Q, const float *K, const float *V, const float *dO,
                               const double *L, const double *D, size_t row, double *dQ_row, double *size) {
    size_t d = (size_t)problem->d, N_q = (size_t)problem->N_q, N_kv = (size_t)problem->N_kv;
    size_t first_key = row / N_q * N_kv, n = visible_keys(problem, row % N_q);
    double scale = (double)problem->scale;

    for (size_t c = 0; c < d; c++) dQ_row[c] = size[c] = 0;
    for (size_t j = first_key; j < first_key + n; j++) {
        struct pair pair = backward_pair(problem, Q + row * d, K + j * d, V + j * d, dO + row * d, L[row], D[row]);
        for (size_t c = 0; c < d; c++) {
            double k = scale * (double)K[j * d + c];
            dQ_row[c] += pair.dS * k;
            size[c] += pair.dS_size * k * (pair.dS_size * k);
        }
    }
    for (size_t c = 0; c < d; c++) size[c] = sqrt(size[c]);
}

/* dK_row (d) = scale * sum over queries i of dS_ij q_i;  dV_row (d) = sum over queries i of P_ij dO_i.
 * Only the queries that see this key take part. */
static void backward_key_row(const struct problem *problem, const float *Q, const float *K, const float *V, const float *dO,
                             const double *L, const double *D, size_t key_row, double *dK_row, double *dV_row, double *dK_size,
                             double *dV_size) {
    size_t d = (size_t)problem->d, N_q = (size_t)problem->N_q, N_kv = (size_t)problem->N_kv;
    size_t first_query = key_row / N_kv * N_q, j = key_row % N_kv;
    const float *k = K + key_row * d, *v = V + key_row * d; /* (d) each */
    double scale = (double)problem->scale;

    for (size_t c = 0; c < d; c++) dK_row[c] = dV_row[c] = dK_size[c] = dV_size[c] = 0;
    for (size_t i = 0; i < N_q; i++) {
        if (j >= visible_keys(problem, i)) continue;
        size_t row = first_query + i;
        struct pair pair = backward_pair(problem, Q + row * d, k, v, dO + row * d, L[row], D[row]);
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
    double *O = allocate(rows_q * d);                                        /* (batch, heads, N_q, d) */
    double *L = allocate(rows_q), *D = allocate(rows_q);                     /* (batch, heads, N_q) */
    double *size = allocate(longer * d), *other_size = allocate(longer * d); /* not asked for */

    reference_forward(problem, Q, K, V, O, L);
    reference_D(problem, dO, O, D);
    reference_backward_rows(problem, Q, K, V, dO, L, D, NULL, rows_q, dQ, size);
    reference_backward_keys(problem, Q, K, V, dO, L, D, NULL, rows_kv, dK, dV, size, other_size);

    free(other_size);
    free(size);
    free(D);
    free(L);
    free(O);
}
