/* A step on tensor cores rounds no more than it must. One that takes 16-bit types rounds P, dS and its outputs to 16 bits, once
 * each, and adds in fp32; one that takes fp32 splits its numbers without loss. So its error is about as large as that of
 * attention written down with just these roundings (math_attention.h):
 *
 *     root mean square error against the oracle in double <= FACTOR * (the same of math attention)
 *
 * The checks of the programs bound what 16-bit attention may do wherever it rounds. This bound finds one more rounding: of S, dP
 * or a running sum. PRINT_ERRORS=1 prints every ratio. */
#include <criterion/criterion.h>

#include "border.h"
#include "math_attention.h"
#include "oracle.h"
#include "step_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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
