/* The outputs of a run against the reference: which rows are compared, how large an error may be, and what is printed of it. */
#include "run.h"

#include "border.h"
#include "reference.h"
#include "variants.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows spread evenly with a jitter, so that no tile position is never looked at; the last row is always among them. */
static size_t *choose_rows(size_t total, size_t count) {
    size_t *rows = host_memory(count, sizeof *rows);
    uint64_t state = 12345;
    for (size_t i = 0; i < count; i++) {
        size_t start = (size_t)((double)total * (double)i / (double)count);
        size_t end = (size_t)((double)total * (double)(i + 1) / (double)count);
        state = state * 6364136223846793005u + 1442695040888963407u;
        rows[i] = count == total ? i : start + (size_t)(state >> 33) % (end > start ? end - start : 1);
    }
    rows[count - 1] = total - 1;
    return rows;
}

static size_t affordable_rows(double budget, double cost, size_t total) {
    double count = fmax(16.0, budget / cost);
    return count >= (double)total ? total : (size_t)count;
}

/* The listed rows of a tensor, one after the other; the caller's to free. */
static float *gather_rows(const struct run *run, enum tensor tensor, const size_t *rows, size_t count) {
    size_t columns = tensor_columns(&run->problem, tensor);
    float *gathered = host_memory(count * columns, sizeof *gathered);
    for (size_t i = 0; i < count; i++)
        memcpy(gathered + i * columns, run->host[tensor] + rows[i] * columns, columns * sizeof *gathered);
    return gathered;
}

/* Which rows to compare, and whether they are all. */
static bool choose_sample(const struct problem *p, bool backward, double budget, struct verdict *verdict) {
    size_t queries = tensor_rows(p, TENSOR_Q), keys = tensor_rows(p, TENSOR_K);
    double forward_cost = 2.0 * p->N_kv * p->d;
    if (!backward) {
        verdict->checked_queries = affordable_rows(budget, forward_cost, queries);
    } else {
        /* Of a pair: S and dP, then dQ or dK and dV, each with its size; and the forward pass. */
        double row_cost = 4.0 * p->N_kv * p->d, key_cost = 6.0 * p->N_q * p->d * p->heads / kv_heads(p);
        bool all = (double)queries * (row_cost + forward_cost) + (double)keys * key_cost <= budget;
        verdict->checked_queries = all ? queries : affordable_rows(0.3 * budget, row_cost, queries);
        verdict->checked_keys = all ? keys : affordable_rows(0.5 * budget, key_cost, keys);
        verdict->keys = choose_rows(keys, verdict->checked_keys);
    }
    verdict->queries = choose_rows(queries, verdict->checked_queries);
    return verdict->checked_queries == queries && (!backward || verdict->checked_keys == keys);
}

/* How many rows O's norm comes from: all where they are alike, 1 where one is much larger than the others. The error of a weight is one
 * for all columns of its row, and under windows, ALiBi or dropout a row may have few weights: these errors average over rows only. */
static double rows_that_count(const double *O, size_t rows, size_t d) {
    double sum = 0.0, squares = 0.0;
    for (size_t row = 0; row < rows; row++) {
        double norm = 0.0;
        for (size_t c = 0; c < d; c++) norm += O[row * d + c] * O[row * d + c];
        sum += norm, squares += norm * norm;
    }
    return squares > 0.0 ? sum * sum / squares : 1.0;
}

/* How far a score in FP8 may be off: an addend of the tensor core's accumulator is cut off 13 bits below the largest (docs/math/rounding.md).
 * A product of d is taken to be at most ten times their mean size, and the errors to be independent. */
static double fp8_score_error(const struct problem *p, double term_size) {
    return 0x1p-13 * sqrt(32.0 * ceil(p->d / 32.0)) * 10.0 * term_size / p->d;
}

