/* Every forward step against the reference and against identities that need none. A new step is tested by being in steps/. */
#include <criterion/criterion.h>

#include "reference.h"
#include "run.h"
#include "shapes.h"
#include "step_list.h"
#include "step_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DECLARE(name) extern const struct step step_##name;
FOR_EACH_FORWARD_STEP(DECLARE)

/* A run with O and L fetched, ready to be looked at. */
struct outcome {
    struct run run;
    float *O, *L;
};

static void launch(struct outcome *outcome, const struct step *step) {
    cudaError_t error = run_forward(&outcome->run, step);
    if (error == cudaSuccess) error = fetch_forward(&outcome->run, outcome->O, outcome->L);
    cr_assert_eq(error, cudaSuccess, "%s: %s", step->name, cudaGetErrorName(error));
    const char *broken = NULL;
    cr_assert_eq(find_broken_guard(&outcome->run, &broken), cudaSuccess);
    cr_assert_null(broken, "%s wrote outside of %s", step->name, broken);
}

static struct outcome prepare(const struct step *step, const struct shape *shape, enum input_kind input) {
    struct problem problem = problem_of(shape);
    struct outcome outcome;
    cudaError_t error = run_create(&outcome.run, step, &problem, input, 7);
    cr_assert_eq(error, cudaSuccess, "%s: %s", step->name, cudaGetErrorName(error));
    outcome.O = floats(query_elements(&problem));
    outcome.L = floats(query_rows(&problem));
    return outcome;
}

static void discard(struct outcome *outcome) {
    free(outcome->O);
    free(outcome->L);
    run_destroy(&outcome->run);
}

/* True when the step does this shape; a refusal must come with a reason. */
static bool supported(const struct step *step, const struct shape *shape) {
    struct problem problem = problem_of(shape);
    const char *reason = step->refuses != NULL ? step->refuses(&problem) : NULL;
    cr_assert(reason == NULL || *reason != '\0');
    return reason == NULL;
}

static void compare(const struct step *step, const struct shape *shape, enum input_kind input) {
    cr_assert(supported(step, shape));
    struct outcome outcome = prepare(step, shape, input);
    launch(&outcome, step);
    struct forward_check check = check_forward(&outcome.run, outcome.O, outcome.L, 1e12);
    cr_expect_eq(check.checked_rows, query_rows(&outcome.run.problem));
    cr_expect(
        check.ok,
        "%s: batch %d, heads %d, %d queries, %d keys, d %d%s, input %d: O off by %g of its norm (bound %g) and %g "
        "at most (bound %g), L by %g (bound %g)",
        step->name, shape->batch, shape->heads, shape->N_q, shape->N_kv, shape->d, shape->causal ? ", causal" : "",
        (int)input, check.O.err_rel, check.O.bound_rel, check.O.err_max, check.O.bound_max, check.L.err_max,
        check.L.bound_max);
    free_forward_check(&check);
    discard(&outcome);
}

static void all_shapes(const struct step *step) {
    cr_assert_geq(SHAPE_COUNT, 60);
    for (int i = 0; i < SHAPE_COUNT; i++) compare(step, &shapes[i], INPUT_RANDOM);
}

static void some_shapes(const struct step *step, enum input_kind input) {
    for (int i = 0; i < SHAPE_COUNT; i += 3) compare(step, &shapes[i], input);
}

/* More queries than keys: the first rows see nothing, and must say so exactly. */
static void masked_rows(const struct step *step) {
    const struct shape shape = {2, 2, 70, 33, 40, true};
    struct outcome outcome = prepare(step, &shape, INPUT_RANDOM);
    launch(&outcome, step);
    int masked = shape.N_q - shape.N_kv;
    for (int head = 0; head < 4; head++) {
        for (int row = 0; row < shape.N_q; row++) {
            size_t r = (size_t)(head * shape.N_q + row);
            if (row >= masked) {
                cr_assert(isfinite(outcome.L[r]), "row %d sees a key", row);
                continue;
            }
            cr_assert(isinf(outcome.L[r]) && outcome.L[r] < 0, "L of head %d, row %d is %g", head, row,
                      (double)outcome.L[r]);
            for (int c = 0; c < shape.d; c++) cr_assert_eq(outcome.O[r * (size_t)shape.d + (size_t)c], 0.0f);
        }
    }
    discard(&outcome);
}

/* What a query may not see cannot change its output, not even in the last bit. */
static void causal_prefix(const struct step *step) {
    const struct shape shape = {1, 2, 129, 129, 64, true};
    const int changed = 70; /* keys from here on get other values */
    struct outcome outcome = prepare(step, &shape, INPUT_RANDOM);
    launch(&outcome, step);
    size_t elements = query_elements(&outcome.run.problem), rows = query_rows(&outcome.run.problem);
    float *O_before = floats(elements), *L_before = floats(rows);
    memcpy(O_before, outcome.O, elements * sizeof(float));
    memcpy(L_before, outcome.L, rows * sizeof(float));
    for (int head = 0; head < 2; head++) {
        for (int i = changed * shape.d; i < shape.N_kv * shape.d; i++) {
            outcome.run.K[head * shape.N_kv * shape.d + i] += 3.0f;
            outcome.run.V[head * shape.N_kv * shape.d + i] -= 5.0f;
        }
    }
    cr_assert_eq(run_upload(&outcome.run), cudaSuccess);
    launch(&outcome, step);
    size_t d = (size_t)shape.d;
    for (size_t head = 0; head < 2; head++) {
        size_t first = head * (size_t)shape.N_q;
        cr_assert_arr_eq(outcome.O + first * d, O_before + first * d, (size_t)changed * d * sizeof(float));
        cr_assert_arr_eq(outcome.L + first, L_before + first, (size_t)changed * sizeof(float));
        cr_assert_neq(outcome.L[first + (size_t)changed], L_before[first + (size_t)changed],
                      "the change had no effect");
    }
    free(O_before);
    free(L_before);
    discard(&outcome);
}

