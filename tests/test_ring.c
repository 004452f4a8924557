/* On one device each rung of chapter 17 computes what the last rung of chapter 12 does, bit for bit: nothing but the exchange is new. */
#include "run.h"

#include <criterion/criterion.h>
#include <string.h>

extern const struct step step_12_hopper_fwd, step_17a_allgather, step_17b_ring, step_17_ring;

static struct run run_of(const struct step *step, const struct problem *problem) {
    struct run run;
    cr_assert_eq(run_create(&run, step, problem, INPUT_RANDOM, 3), cudaSuccess);
    cr_assert_eq(run_forward(&run, step), cudaSuccess);
    return run;
}

Test(ring, one_device_is_chapter_12) {
    static const struct step *const rungs[] = {&step_17a_allgather, &step_17b_ring, &step_17_ring};
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
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) cr_skip_test("no CUDA device");
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        const struct problem *p = &problems[i];
        if (step_refuses(&step_12_hopper_fwd, p, (struct passes){.forward = true}) != NULL) continue;
        struct run wanted = run_of(&step_12_hopper_fwd, p);
        for (size_t r = 0; r < sizeof rungs / sizeof *rungs; r++) {
            struct run run = run_of(rungs[r], p);
            for (enum tensor tensor = TENSOR_O; tensor <= TENSOR_L; tensor++)
                cr_expect(memcmp(run.host[tensor], wanted.host[tensor], tensor_elements(p, tensor) * sizeof(float)) ==
                              0,
                          "%s, problem %zu: other bits of %s", rungs[r]->name, i, tensor_table[tensor].name);
            run_destroy(&run);
        }
        run_destroy(&wanted);
    }
}
