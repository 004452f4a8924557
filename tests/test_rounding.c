/* A step on tensor cores rounds no more than it must. One that takes 16-bit types rounds P, dS and its outputs to 16 bits, once
 * each, and adds in fp32; one that takes fp32 splits its numbers without loss. So its error is about as large as that of
 * attention written down with just these roundings (math_attention.c):
 *
 *     root mean square error against the oracle in double <= FACTOR * (the same of math attention)
 *
 * The checks of the programs bound what 16-bit attention may do wherever it rounds. This bound finds one more rounding: of S, dP
 * or a running sum. PRINT_ERRORS=1 prints every ratio. */
#include <criterion/criterion.h>

#include "border.h"
#include "oracle.h"
#include "step_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FACTOR 1.05

static const struct problem problems[] = {
    {.batch = 1, .heads = 2, .N_q = 200, .N_kv = 330, .d = 64},
    {.batch = 1, .heads = 1, .N_q = 190, .N_kv = 290, .d = 128, .causal = true},
    {.batch = 1, .heads = 1, .N_q = 150, .N_kv = 200, .d = 64}, /* its V is moved by 3 */
};
enum { PROBLEMS = sizeof problems / sizeof *problems, MOVED = PROBLEMS - 1 };

static double root_mean_square(const float *out, const double *ref, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) sum += ((double)out[i] - ref[i]) * ((double)out[i] - ref[i]);
    return sqrt(sum / (double)count);
}

static void rounds_no_more(const struct run *run, enum tensor tensor, const float *math, const double *ref) {
    size_t count = tensor_elements(&run->problem, tensor);
    double error = root_mean_square(run->host[tensor], ref, count), least = root_mean_square(math, ref, count);
    if (getenv("PRINT_ERRORS") != NULL)
        fprintf(stderr, "%s %s, %s: %s off by %.3g, %.3f of math attention\n", step_under_test->name,
                describe(&run->problem), dtype_names[run->problem.dtype], tensor_table[tensor].name, error,
                error / least);
    cr_expect(error <= FACTOR * least,
              "%s %s, %s: the error of %s is %.3g, and of attention with the roundings that it needs %.3g",
              step_under_test->name, describe(&run->problem), dtype_names[run->problem.dtype],
              tensor_table[tensor].name, error, least);
}

/* V + 3: dP and D become large, and their difference does not, so that each rounding of D counts for more. */
static void move_V(struct run *run) {
    for (size_t i = 0; i < tensor_elements(&run->problem, TENSOR_V); i++)
        run->host[TENSOR_V][i] = rounded_to(run->host[TENSOR_V][i] + 3.0f, run->problem.dtype);
    cr_assert_eq(run_upload(run), cudaSuccess);
}

static void compare(const struct run *run) {
    struct tensors math = math_attention(run);
    struct oracle oracle = ask_oracle(run);
    if (step_under_test->forward != NULL) rounds_no_more(run, TENSOR_O, math.O, oracle.values[TENSOR_O]);
    if (run->backward) {
        rounds_no_more(run, TENSOR_dQ, math.dQ, oracle.values[TENSOR_dQ]);
        rounds_no_more(run, TENSOR_dK, math.dK, oracle.values[TENSOR_dK]);
        rounds_no_more(run, TENSOR_dV, math.dV, oracle.values[TENSOR_dV]);
    }
    free_math(&math);
    free_oracle(&oracle);
}

Test(step, rounds_no_more, .init = skip_without_device) {
    if (step_under_test->compute_capability < 80) cr_skip_test("a step without tensor cores");
    LEAVE_TO_CI();
    int tested = 0;
    force_splits(3); /* their parts of O are rounded, too */
    for (enum dtype dtype = 0; dtype < DTYPES; dtype++)
        for (size_t i = 0; i < PROBLEMS; i++) {
            struct problem problem = problems[i];
            problem.scale = 1.0f / sqrtf((float)problem.d);
            problem.dtype = dtype;
            lower_queries(step_under_test, &problem);
            struct passes passes = {step_under_test->forward != NULL, step_under_test->backward != NULL, false};
            if (step_refuses(step_under_test, &problem, passes) != NULL) continue;
            /* Where V has one sign it loses bits of O: long_rows_of_eight_bits demands it. */
            if (i == MOVED && strcmp(step_under_test->name, "16x_one_accumulator") == 0) continue;
            for (int deterministic = 0; deterministic <= (step_under_test->backward_deterministic != NULL);
                 deterministic++) {
                struct run run = new_run(step_under_test, &problem, INPUT_RANDOM);
                if (i == MOVED) move_V(&run);
                forward(&run, step_under_test);
                if (step_under_test->backward != NULL) backward(&run, step_under_test, deterministic != 0);
                compare(&run);
                run_destroy(&run);
                tested++;
            }
        }
    cr_expect_geq(tested, 2);
}

/* NaN and infinity in one row of an input: where the reference is not finite the step is not, L tells it, and what attends to none of it is
 * right. The convention stands in docs/math/attention.md. */
#define step step_under_test

enum { ROW = 40, COLUMN = 5 }; /* of head 0 */

