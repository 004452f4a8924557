/* Every backward step against the reference and against identities that need none. O and L come from the fastest forward
 * step, as in the programs. */
#include <criterion/criterion.h>

#include "reference.h"
#include "run.h"
#include "shapes.h"
#include "simulated.h"
#include "step_list.h"
#include "step_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DECLARE(name) extern const struct step step_##name;
FOR_EACH_BACKWARD_STEP(DECLARE)
extern const struct step step_06_vectorized;

/* A run with its results fetched, ready to be looked at. */
struct outcome {
    struct run run;
    float *O, *L, *dQ, *dK, *dV;
};

static struct outcome prepare(const struct step *step, const struct shape *shape, enum input_kind input) {
    struct problem problem = problem_of(shape);
    struct outcome outcome;
    cudaError_t error = run_create(&outcome.run, step, &problem, input, 7);
    cr_assert_eq(error, cudaSuccess, "%s: %s", step->name, cudaGetErrorName(error));
    outcome.O = floats(query_elements(&problem));
    outcome.L = floats(query_rows(&problem));
    outcome.dQ = floats(query_elements(&problem));
    outcome.dK = floats(key_elements(&problem));
    outcome.dV = floats(key_elements(&problem));
    return outcome;
}

static void discard(struct outcome *outcome) {
    free(outcome->O);
    free(outcome->L);
    free(outcome->dQ);
    free(outcome->dK);
    free(outcome->dV);
    run_destroy(&outcome->run);
}

static void launch(struct outcome *outcome, const struct step *step, bool deterministic) {
    struct run *run = &outcome->run;
    cudaError_t error = run_forward(run, &step_06_vectorized);
    if (error == cudaSuccess) error = fetch_forward(run, outcome->O, outcome->L);
    cr_assert_eq(error, cudaSuccess, "forward: %s", cudaGetErrorName(error));
    error = run_backward(run, step, deterministic);
    if (error == cudaSuccess) error = fetch_backward(run, outcome->dQ, outcome->dK, outcome->dV);
    cr_assert_eq(error, cudaSuccess, "%s: %s", step->name, cudaGetErrorName(error));
    const char *broken = NULL;
    cr_assert_eq(find_broken_guard(run, &broken), cudaSuccess);
    cr_assert_null(broken, "%s wrote outside of %s", step->name, broken);
}

static void compare(const struct step *step, const struct shape *shape, enum input_kind input, bool deterministic) {
    struct outcome outcome = prepare(step, shape, input);
    launch(&outcome, step, deterministic);
    struct backward_check check =
        check_backward(&outcome.run, outcome.O, outcome.L, outcome.dQ, outcome.dK, outcome.dV, 1e12);
    cr_expect_eq(check.checked_rows, query_rows(&outcome.run.problem));
    cr_expect_eq(check.checked_keys, key_rows(&outcome.run.problem));
    cr_expect(
        check.ok,
        "%s%s: batch %d, heads %d, %d queries, %d keys, d %d%s, input %d: off by %g of its norm (bound %g) in dQ, %g "
        "(%g) in dK, %g (%g) in dV; at most %g (%g), %g (%g), %g (%g)%s",
        step->name, deterministic ? " deterministic" : "", shape->batch, shape->heads, shape->N_q, shape->N_kv,
        shape->d, shape->causal ? ", causal" : "", (int)input, check.dQ.err_rel, check.dQ.bound_rel, check.dK.err_rel,
        check.dK.bound_rel, check.dV.err_rel, check.dV.bound_rel, check.dQ.err_max, check.dQ.bound_max,
        check.dK.err_max, check.dK.bound_max, check.dV.err_max, check.dV.bound_max, check.finite ? "" : "; not finite");
    free_backward_check(&check);
    discard(&outcome);
}

