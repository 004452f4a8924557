/* The simulated device remembers who accessed a word and when (common/simt/memory/stamp.h). Accesses that lie a million launches
 * or barriers apart are ordered all the same, and two that race are found however far apart their blocks are. */
#include "stamp_kernels.h"

#include "captured.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 32 };

TestSuite(stamps, .init = capture_stderr, .timeout = 120);

static int *zeros(size_t bytes) {
    void *memory = NULL;
    cr_assert_eq(cudaMalloc(&memory, bytes), cudaSuccess);
    cr_assert_eq(cudaMemset(memory, 0, bytes), cudaSuccess);
    return memory;
}

static void expect_right(const char *what, int count) {
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess, "%s, %d: %s", what, count, simt_last_report());
}

static void expect_race(const char *words) {
    cr_assert_eq(cudaDeviceSynchronize(), cudaErrorLaunchFailure, "no fault");
    expect_reports();
    cr_assert_not_null(strstr(simt_last_report(), "race on"), "%s", simt_last_report());
    cr_assert_not_null(strstr(simt_last_report(), words), "no \"%s\" in %s", words, simt_last_report());
    cr_assert_eq(cudaDeviceReset(), cudaSuccess);
}

/* Launches of one block, of which none is of part 0 of 2: they count, and take no time. */
static void skip_launches(int count) {
    simt_run_part(2, 0);
    for (int i = 0; i < count; i++) run_nothing();
    simt_run_part(1, 0);
}

Test(stamps, a_million_launches_apart) {
    static const int distances[] = {0, 14, 15, 16, 65533, 65534, 65535, 65536, 1048573, 1048574, 1048575, 1048576};
    int *data = zeros(THREADS * sizeof *data), *out = zeros(THREADS * sizeof *out);
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        run_store(data, THREADS);
        skip_launches(distances[i]);
        run_load(data, out, THREADS);
        expect_right("launches between", distances[i]);
        skip_launches(distances[i]);
        run_store(data, THREADS);
        expect_right("launches between, store after load", distances[i]);
    }
    run_every(data, 1, 2);
    expect_race("blocks run in any order");
}

/* What nobody has written stays known as such. */
Test(stamps, unwritten_for_a_million_launches) {
    void *fresh = NULL;
    int *out = zeros(THREADS * sizeof *out);
    cr_assert_eq(cudaMalloc(&fresh, THREADS * sizeof *out), cudaSuccess);
    run_store(fresh, THREADS - 1);
    skip_launches(1100000);
    run_load(fresh, out, THREADS - 1);
    expect_right("a part that is written", 1100000);
    run_load(fresh, out, THREADS);
    cr_assert_eq(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    cr_assert_not_null(strstr(simt_last_report(), "[31], counted in 4-byte elements, which nobody has written"), "%s", simt_last_report());
}

Test(stamps, barriers_far_apart) {
    static const int distances[] = {1, 7, 8, 15, 16, 17, 65535, 65536, 65537};
    int *out = zeros(2 * sizeof *out);
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        run_far_apart(out, distances[i], 1);
        run_far_apart_global(out, distances[i]);
        expect_right("barriers between", distances[i]);
    }
    run_far_apart(out, 65536, 0);
    expect_race("a __syncthreads() is missing between the two");
}

/* One worker runs them all, in the same shared memory. */
Test(stamps, shared_memory_of_many_blocks) {
    setenv("SIMT_THREADS", "1", 1);
    run_alternating(zeros(100 * sizeof(int)), 100);
    expect_right("blocks", 100);
}

Test(stamps, blocks_far_apart) {
    static const unsigned distances[] = {1, 1 << 19, 1 << 20};
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        char block[40];
        snprintf(block, sizeof block, "block (%u,0,0)", distances[i]);
        run_every(zeros(4), distances[i], distances[i] + 1);
        expect_race(block);
    }
}

Test(stamps, blocks_that_have_no_number) {
    simt_run_part(0, 0);
    run_grid((unsigned[3]){2147483647, 1, 1});
    run_grid((unsigned[3]){32768, 256, 256});
    expect_right("blocks", 2147483647);
    cr_assert_eq(cudaGetLastError(), cudaSuccess);
    run_grid((unsigned[3]){32769, 256, 256});
    cr_assert_eq(cudaGetLastError(), cudaErrorNotSupported);
    cr_assert_not_null(strstr(simt_last_report(), "2147549184 blocks in all"), "%s", simt_last_report());
}

static char *counts_of_grid_barriers(void) {
    int *data = zeros(8 * 20 * sizeof *data);
    simt_meter_start(1);
    cr_assert_eq(run_grid_barriers(data, 20), cudaSuccess);
    expect_right("barriers of the grid", 20);
    simt_meter_stop();
    return simt_meter_json();
}

/* The orders run out between two barriers of a grid; the counts of the launch are those of all its parts. */
Test(stamps, grid_barriers_where_the_orders_run_out) {
    char *before = counts_of_grid_barriers();
    char *words = strstr(before, "bytes_written");
    cr_assert_not_null(words, "%s", before);
    for (int i = 0; i < 3; i++) {
        skip_launches(1048575 - 21 - 1 - 5 * i);
        char *after = counts_of_grid_barriers(), *words_after = strstr(after, "bytes_written");
        cr_assert_eq(strncmp(words, words_after, 60), 0, "%.60s\n%.60s", words, words_after);
        free(after);
    }
    free(before);
}
