/* Steps for few queries per sequence, and heads that share K and V: identities that need no reference. Those of tests/test_step.c
 * have more queries than such a step takes. */
#include "step_test.h"

#include "simulated.h"

#include <math.h>

#define step step_under_test

static void needs_few_queries(void) {
    needs_forward();
    if (!step->grouped_heads || step->most_queries < 8) cr_skip_test("a step for many queries, or without grouped heads: test_grid.c");
}

static struct run grouped_run(int batch, int heads, int heads_kv, int N_q, int N_kv, int d, bool causal, enum input_kind input) {
    struct problem problem = problem_for(step, &(struct shape){batch, heads, N_q, N_kv, d, causal, 0.0f, heads_kv});
    cr_assert_eq(problem.N_q, N_q);
    return new_run(step, &problem, input);
}

/* The keys that query row `row` attends to. */
static size_t attended(const struct problem *p, size_t row) {
    long long keys = p->causal ? (long long)(row % (size_t)p->N_q) + 1 + p->N_kv - p->N_q : p->N_kv;
    return keys > 0 ? (size_t)keys : 0;
}

/* Q = 0: every key that a row attends to weighs the same, so O is their mean and L the logarithm of their number. Key j of V is
 * j + 1, which one key too many or too few moves by half a key, and a key of padding as much. */
Test(few_queries, mean_of_V, .init = needs_few_queries) {
    static const int lengths[] = {1, 2, 7, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200, 256, 257};
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof *lengths; i++)
        for (int N_q = 1; N_q <= 8; N_q += i % 2 == 0 ? 7 : 3) {
            int heads_kv = 1 + (int)i % 3;
            struct run run = grouped_run(2, 3 * heads_kv, heads_kv, N_q, lengths[i / 2], i % 4 < 2 ? 64 : 128, i % 2 == 0, INPUT_RANDOM);
            const struct problem *p = &run.problem;
            size_t d = (size_t)p->d, N_kv = (size_t)p->N_kv;
            for (size_t c = 0; c < tensor_elements(p, TENSOR_Q); c++) run.host[TENSOR_Q][c] = 0.0f;
            for (size_t c = 0; c < tensor_elements(p, TENSOR_V); c++) run.host[TENSOR_V][c] = (float)(c / d % N_kv + 1);
            cr_assert_eq(run_upload(&run), cudaSuccess);
            forward(&run, step);
            for (size_t row = 0; row < tensor_rows(p, TENSOR_Q); row++) {
                double keys = (double)attended(p, row), mean = keys > 0.0 ? (keys + 1.0) / 2.0 : 0.0;
                double L = (double)run.host[TENSOR_L][row];
                cr_assert(keys > 0.0 ? fabs(L - log(keys)) <= 1e-5 : isinf(L) && L < 0.0, "%s: L of row %zu is %g", describe(p), row, L);
                for (size_t c = 0; c < d; c++)
                    cr_assert_float_eq((double)run.host[TENSOR_O][row * d + c], mean, 1.0 / 256.0 * mean, "%s: O of row %zu is %g, not %g",
                                       describe(p), row, (double)run.host[TENSOR_O][row * d + c], mean);
            }
            run_destroy(&run);
        }
}

