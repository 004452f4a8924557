/* What the meter counts beside memory traffic: basic blocks, and how long asynchronous copies are under way. */
#include "meter_test.h"

#include <cuda_pipeline.h>

TestSuite(work, .init = need_simulated_device, .timeout = 60);

static int *in, *out;

static void prepare() {
    in = filled_on_device<int>(0, 1 << 14);
    out = filled_on_device<int>(0, 1 << 14);
    start(1);
}

/* One warp: all load, then lane 0 stores; and again. */
__global__ static void trailing_branch(const int *in, int *out, int rounds) {
    int lane = (int)threadIdx.x, sum = 0;
    for (int k = 0; k < rounds; k++) {
        sum += in[32 * k + lane];
        if (lane == 0) out[k] = sum;
    }
    out[32 + lane] = sum;
}

static double blocks_of(int rounds) {
    prepare();
    trailing_branch<<<1, 32>>>(in, out, rounds);
    return number(finish(), "basic_blocks");
}

/* How many a round has is the compiler's choice; each round has as many, and each lane enters one at least. */
Test(work, basic_blocks_of_each_round) {
    double two = blocks_of(2), four = blocks_of(4), eight = blocks_of(8);
    cr_assert_eq(eight - four, 2 * (four - two));
    cr_assert_geq(four - two, 2 * 32);
}

/* One warp copies, loads and stores; it waits for the copy at the end, or `at_once`. */
__global__ static void async_overlapped(const int *in, int *out, bool at_once) {
    __shared__ int ones[32];
    int lane = (int)threadIdx.x;
    __pipeline_memcpy_async(&ones[lane], &in[lane], 4);
    __pipeline_commit();
    if (at_once) __pipeline_wait_prior(0);
    out[lane] = in[32 + lane];
    __pipeline_wait_prior(0);
    out[32 + lane] = ones[lane];
}

/* 32 lanes each issue one copy, then load and store in global memory: before they wait for it, or after. */
Test(work, accesses_while_a_copy_is_under_way) {
    for (bool at_once : {false, true}) {
        prepare();
        async_overlapped<<<1, 32>>>(in, out, at_once);
        const cJSON *kernel = finish();
        expect_number(kernel, "async_copies", 32, "a warp");
        expect_number(kernel, "accesses_during_async_copies", at_once ? 0 : 2 * 32, at_once ? "waits first" : "waits last");
    }
}