/* O_ref and L_ref: for the rows compared. */
static double check_forward(const struct run *run, struct verdict *verdict, double *O_ref, double *L_ref) {
    const struct problem *p = &run->problem;
    size_t count = verdict->checked_queries, elements = count * (size_t)p->d;
    float *Q = as_seen(p, TENSOR_Q, run->host[TENSOR_Q]), *K = as_seen(p, TENSOR_K, run->host[TENSOR_K]);
    float *V = as_seen(p, TENSOR_V, run->host[TENSOR_V]), *O_rows = gather_rows(run, TENSOR_O, verdict->queries, count);
    if (p->dtype == FP8) {
        reference_forward_rows(p, run->host[TENSOR_Q], run->host[TENSOR_K], run->host[TENSOR_V], verdict->queries, count, O_ref,
                               L_ref);
        verdict->total_error = check_values(O_rows, O_ref, elements, 1.0).err_rel;
    }
    double term_size = reference_forward_rows(p, Q, K, V, verdict->queries, count, O_ref, L_ref);
    free(Q), free(K), free(V);
    float *L_rows = gather_rows(run, TENSOR_L, verdict->queries, count);
    double bound = rounding_bound(term_size, p->N_kv) + (p->dtype == FP8 ? fp8_score_error(p, term_size) : 0.0);
    struct check *check = &verdict->checks[TENSOR_O];
    double rounding = p->dtype == FP32  ? 0.0
                      : p->dtype == FP8 ? unit_roundoff(FP8) + unit_roundoff(BF16)
                                        : 2.0 * unit_roundoff(p->dtype);
    double cut_off = tensor_core_bound(p->dtype, p->N_kv);
    *check = check_values(O_rows, O_ref, elements, bound + rounding + cut_off);
    /* Rounding errors average out only where they differ. The other inputs repeat a few numbers, and their errors, or give a few keys
     * nearly all the weight. */
    if (p->dtype != FP32 && (run->input == INPUT_RANDOM || run->input == INPUT_LARGE)) {
        check->bias = bias_of(O_rows, O_ref, elements);
        check->bound_bias = unit_roundoff(p->dtype) * (0.25 + 2.0 / sqrt((double)elements)) + cut_off;
        if (variants_of(p) != 0)
            check->bound_bias += unit_roundoff(p->dtype) * 2.0 / sqrt(rows_that_count(O_ref, count, (size_t)p->d));
        check->ok = check->ok && check->bias <= check->bound_bias;
    }
    /* A rotated element near the middle of two numbers may be rounded to either: a product of a score moves by twice the roundoff. A
     * product of d is taken to be at most ten times their mean size. */
    if (p->rotary != NOT_ROTARY && p->dtype != FP32) bound += 20.0 * unit_roundoff(p->dtype) * term_size / p->d;
    verdict->checks[TENSOR_L] = check_logsumexp(L_rows, L_ref, count, bound);
    describe_wrong(check, p, TENSOR_O, verdict->queries, count, O_rows, O_ref);
    describe_wrong(&verdict->checks[TENSOR_L], p, TENSOR_L, verdict->queries, count, L_rows, L_ref);
    free(O_rows), free(L_rows);
    return term_size;
}

/* term_size, of the scores of the rows compared, O_ref and L_ref, with room for all rows, are from check_forward(). */
static void check_backward(const struct run *run, struct verdict *verdict, bool all, double term_size, double *O_ref,
                           double *L_ref) {
    const struct problem *p = &run->problem;
    float *Q = as_seen(p, TENSOR_Q, run->host[TENSOR_Q]), *K = as_seen(p, TENSOR_K, run->host[TENSOR_K]);
    const float *V = run->host[TENSOR_V], *dO = run->host[TENSOR_dO];
    size_t d = (size_t)p->d, rows = tensor_rows(p, TENSOR_Q);
    double *D_ref = host_doubles(rows);
    if (!all) {
        for (size_t i = 0; i < rows * d; i++) O_ref[i] = (double)run->host[TENSOR_O][i];
        for (size_t i = 0; i < rows; i++) L_ref[i] = (double)run->host[TENSOR_L][i];
    }
    reference_D(p, dO, O_ref, D_ref);
    double *ref[TENSOR_COUNT], *size[TENSOR_COUNT];
    for (enum tensor tensor = TENSOR_dQ; tensor <= TENSOR_dV; tensor++) {
        size_t count = tensor_table[tensor].per_key ? verdict->checked_keys : verdict->checked_queries;
        ref[tensor] = host_doubles(count * d), size[tensor] = host_doubles(count * d);
    }
    reference_backward_rows(p, Q, K, V, dO, L_ref, D_ref, verdict->queries, verdict->checked_queries, ref[TENSOR_dQ],
                            size[TENSOR_dQ]);
    reference_backward_keys(p, Q, K, V, dO, L_ref, D_ref, verdict->keys, verdict->checked_keys, ref[TENSOR_dK], ref[TENSOR_dV],
                            size[TENSOR_dK], size[TENSOR_dV]);
    for (enum tensor tensor = TENSOR_dQ; tensor <= TENSOR_dV; tensor++) {
        bool per_key = tensor_table[tensor].per_key;
        size_t count = per_key ? verdict->checked_keys : verdict->checked_queries;
        const size_t *numbers = per_key ? verdict->keys : verdict->queries;
        if (tensor != TENSOR_dV) {
            rotate_rows(p, tensor, numbers, count, ref[tensor], true, false);
            rotate_rows(p, tensor, numbers, count, size[tensor], true, true);
        }
        float *out = gather_rows(run, tensor, numbers, count);
        double bound = rounding_bound(term_size, per_key ? p->N_q : p->N_kv);
        if (p->dtype != FP32) bound += 3.0 * unit_roundoff(p->dtype);
        /* Chapters 11, 13 and 15 add a tile's part to dQ outside of the tensor core. */
        if (per_key) bound += tensor_core_bound(p->dtype, (double)p->N_q * p->heads / kv_heads(p));
        verdict->checks[tensor] = check_gradient(out, ref[tensor], size[tensor], count * d, bound);
        describe_wrong(&verdict->checks[tensor], p, tensor, numbers, count, out, ref[tensor]);
        free(out), free(ref[tensor]), free(size[tensor]);
    }
    free(Q), free(K), free(D_ref);
}