/* Both variants, where the step has two. */
static void compare_shapes(const struct step *step, enum input_kind input, int stride) {
    cr_assert_geq(SHAPE_COUNT, 60);
    for (int i = 0; i < SHAPE_COUNT; i += stride) {
        struct problem problem = problem_of(&shapes[i]);
        cr_assert(step->refuses == NULL || step->refuses(&problem) == NULL);
        compare(step, &shapes[i], input, false);
        if (step->backward_deterministic != NULL && step->backward_deterministic != step->backward)
            compare(step, &shapes[i], input, true);
    }
}

/* A size that a reader can compare with others' numbers: unit-variance inputs, and errors as a share of each norm. */
static void errors_below_a_millionth(const struct step *step) {
    const struct shape shape = {1, 1, 128, 128, 64, false};
    for (int deterministic = 0; deterministic < (step->backward_deterministic != NULL ? 2 : 1); deterministic++) {
        struct outcome outcome = prepare(step, &shape, INPUT_RANDOM);
        launch(&outcome, step, deterministic);
        struct backward_check check =
            check_backward(&outcome.run, outcome.O, outcome.L, outcome.dQ, outcome.dK, outcome.dV, 1e12);
        cr_expect(check.dQ.err_rel < 1e-6, "dQ %g", check.dQ.err_rel);
        cr_expect(check.dK.err_rel < 1e-6, "dK %g", check.dK.err_rel);
        cr_expect(check.dV.err_rel < 1e-6, "dV %g", check.dV.err_rel);
        free_backward_check(&check);
        discard(&outcome);
    }
}

/* The weights of a row add up to 1 whatever the keys are, so that moving all keys alike changes nothing: the sum of dK
 * over keys is 0. Each row hands out all of its dO: the sum of dV over keys is the sum of dO over the rows that see a key
 * (docs/math.md, eq. 48-50). */
static void sums_over_keys(const struct step *step, bool causal) {
    const struct shape shape = {2, 2, 129, 97, 40, causal};
    struct outcome outcome = prepare(step, &shape, INPUT_RANDOM);
    launch(&outcome, step, false);
    size_t d = (size_t)shape.d, N_q = (size_t)shape.N_q, N_kv = (size_t)shape.N_kv;
    size_t first_seeing = causal ? N_q - N_kv : 0;
    for (size_t head = 0; head < 4; head++) {
        for (size_t c = 0; c < d; c++) {
            double dK = 0.0, dK_size = 0.0, dV = 0.0, dO = 0.0, dO_size = 0.0;
            for (size_t j = head * N_kv; j < (head + 1) * N_kv; j++) {
                dK += (double)outcome.dK[j * d + c];
                dK_size += fabs((double)outcome.dK[j * d + c]);
                dV += (double)outcome.dV[j * d + c];
            }
            for (size_t i = head * N_q + first_seeing; i < (head + 1) * N_q; i++) {
                dO += (double)outcome.run.dO[i * d + c];
                dO_size += fabs((double)outcome.run.dO[i * d + c]);
            }
            cr_assert_lt(fabs(dK), 1e-5 * dK_size, "dK adds up to %g of %g", dK, dK_size);
            cr_assert_lt(fabs(dV - dO), 1e-5 * dO_size, "dV adds up to %g, dO to %g", dV, dO);
        }
    }
    discard(&outcome);
}

/* Rows that see no key: their dQ is exactly 0, and what stands in their dO changes no gradient. */
static void masked_rows(const struct step *step) {
    const struct shape shape = {2, 2, 70, 33, 40, true};
    size_t d = (size_t)shape.d, masked = (size_t)(shape.N_q - shape.N_kv);
    struct outcome outcome = prepare(step, &shape, INPUT_RANDOM);
    launch(&outcome, step, false);
    size_t elements = key_elements(&outcome.run.problem);
    double *dK = malloc(elements * sizeof *dK), *dV = malloc(elements * sizeof *dV);
    for (size_t i = 0; i < elements; i++) {
        dK[i] = (double)outcome.dK[i];
        dV[i] = (double)outcome.dV[i];
    }
    for (size_t head = 0; head < 4; head++)
        for (size_t i = head * 70 * d; i < (head * 70 + masked) * d; i++) {
            cr_assert_eq(outcome.dQ[i], 0.0f);
            outcome.run.dO[i] += 100.0f;
            outcome.run.Q[i] -= 100.0f;
        }
    cr_assert_eq(run_upload(&outcome.run), cudaSuccess);
    launch(&outcome, step, false);
    /* Atomic additions come in any order, so two runs may differ in the last bits. */
    cr_assert(check_values(outcome.dK, dK, elements, 1e-6).ok);
    cr_assert(check_values(outcome.dV, dV, elements, 1e-6).ok);
    free(dK);
    free(dV);
    discard(&outcome);
}