/* The weights of a row add up to 1: where V is all ones, so is O. */
static void weights_sum_to_one(const struct step *step) {
    const struct shape shape = {1, 1, 65, 129, 40, false};
    struct outcome outcome = prepare(step, &shape, INPUT_LARGE);
    for (int i = 0; i < shape.N_kv * shape.d; i++) outcome.run.V[i] = 1.0f;
    cr_assert_eq(run_upload(&outcome.run), cudaSuccess);
    launch(&outcome, step);
    for (int i = 0; i < shape.N_q * shape.d; i++) cr_assert_float_eq(outcome.O[i], 1.0f, 2e-6f);
    discard(&outcome);
}

/* Adding one vector to every key adds one number to all scores of a row: O stays, L moves by that number. */
static void shifted_scores(const struct step *step) {
    const struct shape shape = {1, 1, 33, 65, 32, false};
    struct outcome outcome = prepare(step, &shape, INPUT_RANDOM);
    launch(&outcome, step);
    size_t elements = query_elements(&outcome.run.problem);
    double *O_before = malloc(elements * sizeof(double));
    float L_before[33];
    for (size_t i = 0; i < elements; i++) O_before[i] = (double)outcome.O[i];
    memcpy(L_before, outcome.L, sizeof L_before);
    for (int j = 0; j < shape.N_kv; j++)
        for (int c = 0; c < shape.d; c++) outcome.run.K[j * shape.d + c] += c % 2 == 0 ? 0.5f : 0.25f;
    cr_assert_eq(run_upload(&outcome.run), cudaSuccess);
    launch(&outcome, step);
    cr_assert(check_values(outcome.O, O_before, elements, 2e-5).ok);
    for (int i = 0; i < shape.N_q; i++) {
        double shift = 0;
        for (int c = 0; c < shape.d; c++) shift += (c % 2 == 0 ? 0.5 : 0.25) * (double)outcome.run.Q[i * shape.d + c];
        shift *= (double)outcome.run.problem.scale;
        cr_assert_float_eq((double)outcome.L[i], (double)L_before[i] + shift, 1e-4);
    }
    free(O_before);
    discard(&outcome);
}

/* Keys and their values may come in any order. */
static void permuted_keys(const struct step *step) {
    const struct shape shape = {1, 1, 33, 129, 32, false};
    struct outcome outcome = prepare(step, &shape, INPUT_RANDOM);
    launch(&outcome, step);
    size_t elements = query_elements(&outcome.run.problem), d = (size_t)shape.d;
    double *O_before = malloc(elements * sizeof(double));
    for (size_t i = 0; i < elements; i++) O_before[i] = (double)outcome.O[i];
    for (int j = 0; j < shape.N_kv / 2; j++) {
        float *rows[2][2] = {{outcome.run.K + (size_t)j * d, outcome.run.K + (size_t)(shape.N_kv - 1 - j) * d},
                             {outcome.run.V + (size_t)j * d, outcome.run.V + (size_t)(shape.N_kv - 1 - j) * d}};
        for (int t = 0; t < 2; t++) {
            float swapped[MAX_HEAD_DIM];
            memcpy(swapped, rows[t][0], d * sizeof(float));
            memcpy(rows[t][0], rows[t][1], d * sizeof(float));
            memcpy(rows[t][1], swapped, d * sizeof(float));
        }
    }
    cr_assert_eq(run_upload(&outcome.run), cudaSuccess);
    launch(&outcome, step);
    cr_assert(check_values(outcome.O, O_before, elements, 2e-5).ok);
    free(O_before);
    discard(&outcome);
}

/* Two runs of the same forward pass agree bit for bit: nothing may depend on the order in which blocks happen to run. */
static void repeatable(const struct step *step) {
    const struct shape shape = {2, 2, 113, 203, 64, true};
    struct outcome outcome = prepare(step, &shape, INPUT_RANDOM);
    launch(&outcome, step);
    size_t elements = query_elements(&outcome.run.problem);
    float *first = floats(elements);
    memcpy(first, outcome.O, elements * sizeof(float));
    for (int repeat = 0; repeat < 5; repeat++) {
        launch(&outcome, step);
        cr_assert_arr_eq(outcome.O, first, elements * sizeof(float));
    }
    free(first);
    discard(&outcome);
}

#define STEP_TESTS(name)                                                                                               \
    Test(step_##name, shapes, .init = skip_without_device) { all_shapes(&step_##name); }                               \
    Test(step_##name, identity_input, .init = skip_without_device) { some_shapes(&step_##name, INPUT_IDENTITY); }      \
    Test(step_##name, large_logits, .init = skip_without_device) { some_shapes(&step_##name, INPUT_LARGE); }           \
    Test(step_##name, masked_rows, .init = skip_without_device) { masked_rows(&step_##name); }                         \
    Test(step_##name, causal_prefix, .init = skip_without_device) { causal_prefix(&step_##name); }                     \
    Test(step_##name, weights_sum_to_one, .init = skip_without_device) { weights_sum_to_one(&step_##name); }           \
    Test(step_##name, shifted_scores, .init = skip_without_device) { shifted_scores(&step_##name); }                   \
    Test(step_##name, permuted_keys, .init = skip_without_device) { permuted_keys(&step_##name); }                     \
    Test(step_##name, repeatable, .init = skip_without_device) { repeatable(&step_##name); }
FOR_EACH_FORWARD_STEP(STEP_TESTS)