struct verdict check_run(const struct run *run, bool backward, double budget) {
    struct verdict verdict = {.ok = true};
    bool all = choose_sample(&run->problem, backward, budget, &verdict);
    size_t rows = backward ? tensor_rows(&run->problem, TENSOR_Q) : verdict.checked_queries;
    double *O_ref = host_doubles(rows * (size_t)run->problem.d), *L_ref = host_doubles(rows);
    double term_size = check_forward(run, &verdict, O_ref, L_ref);
    if (backward) check_backward(run, &verdict, all, term_size, O_ref, L_ref);
    free(O_ref), free(L_ref);
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        if (!is_output(tensor) || (is_backward(tensor) && !backward)) continue;
        size_t elements = tensor_elements(&run->problem, tensor);
        verdict.first_not_finite[tensor] = first_not_finite(run->host[tensor], elements, tensor == TENSOR_L);
        verdict.ok = verdict.ok && verdict.checks[tensor].ok && verdict.first_not_finite[tensor] == elements;
    }
    return verdict;
}

void free_verdict(struct verdict *verdict) {
    free(verdict->queries), free(verdict->keys);
    verdict->queries = verdict->keys = NULL;
}

/* Where element `index` of a tensor lies, as a reader would look for it, and what stands there. */
static void print_element(FILE *to, const struct run *run, enum tensor tensor, size_t index, const char *expected) {
    const struct problem *p = &run->problem;
    size_t columns = tensor_columns(p, tensor), row = index / columns;
    size_t N = (size_t)(tensor_table[tensor].per_key ? p->N_kv : p->N_q), head = row / N;
    float got = run->host[tensor][index];
    fprintf(to, "      %s at (batch %zu, head %zu, row %zu, column %zu): got ", tensor_table[tensor].name,
            head / tensor_heads(p, tensor), head % tensor_heads(p, tensor), row % N, index % columns);
    if (isnan(got))
        fprintf(to, "NaN, expected %s\n", expected);
    else
        fprintf(to, "%g, expected %s\n", (double)got, expected);
}

void print_verdict(FILE *to, const struct run *run, bool backward, const struct verdict *verdict) {
    const struct problem *p = &run->problem;
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        if (!is_output(tensor) || (is_backward(tensor) && !backward)) continue;
        const struct check *check = &verdict->checks[tensor];
        size_t columns = tensor_columns(p, tensor);
        const size_t *rows = tensor_table[tensor].per_key ? verdict->keys : verdict->queries;
        fprintf(to, "  %-3s error %.1e of its norm (bound %.1e), at most %.1e (bound %.1e)  %s\n", tensor_table[tensor].name,
                fabs(check->err_rel), check->bound_rel, fabs(check->err_max), check->bound_max,
                check->ok                           ? "ok"
                : check->vague && check->wrong == 0 ? "UNPROVEN"
                                                    : "WRONG");
        if (check->vague)
            fputs("      no proof: rounding in this precision may be as large as the result (docs/math/rounding.md)\n", to);
        if (!(check->bias <= check->bound_bias))
            fprintf(to, "      as a whole too small or too large by %.1e (bound %.1e): is something truncated?\n", check->bias,
                    check->bound_bias);
        for (size_t i = 0; i < check->wrong && i < 3; i++) {
            char expected[32];
            snprintf(expected, sizeof expected, "%g", check->expected[i]);
            print_element(to, run, tensor, rows[check->first_wrong[i] / columns] * columns + check->first_wrong[i] % columns,
                          expected);
        }
        if (tensor == TENSOR_O && p->dtype == FP8)
            fprintf(to, "      total error %.1e of its norm: against Q, K and V as they were before their rounding to 8 bits\n",
                    verdict->total_error);
        if (check->where[0] != '\0') fprintf(to, "      %s\n", check->where);
        if (check->ok && verdict->first_not_finite[tensor] < tensor_elements(p, tensor))
            print_element(to, run, tensor, verdict->first_not_finite[tensor], "a finite number");
    }
    if (!verdict->ok)
        fputs("      error of its norm: ||got - expected|| / ||expected||, over the whole tensor; at most: of one element\n",
              to);
    if (verdict->checked_queries < tensor_rows(p, TENSOR_Q) || (backward && verdict->checked_keys < tensor_rows(p, TENSOR_K)))
        fprintf(to, "      %zu of %zu query rows and %zu of %zu key rows compared\n", verdict->checked_queries,
                tensor_rows(p, TENSOR_Q), verdict->checked_keys, tensor_rows(p, TENSOR_K));
}