/* A key that a query may not see gets nothing from it: with dO = 0 in all rows that see the last keys, their dK and dV
 * are exactly 0. */
static void masked_keys(const struct step *step) {
    const struct shape shape = {1, 2, 97, 129, 64, true};
    const int silent = 20; /* the last rows, with dO = 0 */
    size_t d = (size_t)shape.d;
    struct outcome outcome = prepare(step, &shape, INPUT_RANDOM);
    for (size_t head = 0; head < 2; head++)
        for (size_t i = (head * 97 + 97 - silent) * d; i < (head + 1) * 97 * d; i++) outcome.run.dO[i] = 0.0f;
    cr_assert_eq(run_upload(&outcome.run), cudaSuccess);
    launch(&outcome, step, false);
    for (size_t head = 0; head < 2; head++) {
        for (size_t j = 0; j < 129; j++) {
            float largest = 0.0f;
            for (size_t c = 0; c < d; c++) {
                largest = fmaxf(largest, fabsf(outcome.dK[(head * 129 + j) * d + c]));
                largest = fmaxf(largest, fabsf(outcome.dV[(head * 129 + j) * d + c]));
            }
            if (j >= 129 - silent)
                cr_assert_eq(largest, 0.0f, "key %zu", j);
            else
                cr_assert_gt(largest, 0.0f, "key %zu", j);
        }
    }
    discard(&outcome);
}

/* Heads do not mix: another dO in the second head leaves the first one's gradients alone. */
static void heads_apart(const struct step *step) {
    const struct shape shape = {1, 2, 65, 65, 32, false};
    struct outcome outcome = prepare(step, &shape, INPUT_RANDOM);
    launch(&outcome, step, false);
    size_t head = 65 * 32;
    double before[3][65 * 32];
    for (size_t i = 0; i < head; i++) {
        before[0][i] = (double)outcome.dQ[i];
        before[1][i] = (double)outcome.dK[i];
        before[2][i] = (double)outcome.dV[i];
        outcome.run.dO[head + i] = -7.0f * outcome.run.dO[head + i];
    }
    float dQ_other = outcome.dQ[head];
    cr_assert_eq(run_upload(&outcome.run), cudaSuccess);
    launch(&outcome, step, false);
    cr_assert(check_values(outcome.dQ, before[0], head, 1e-6).ok);
    cr_assert(check_values(outcome.dK, before[1], head, 1e-6).ok);
    cr_assert(check_values(outcome.dV, before[2], head, 1e-6).ok);
    cr_assert_neq(outcome.dQ[head], dQ_other, "the change had no effect");
    discard(&outcome);
}

