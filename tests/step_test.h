/* What the tests of a step share. */
#ifndef STEP_TEST_H
#define STEP_TEST_H

#include <criterion/criterion.h>

#include "variants.h"
#include "run.h"
#include "shapes.h"

#include <stdio.h>
#include <stdlib.h>

/* The build links each test program with one step: step_under_test.c. */
extern const struct step *const step_under_test;
extern const bool is_last_rung; /* else a rung below it, or a failed idea: tested on fewer shapes */
/* ./run.sh test takes a part of a last rung's shapes and orders, so that it ends within minutes; CI and try take all. */
static inline bool takes_part(void) { return getenv("TEST_FEWER") != NULL; }
/* The step through a list of cases: 1, or of a part `fewer`, which divides no period of the list, so that each kind of case stays. */
static inline int every(int fewer) { return takes_part() ? fewer : 1; }
/* For a test that takes long and that ./run.sh test leaves out. */
#define LEAVE_TO_CI() \
    if (takes_part()) cr_skip_test("left to .ci/run")

/* The number of splits that a step takes in place of its rule's; 0: the rule's. The last rung of chapter 14 has it (steps/14_decode/decode.cu). */
extern int decode_splits __attribute__((weak));
static inline void force_splits(int splits) {
    if (&decode_splits != NULL) decode_splits = splits;
}

/* For .init of a test that runs kernels. */
static inline void skip_without_device(void) {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) cr_skip_test("no CUDA device");
}

static inline void needs_forward(void) {
    skip_without_device();
    if (step_under_test->forward == NULL) cr_skip_test("no forward pass");
}
static inline void needs_backward(void) {
    skip_without_device();
    if (step_under_test->backward == NULL) cr_skip_test("no backward pass");
}

/* The problem with as many queries as the step takes. */
static inline void lower_queries(const struct step *step, struct problem *problem) {
    if (step->most_queries > 0 && problem->N_q > step->most_queries) problem->N_q = step->most_queries;
}

/* The problem of a shape, its d rounded up and its queries lowered to what the step takes, in the type that its program runs. */
static inline struct problem problem_for(const struct step *step, const struct shape *shape) {
    struct problem problem = problem_of(shape);
    int multiple = step->d_multiple > 1 ? step->d_multiple : 1;
    problem.d = ceil_div(problem.d, multiple) * multiple;
    problem.dtype = usual_dtype(step);
    problem.hadamard = step->hadamard;
    lower_queries(step, &problem);
    return problem;
}

static inline const char *describe(const struct problem *p) {
    static char text[400];
    snprintf(text, sizeof text, "batch %d, heads %d on %d, %d queries, %d keys, d %d, scale %g%s%s, %s", p->batch, p->heads, kv_heads(p),
             p->N_q, p->N_kv, p->d, (double)p->scale, p->causal ? ", causal" : "", variants_text(p), dtype_names[p->dtype]);
    return text;
}

/* A run of a problem, released by run_destroy(). */
static inline struct run new_run(const struct step *step, const struct problem *problem, enum input_kind input) {
    struct run run;
    cudaError_t error = run_create(&run, step, problem, input, 7);
    cr_assert_eq(error, cudaSuccess, "%s, %s: %s", step->name, describe(problem), cudaGetErrorName(error));
    return run;
}

static inline void succeed(const struct run *run, const struct step *step, cudaError_t error) {
    cr_assert_eq(error, cudaSuccess, "%s, %s: %s", step->name, describe(&run->problem), cudaGetErrorName(error));
    const char *broken = NULL;
    cr_assert_eq(find_broken_guard(run, &broken), cudaSuccess);
    cr_assert_null(broken, "%s wrote outside of %s", step->name, broken);
}

/* Run the forward pass; before a step's backward pass alone it is the harness's. */
static inline void forward(struct run *run, const struct step *step) { succeed(run, step, run_forward(run, step)); }

static inline void backward(struct run *run, const struct step *step, bool deterministic) {
    succeed(run, step, run_backward(run, step, deterministic));
}

/* A copy of a fetched output, as doubles: what later runs are compared with. */
static inline double *keep(const struct run *run, enum tensor tensor) {
    size_t count = tensor_elements(&run->problem, tensor);
    double *values = malloc(count * sizeof *values);
    cr_assert_not_null(values);
    for (size_t i = 0; i < count; i++) values[i] = (double)run->host[tensor][i];
    return values;
}

static inline bool same_bits(const struct run *run, enum tensor tensor, const double *kept) {
    for (size_t i = 0; i < tensor_elements(&run->problem, tensor); i++)
        if ((double)run->host[tensor][i] != kept[i] && !(isnan(run->host[tensor][i]) && isnan(kept[i]))) return false;
    return true;
}

/* Everything computed on all rows against the reference. */
static inline void expect_right(const struct run *run, const struct step *step, bool backward, const char *what) {
    struct verdict verdict = check_run(run, backward, 1e15);
    cr_expect_eq(verdict.checked_queries, tensor_rows(&run->problem, TENSOR_Q));
    if (backward) cr_expect_eq(verdict.checked_keys, tensor_rows(&run->problem, TENSOR_K));
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        const struct check *check = &verdict.checks[tensor];
        if (!is_output(tensor) || (is_backward(tensor) && !backward)) continue;
        cr_expect(check->ok, "%s %s, %s: %s is off by %g of its norm (bound %g), at most by %g (bound %g)", step->name,
                  what, describe(&run->problem), tensor_table[tensor].name, check->err_rel, check->bound_rel,
                  check->err_max, check->bound_max);
    }
    cr_expect(verdict.ok, "%s %s, %s: not right, or not finite", step->name, what, describe(&run->problem));
    free_verdict(&verdict);
}

static inline struct run small_run(int batch, int heads, int N_q, int N_kv, int d, bool causal, enum input_kind input) {
    struct problem problem = problem_for(step_under_test, &(struct shape){batch, heads, N_q, N_kv, d, causal, 0.0f});
    if (problem.N_q != N_q) cr_skip_test("the step takes fewer queries: tests/test_decode.c");
    return new_run(step_under_test, &problem, input);
}

static inline struct passes all_passes(void) {
    return (struct passes){step_under_test->forward != NULL, step_under_test->backward != NULL,
                           step_under_test->backward_deterministic != NULL};
}

/* All passes of the step on one problem, each against the reference. */
static inline void compare_passes(const struct problem *problem, enum input_kind input) {
    struct run run = new_run(step_under_test, problem, input);
    forward(&run, step_under_test);
    if (step_under_test->forward != NULL) expect_right(&run, step_under_test, false, "forward");
    if (step_under_test->backward != NULL) {
        backward(&run, step_under_test, false);
        expect_right(&run, step_under_test, true, "backward");
    }
    if (step_under_test->backward_deterministic != NULL &&
        step_under_test->backward_deterministic != step_under_test->backward) {
        backward(&run, step_under_test, true);
        expect_right(&run, step_under_test, true, "deterministic backward");
    }
    run_destroy(&run);
}

#endif
