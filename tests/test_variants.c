/* The variants that a chapter measures beside its own kernels, against the reference: what is timed must be right. */
#include <criterion/criterion.h>

#include "run.h"
#include "shapes.h"
#include "step_test.h"
#include "variant_list.h"

#include <stdlib.h>

#define DECLARE(name) extern const struct step step_##name;
FOR_EACH_FORWARD_VARIANT(DECLARE)
FOR_EACH_BACKWARD_VARIANT(DECLARE)
extern const struct step step_06_vectorized;

static bool right(const struct step *step, const struct problem *problem, enum input_kind input) {
    struct run run;
    cudaError_t error = run_create(&run, step, problem, input, 7);
    cr_assert_eq(error, cudaSuccess, "%s: %s", step->name, cudaGetErrorName(error));
    float *O = floats(query_elements(problem)), *L = floats(query_rows(problem));
    error = run_forward(&run, step->forward != NULL ? step : &step_06_vectorized);
    if (error == cudaSuccess) error = fetch_forward(&run, O, L);
    cr_assert_eq(error, cudaSuccess, "%s: %s", step->name, cudaGetErrorName(error));
    bool ok = true;
    if (step->forward != NULL) {
        struct forward_check check = check_forward(&run, O, L, 1e12);
        ok = check.ok;
        free_forward_check(&check);
    }
    if (step->backward != NULL) {
        float *dQ = floats(query_elements(problem)), *dK = floats(key_elements(problem)),
              *dV = floats(key_elements(problem));
        error = run_backward(&run, step, false);
        if (error == cudaSuccess) error = fetch_backward(&run, dQ, dK, dV);
        cr_assert_eq(error, cudaSuccess, "%s: %s", step->name, cudaGetErrorName(error));
        struct backward_check check = check_backward(&run, O, L, dQ, dK, dV, 1e12);
        ok = ok && check.ok;
        free_backward_check(&check);
        free(dQ);
        free(dK);
        free(dV);
    }
    const char *broken = NULL;
    cr_assert_eq(find_broken_guard(&run, &broken), cudaSuccess);
    cr_assert_null(broken, "%s wrote outside of %s", step->name, broken);
    free(O);
    free(L);
    run_destroy(&run);
    return ok;
}

static void some_shapes(const struct step *step) {
    cr_assert(step->forward != NULL || step->backward != NULL);
    int tried = 0;
    for (int i = 0; i < SHAPE_COUNT; i += 4) {
        struct problem problem = problem_of(&shapes[i]);
        if (step->refuses != NULL && step->refuses(&problem) != NULL) continue;
        tried++;
        enum input_kind input = i % 3 == 0 ? INPUT_LARGE : INPUT_RANDOM;
        cr_expect(right(step, &problem, input), "%s: batch %d, heads %d, %d queries, %d keys, d %d%s, input %d", step->name,
                  problem.batch, problem.heads, problem.N_q, problem.N_kv, problem.d, problem.causal ? ", causal" : "",
                  (int)input);
    }
    cr_expect_geq(tried, SHAPE_COUNT / 8);
}

#define TEST_VARIANT(name)                                                                                             \
    Test(variants, name, .init = skip_without_device) { some_shapes(&step_##name); }
FOR_EACH_FORWARD_VARIANT(TEST_VARIANT)
FOR_EACH_BACKWARD_VARIANT(TEST_VARIANT)