/* 200 runs, the blocks in another order each time where we decide that, and one bit pattern. */
static void one_bit_pattern(const struct step *step) {
    if (step->backward_deterministic == NULL) cr_skip_test("no deterministic variant");
    const struct shape shape = {1, 2, 97, 161, 40, true};
    struct outcome outcome = prepare(step, &shape, INPUT_RANDOM);
    launch(&outcome, step, true);
    size_t query_bytes = query_elements(&outcome.run.problem) * sizeof(float);
    size_t key_bytes = key_elements(&outcome.run.problem) * sizeof(float);
    float *dQ = floats(query_bytes / sizeof(float)), *dK = floats(key_bytes / sizeof(float));
    float *dV = floats(key_bytes / sizeof(float));
    memcpy(dQ, outcome.dQ, query_bytes);
    memcpy(dK, outcome.dK, key_bytes);
    memcpy(dV, outcome.dV, key_bytes);
    for (unsigned repeat = 1; repeat < 200; repeat++) {
        if (simt_shuffle_blocks != NULL) simt_shuffle_blocks(repeat);
        cr_assert_eq(run_backward(&outcome.run, step, true), cudaSuccess);
        cr_assert_eq(fetch_backward(&outcome.run, outcome.dQ, outcome.dK, outcome.dV), cudaSuccess);
        cr_assert_arr_eq(outcome.dQ, dQ, query_bytes, "dQ of run %u", repeat);
        cr_assert_arr_eq(outcome.dK, dK, key_bytes, "dK of run %u", repeat);
        cr_assert_arr_eq(outcome.dV, dV, key_bytes, "dV of run %u", repeat);
    }
    free(dQ);
    free(dK);
    free(dV);
    discard(&outcome);
}

/* The check of a sample (problems too large to compare whole) must accept what the whole check accepts, and find an error
 * that is everywhere. */
static void sampled_check(const struct step *step) {
    const struct shape shape = {1, 2, 257, 300, 32, true};
    struct outcome outcome = prepare(step, &shape, INPUT_RANDOM);
    launch(&outcome, step, false);
    struct backward_check check =
        check_backward(&outcome.run, outcome.O, outcome.L, outcome.dQ, outcome.dK, outcome.dV, 1e6);
    cr_assert_lt(check.checked_rows, query_rows(&outcome.run.problem));
    cr_assert_lt(check.checked_keys, key_rows(&outcome.run.problem));
    cr_assert(check.ok);
    free_backward_check(&check);
    for (size_t i = 0; i < key_elements(&outcome.run.problem); i++) outcome.dK[i] *= 1.001f;
    check = check_backward(&outcome.run, outcome.O, outcome.L, outcome.dQ, outcome.dK, outcome.dV, 1e6);
    cr_assert_not(check.ok);
    cr_assert(check.dQ.ok && check.dV.ok);
    free_backward_check(&check);
    outcome.dV[5] = NAN;
    check = check_backward(&outcome.run, outcome.O, outcome.L, outcome.dQ, outcome.dK, outcome.dV, 1e6);
    cr_assert_not(check.finite);
    cr_assert_not(check.ok);
    free_backward_check(&check);
    discard(&outcome);
}

#define STEP_TESTS(name)                                                                                               \
    Test(backward_##name, shapes, .init = skip_without_device) { compare_shapes(&step_##name, INPUT_RANDOM, 1); }      \
    Test(backward_##name, identity_input, .init = skip_without_device) {                                               \
        compare_shapes(&step_##name, INPUT_IDENTITY, 3);                                                               \
    }                                                                                                                  \
    Test(backward_##name, large_logits, .init = skip_without_device) { compare_shapes(&step_##name, INPUT_LARGE, 3); } \
    Test(backward_##name, errors_below_a_millionth, .init = skip_without_device) {                                     \
        errors_below_a_millionth(&step_##name);                                                                        \
    }                                                                                                                  \
    Test(backward_##name, sums_over_keys, .init = skip_without_device) { sums_over_keys(&step_##name, false); }        \
    Test(backward_##name, sums_over_keys_causal, .init = skip_without_device) { sums_over_keys(&step_##name, true); }  \
    Test(backward_##name, masked_rows, .init = skip_without_device) { masked_rows(&step_##name); }                     \
    Test(backward_##name, masked_keys, .init = skip_without_device) { masked_keys(&step_##name); }                     \
    Test(backward_##name, heads_apart, .init = skip_without_device) { heads_apart(&step_##name); }                     \
    Test(backward_##name, one_bit_pattern, .init = skip_without_device) { one_bit_pattern(&step_##name); }             \
    Test(backward_##name, sampled_check, .init = skip_without_device) { sampled_check(&step_##name); }
FOR_EACH_BACKWARD_STEP(STEP_TESTS)
