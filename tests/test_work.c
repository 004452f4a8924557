/* What the meter counts beside memory traffic: basic blocks, and how long asynchronous copies are under way. */
#include "meter_kernels.h"

#include "run.h"
#include "simulated.h"

#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <stdlib.h>

enum { COPIED_EARLY, COPIED_LATE, ROUNDS };

/* A count of one kernel. */
static double count(const char *name, int what, int rounds) {
    void *in = NULL, *out = NULL;
    cr_assert_eq(cudaMalloc(&in, 1 << 16) | cudaMalloc(&out, 1 << 16) | cudaMemset(in, 0, 1 << 16), cudaSuccess);
    simt_meter_start(1);
    if (what == ROUNDS)
        run_trailing_branch(in, out, rounds);
    else
        run_async_overlapped(in, out, what == COPIED_LATE);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
    simt_meter_stop();
    char *text = simt_meter_json();
    cJSON *kernels = cJSON_Parse(text);
    double value = cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetArrayItem(kernels, 0), name));
    cJSON_Delete(kernels);
    free(text);
    cudaFree(in), cudaFree(out);
    return value;
}

static void need_simulated_device(void) {
    if (simt_meter_start == NULL) cr_skip_test("needs the simulated device");
}
TestSuite(work, .init = need_simulated_device, .timeout = 60);

/* How many a round has is the compiler's choice; each round has as many, and each lane enters one at least. */
Test(work, basic_blocks_of_each_round) {
    double two = count("basic_blocks", ROUNDS, 2), four = count("basic_blocks", ROUNDS, 4), eight = count("basic_blocks", ROUNDS, 8);
    cr_assert_eq(eight - four, 2 * (four - two));
    cr_assert_geq(four - two, 2 * 32);
}

/* 32 lanes each issue one copy, then load and store in global memory: before they wait for it, or after. */
Test(work, accesses_while_a_copy_is_under_way) {
    cr_assert_eq(count("async_copies", COPIED_EARLY, 0), 32);
    cr_assert_eq(count("accesses_during_async_copies", COPIED_EARLY, 0), 2 * 32);
    cr_assert_eq(count("async_copies", COPIED_LATE, 0), 32);
    cr_assert_eq(count("accesses_during_async_copies", COPIED_LATE, 0), 0);
}