/* Head h reads K and V of head h / (heads / heads_kv), and no other: V of a head is its number. */
Test(few_queries, head_of_the_group, .init = needs_few_queries) {
    static const int heads[][2] = {{1, 1}, {4, 4}, {6, 3}, {6, 2}, {6, 1}, {12, 3}, {32, 2}, {40, 1}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        for (int N_q = 1; N_q <= 7; N_q += 3) {
            struct run run = grouped_run(3, heads[i][0], heads[i][1], N_q, 150, 64, true, INPUT_RANDOM);
            size_t d = (size_t)run.problem.d, H = (size_t)heads[i][0], H_kv = (size_t)heads[i][1];
            for (size_t c = 0; c < tensor_elements(&run.problem, TENSOR_V); c++) run.host[TENSOR_V][c] = (float)(c / d / 150 + 1);
            cr_assert_eq(run_upload(&run), cudaSuccess);
            forward(&run, step);
            for (size_t c = 0; c < tensor_elements(&run.problem, TENSOR_O); c++) {
                size_t head = c / d / (size_t)N_q, expected = head / H * H_kv + head % H / (H / H_kv) + 1;
                cr_assert_float_eq((double)run.host[TENSOR_O][c], (double)expected, 0.01 * (double)expected,
                                   "%s: head %zu reads V of head %g, not %zu", describe(&run.problem), head,
                                   (double)run.host[TENSOR_O][c] - 1.0, expected - 1);
            }
            run_destroy(&run);
        }
}

/* More queries than keys: the first rows attend to nothing, and must say so exactly. */
Test(few_queries, masked_rows, .init = needs_few_queries) {
    for (int N_kv = 1; N_kv < 8; N_kv += 3) {
        struct run run = grouped_run(2, 6, 2, 8, N_kv, 40, true, INPUT_RANDOM);
        size_t d = (size_t)run.problem.d;
        forward(&run, step);
        for (size_t row = 0; row < tensor_rows(&run.problem, TENSOR_L); row++) {
            float L = run.host[TENSOR_L][row];
            cr_assert(attended(&run.problem, row) > 0 ? isfinite(L) : isinf(L) && L < 0.0f, "L of row %zu is %g", row % 8, (double)L);
            for (size_t c = 0; c < d && attended(&run.problem, row) == 0; c++) cr_assert_eq(run.host[TENSOR_O][row * d + c], 0.0f);
        }
        run_destroy(&run);
    }
}

/* Keys that the mask hides from a query cannot change its output, not even in the last bit. */
Test(few_queries, causal_prefix, .init = needs_few_queries) {
    static const int lengths[] = {8, 64, 67, 130, 1000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t N_kv = (size_t)lengths[i];
        struct run run = grouped_run(1, 4, 2, 8, lengths[i], 64, true, INPUT_RANDOM);
        size_t d = (size_t)run.problem.d;
        forward(&run, step);
        double *O = keep(&run, TENSOR_O), *L = keep(&run, TENSOR_L);
        for (size_t c = 0; c < tensor_elements(&run.problem, TENSOR_K); c++)
            if (c / d % N_kv >= N_kv - 4) run.host[TENSOR_K][c] += 3.0f, run.host[TENSOR_V][c] -= 5.0f;
        cr_assert_eq(run_upload(&run), cudaSuccess);
        forward(&run, step);
        for (size_t row = 0; row < tensor_rows(&run.problem, TENSOR_Q); row++) {
            bool same = row % 8 < 4;
            cr_assert_eq((double)run.host[TENSOR_L][row] == L[row], same, "%d keys: L of row %zu", lengths[i], row % 8);
            for (size_t c = 0; c < d && same; c++) cr_assert_eq((double)run.host[TENSOR_O][row * d + c], O[row * d + c]);
        }
        free(O), free(L);
        run_destroy(&run);
    }
}

/* Two runs agree bit for bit: nothing may depend on the order in which blocks happen to run. */
Test(few_queries, repeatable, .init = needs_few_queries) {
    struct run run = grouped_run(1, 6, 2, 5, 1000, 128, true, INPUT_RANDOM);
    forward(&run, step);
    double *O = keep(&run, TENSOR_O), *L = keep(&run, TENSOR_L);
    for (unsigned repeat = 0; repeat < 5; repeat++) {
        if (simt_shuffle_blocks != NULL) simt_shuffle_blocks(repeat);
        forward(&run, step);
        cr_assert(same_bits(&run, TENSOR_O, O) && same_bits(&run, TENSOR_L, L));
    }
    free(O), free(L);
    run_destroy(&run);
}

/* NaN in one row of Q stays in this row of O, though the rows of a group share a tile. */
Test(few_queries, nan_stays_in_its_row, .init = needs_few_queries) {
    struct run run = grouped_run(1, 8, 2, 3, 200, 64, true, INPUT_RANDOM);
    size_t d = (size_t)run.problem.d, with_nan = 7;
    forward(&run, step);
    double *O = keep(&run, TENSOR_O);
    for (size_t c = 0; c < d; c++) run.host[TENSOR_Q][with_nan * d + c] = NAN;
    cr_assert_eq(run_upload(&run), cudaSuccess);
    forward(&run, step);
    for (size_t i = 0; i < tensor_elements(&run.problem, TENSOR_O); i++)
        if (i / d != with_nan) /* a row that shares a warp may get another maximum to subtract, and round otherwise */
            cr_assert_float_eq((double)run.host[TENSOR_O][i], O[i], 0.01, "row %zu", i / d);
    free(O);
    run_destroy(&run);
}

/* A thousand keys in one split or many: keys far apart in their scores, the largest at the end, at the beginning, in the middle. */
Test(few_queries, maximum_in_any_split, .init = needs_few_queries) {
    static const size_t where[] = {0, 63, 64, 500, 767, 768, 999};
    for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
        struct run run = grouped_run(1, 2, 1, 2, 1000, 128, false, INPUT_RANDOM);
        size_t d = (size_t)run.problem.d;
        for (size_t c = 0; c < tensor_elements(&run.problem, TENSOR_Q); c++) run.host[TENSOR_Q][c] = c % d == 0 ? 16.0f : 0.0f;
        for (size_t c = 0; c < 1000 * d; c += d) run.host[TENSOR_K][c] = c / d == where[i] ? 32.0f : -4.0f * (float)(c / d % 7);
        cr_assert_eq(run_upload(&run), cudaSuccess);
        forward(&run, step);
        expect_right(&run, step, false, "forward, one large score");
        run_destroy(&run);
    }
}
