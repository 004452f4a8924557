/* On one device the rungs of chapter 17 compute what 12e and the last rung of chapter 13 do, bit for bit: nothing but the exchange is
 * new. */
#include "run.h"

#include <criterion/criterion.h>
#include <string.h>

extern const struct step step_12e_order, step_13_hopper_bwd, step_17a_allgather, step_17b_ring, step_17_ring,
    step_17x_backward;

static struct run run_of(const struct step *step, const struct problem *problem) {
    struct run run;
    cr_assert_eq(run_create(&run, step, problem, INPUT_RANDOM, 3), cudaSuccess);
    cr_assert_eq(run_forward(&run, step), cudaSuccess);
    if (step->backward != NULL) cr_assert_eq(run_backward(&run, step, false), cudaSuccess);
    return run;
}

static const struct problem problems[] = {
    {.dtype = BF16, .batch = 1, .heads = 2, .N_q = 200, .N_kv = 200, .d = 64, .scale = 0.125f},
    {.dtype = BF16, .batch = 1, .heads = 1, .N_q = 300, .N_kv = 300, .d = 128, .causal = true, .scale = 0.1f},
    {.dtype = FP16,
     .batch = 2,
     .heads = 1,
     .N_q = 97,
     .N_kv = 260,
     .d = 72,
     .causal = true,
     .scale = 0.1f,
     .devices = 1},
};

/* The rungs' outputs from `first` to `last` are those of the step, of every problem. */
static void compare(const struct step *step, const struct step *const *rungs, enum tensor first, enum tensor last) {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) cr_skip_test("no CUDA device");
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        struct run wanted = run_of(step, &problems[i]);
        for (const struct step *const *rung = rungs; *rung != NULL; rung++) {
            struct run run = run_of(*rung, &problems[i]);
            for (enum tensor tensor = first; tensor <= last; tensor++)
                cr_expect(memcmp(run.host[tensor], wanted.host[tensor],
                                 tensor_elements(&problems[i], tensor) * sizeof(float)) == 0,
                          "%s, problem %zu: other bits of %s", (*rung)->name, i, tensor_table[tensor].name);
            run_destroy(&run);
        }
        run_destroy(&wanted);
    }
}

Test(ring, one_device_is_12e) {
    static const struct step *const rungs[] = {&step_17a_allgather, &step_17b_ring, &step_17_ring, NULL};
    compare(&step_12e_order, rungs, TENSOR_O, TENSOR_L);
}

/* dQ apart: blocks add to it in any order. */
Test(ring, one_device_is_chapter_13) {
    static const struct step *const rungs[] = {&step_17x_backward, NULL};
    compare(&step_13_hopper_bwd, rungs, TENSOR_dK, TENSOR_dV);
}