/* Rows of queries and of keys that may be NaN, too, because 0 times NaN is: those of head 0 that can share a tile with ROW, or its sequence. */
struct reach {
    size_t first, end;
};

static struct run run_with(const struct problem *problem, enum tensor tensor, size_t row, float value) {
    struct run run = new_run(step, problem, INPUT_RANDOM);
    size_t d = (size_t)problem->d;
    for (enum tensor of = TENSOR_Q; of <= TENSOR_K && isinf(value); of++) /* so that all products of the element have its sign */
        for (size_t i = COLUMN; i < tensor_elements(problem, of); i += d) run.host[of][i] = 1.0f;
    run.host[tensor][row * d + COLUMN] = value;
    cr_assert_eq(run_upload(&run), cudaSuccess);
    return run;
}

/* Where the oracle is not finite, nor is the output; elsewhere it is right, or within reach not finite. */
static void expect_like(const struct run *run, const struct oracle *oracle, enum tensor tensor, struct reach reach) {
    const struct problem *p = &run->problem;
    size_t columns = tensor_columns(p, tensor), in_head = (size_t)(tensor_table[tensor].per_key ? p->N_kv : p->N_q);
    size_t end = reach.end < in_head ? reach.end : in_head;
    for (size_t i = 0; i < tensor_elements(p, tensor); i++) {
        double expected = oracle->values[tensor][i], got = (double)run->host[tensor][i];
        bool right, reached = i / columns >= reach.first && i / columns < end;
        if (isfinite(expected)) right = fabs(got - expected) <= 0.05 + 0.05 * fabs(expected) || (reached && !isfinite(got));
        else if (tensor == TENSOR_L) right = isnan(expected) ? isnan(got) : got == (double)-INFINITY;
        else right = !isfinite(got);
        cr_expect(right, "%s, %s: %s[%zu][%zu] is %g where the reference is %g", step->name, describe(p), tensor_table[tensor].name,
                  i / columns, i % columns, got, expected);
        if (!right) return;
    }
}

static void compare_nonfinite(const struct problem *problem, enum tensor tensor, size_t row, float value, struct reach reach) {
    const struct reach nothing = {0, 0};
    if (step_refuses(step, problem, all_passes()) != NULL) return;
    struct run run = run_with(problem, tensor, row, value);
    forward(&run, step);
    struct oracle oracle = ask_oracle(&run);
    expect_like(&run, &oracle, TENSOR_L, nothing);
    expect_like(&run, &oracle, TENSOR_O, tensor == TENSOR_V ? reach : nothing);
    for (int deterministic = 0; run.backward && deterministic <= (step->backward_deterministic != NULL); deterministic++) {
        backward(&run, step, deterministic != 0);
        for (enum tensor gradient = TENSOR_dQ; gradient <= TENSOR_dV; gradient++) expect_like(&run, &oracle, gradient, reach);
    }
    free_oracle(&oracle);
    run_destroy(&run);
}

/* 70 queries, of which the first ones attend to no key, or few queries. */
static void of_two_heads(enum tensor tensor, float value) {
    struct problem problem = problem_for(step, &(struct shape){1, 2, 70, 60, 64, true, 0.0f});
    if (step->most_queries > 0) problem.N_kv = problem.N_q;
    size_t row = problem.N_q > ROW ? ROW : 3;
    compare_nonfinite(&problem, tensor, row, value, (struct reach){0, 70});
    static const int starts[] = {0, 37, 102, 167};
    problem.batch = 1, problem.N_q = problem.N_kv = 167, problem.causal = false;
    if (step->most_queries > 0 || (step->variants & PACKED) == 0) return;
    problem.starts = starts, problem.sequences = 3, problem.longest = 65;
    compare_nonfinite(&problem, tensor, row, value, (struct reach){37, 102});
}

Test(nonfinite, nan_in_Q, .init = skip_without_device) { of_two_heads(TENSOR_Q, NAN); }
Test(nonfinite, nan_in_K, .init = skip_without_device) { of_two_heads(TENSOR_K, NAN); }
Test(nonfinite, nan_in_V, .init = skip_without_device) { of_two_heads(TENSOR_V, NAN); }
Test(nonfinite, infinity_in_Q, .init = skip_without_device) { of_two_heads(TENSOR_Q, INFINITY); }
Test(nonfinite, infinity_in_K, .init = skip_without_device) { of_two_heads(TENSOR_K, INFINITY); }
Test(nonfinite, infinity_in_V, .init = skip_without_device) { of_two_heads(TENSOR_V, -INFINITY); }

/* The last key, under a mask: of the rows that end before its tile none is reached. Chapters that store S, and 04, visit all keys. */
Test(nonfinite, far_from_the_tile, .init = skip_without_device) {
    struct problem problem = problem_for(step, &(struct shape){1, 1, 520, 520, 64, true, 0.0f});
    if (!is_last_rung || problem.N_q < 520 || strncmp(step->name, "04", 2) == 0 || workspace_bytes_of(step, &problem) >= 4 * (size_t)(520 * 520))
        cr_skip_test("for last rungs that take many queries and visit tiles with an attended key only");
    compare_nonfinite(&problem, TENSOR_V, 519, NAN, (struct reach){128, 520});
}
