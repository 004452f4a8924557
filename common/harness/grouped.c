#include "grouped.h"

#include "reference.h"

#include <math.h>

/* Without OpenMP its pragmas are unknown ones, which -Werror would refuse. */
#pragma GCC diagnostic ignored "-Wunknown-pragmas"

double grouped_forward_rows(const struct problem *problem, const float *Q, const float *K, const float *V, const size_t *rows,
                            size_t count, double *O, double *L) {
    size_t d = (size_t)problem->d, N_q = (size_t)problem->N_q, N_kv = (size_t)problem->N_kv;
    size_t H = (size_t)problem->heads, H_kv = (size_t)kv_heads(problem);
    if (H == H_kv) return reference_forward_rows(problem, Q, K, V, rows, count, O, L);
    struct problem one = *problem;
    one.batch = one.heads = one.heads_kv = 1;
    double terms = 0;
#pragma omp parallel for reduction(max : terms) schedule(dynamic)
    for (size_t r = 0; r < count; r++) {
        size_t row = rows != NULL ? rows[r] : r, head = row / N_q, of_head = row % N_q;
        size_t head_kv = head / H * H_kv + head % H / (H / H_kv); /* of its batch the group's */
        size_t keys = head_kv * N_kv * d;
        terms =
            fmax(terms, reference_forward_rows(&one, Q + head * N_q * d, K + keys, V + keys, &of_head, 1, O + r * d, L + r));
    }
    return terms;
}
