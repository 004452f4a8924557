/* The simulated device remembers who accessed a word and when (common/simt/memory/stamp.h). Accesses that lie a million launches
 * or barriers apart are ordered all the same, and two that race are found however far apart their blocks are. */
#include "captured.h"

#include <cooperative_groups.h>
#include <criterion/criterion.h>
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 32 };

TestSuite(stamps, .init = capture_stderr, .timeout = 120);

static int *zeros(size_t bytes) {
    void *memory = NULL;
    cr_assert_eq(cudaMalloc(&memory, bytes), cudaSuccess);
    cr_assert_eq(cudaMemset(memory, 0, bytes), cudaSuccess);
    return (int *)memory;
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

__global__ void nothing() {}

/* Launches of one block, of which none is of part 0 of 2: they count, and take no time. */
static void skip_launches(int count) {
    simt_run_part(2, 0);
    for (int i = 0; i < count; i++) nothing<<<1, 1>>>();
    simt_run_part(1, 0);
}

/* Thread i stores one word of `stored`, and reads the word of `loaded` that thread blockDim.x - 1 - i stored. */
__global__ void touch(int *stored, int *loaded, int *out) {
    stored[threadIdx.x] = (int)threadIdx.x;
    out[threadIdx.x] = loaded[blockDim.x - 1 - threadIdx.x];
}
__global__ void store(int *data) { data[threadIdx.x] = (int)threadIdx.x; }
__global__ void load(int *data, int *out) { out[threadIdx.x] = data[blockDim.x - 1 - threadIdx.x]; }
/* The first block of so many writes one word. */
__global__ void every(int *out, unsigned distance) {
    if (blockIdx.x % distance == 0) *out = (int)blockIdx.x;
}

/* A million launches take a second or two, so each is used by all: pair i of arrays is touched twice, with `least` + i launches
 * between. The first array of a pair is stored and then loaded, the second loaded and then stored. What nobody has written stays
 * known as such. */
Test(stamps, a_million_launches_apart) {
    enum { PAIRS = 4 };
    static const int least[] = {0, 14, 65533, 1048573}; /* of 0 one pair: the other pairs' first launches lie between */
    int *out = zeros(THREADS * sizeof *out), *fresh = NULL, *data[PAIRS][2];
    cr_assert_eq(cudaMalloc(&fresh, THREADS * sizeof *fresh), cudaSuccess);
    for (int i = 0; i < PAIRS; i++)
        for (int k = 0; k < 2; k++) data[i][k] = zeros(THREADS * sizeof(int));
    store<<<1, THREADS - 1>>>(fresh);
    for (size_t l = 0; l < sizeof least / sizeof *least; l++) {
        int pairs = l == 0 ? 1 : PAIRS;
        for (int i = 0; i < pairs; i++) touch<<<1, THREADS>>>(data[i][0], data[i][1], out);
        skip_launches(least[l] - (pairs - 1));
        for (int i = 0; i < pairs; i++) {
            touch<<<1, THREADS>>>(data[i][1], data[i][0], out);
            expect_right("launches between", least[l] + i);
            skip_launches(1);
        }
    }
    load<<<1, THREADS - 1>>>(fresh, out);
    expect_right("a part that is written", 1100000);
    load<<<1, THREADS>>>(fresh, out);
    cr_assert_eq(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    cr_assert_not_null(strstr(simt_last_report(), "read of fresh[31] (cudaMalloc, "), "%s", simt_last_report());
    cr_assert_not_null(strstr(simt_last_report(), "counted in 4-byte elements, which nobody has written"), "%s", simt_last_report());
    cr_assert_eq(cudaDeviceReset(), cudaSuccess);
    expect_reports();
    every<<<2, 1>>>(zeros(4), 1);
    expect_race("blocks run in any order");
}

/* Thread 0 stores, thread 63 loads; so many barriers lie between, then one or none before the next store. */
__global__ void far_apart(int *out, int barriers, bool ordered) {
    __shared__ int word;
    if (threadIdx.x == 0) word = 5;
    for (int i = 0; i < barriers; i++) __syncthreads();
    if (threadIdx.x == 63) *out = word;
    if (ordered) __syncthreads();
    if (threadIdx.x == 0) word = 6;
}
__global__ void far_apart_global(int *out, int barriers) {
    if (threadIdx.x == 0) out[1] = 5;
    for (int i = 0; i < barriers; i++) __syncthreads();
    if (threadIdx.x == 63) out[0] = out[1];
}

Test(stamps, barriers_far_apart) {
    static const int distances[] = {1, 7, 8, 15, 16, 17, 65535, 65536, 65537};
    int *out = zeros(2 * sizeof *out);
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        far_apart<<<1, 64>>>(out, distances[i], true);
        far_apart_global<<<1, 64>>>(out, distances[i]);
        expect_right("barriers between", distances[i]);
    }
    far_apart<<<1, 64>>>(out, 65536, false);
    expect_race("a __syncthreads() is missing between the two");
}

/* Every second block the other way round; a word is that of every 15th block. */
__global__ void alternating(int *out) {
    __shared__ int words[15];
    int &word = words[blockIdx.x % 15];
    unsigned writer = blockIdx.x % 2 * 40, reader = 40 - writer;
    if (threadIdx.x == writer) word = (int)blockIdx.x;
    __syncthreads();
    if (threadIdx.x == reader) out[blockIdx.x] = word;
}

/* One worker runs them all, in the same shared memory. */
Test(stamps, shared_memory_of_many_blocks) {
    setenv("SIMT_THREADS", "1", 1);
    alternating<<<100, 64>>>(zeros(100 * sizeof(int)));
    expect_right("blocks", 100);
}

Test(stamps, blocks_far_apart) {
    static const unsigned distances[] = {1, 1 << 19, 1 << 20};
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        char block[40];
        snprintf(block, sizeof block, "block (%u,0,0)", distances[i]);
        every<<<distances[i] + 1, 1>>>(zeros(4), distances[i]);
        expect_race(block);
    }
}

Test(stamps, blocks_that_have_no_number) {
    simt_run_part(0, 0);
    nothing<<<dim3(2147483647, 1, 1), 1>>>();
    nothing<<<dim3(32768, 256, 256), 1>>>();
    expect_right("blocks", 2147483647);
    cr_assert_eq(cudaGetLastError(), cudaSuccess);
    nothing<<<dim3(32769, 256, 256), 1>>>();
    cr_assert_eq(cudaGetLastError(), cudaErrorNotSupported);
    cr_assert_not_null(strstr(simt_last_report(), "2147549184 blocks in all"), "%s", simt_last_report());
}

__global__ void pass_on(int *data, int rounds) {
    for (int i = 0; i < rounds; i++) {
        data[8 * i + threadIdx.x + 4 * blockIdx.x] = i;
        cooperative_groups::this_grid().sync();
        if (data[8 * i + 7 - threadIdx.x - 4 * blockIdx.x] != i) __trap();
    }
}

static char *counts_of_grid_barriers(void) {
    int rounds = 20, *data = zeros(8 * rounds * sizeof *data);
    void *arguments[] = {&data, &rounds};
    simt_meter_start(1);
    cr_assert_eq(cudaLaunchCooperativeKernel(pass_on, dim3(2), dim3(4), arguments, 0, 0), cudaSuccess);
    expect_right("barriers of the grid", rounds);
    simt_meter_stop();
    return simt_meter_json();
}

/* The orders run out between two barriers of a grid; the counts of the launch are those of all its parts. */
Test(stamps, grid_barriers_where_the_orders_run_out) {
    char *before = counts_of_grid_barriers();
    char *words = strstr(before, "bytes_written");
    cr_assert_not_null(words, "%s", before);
    for (int i = 0; i < (getenv("TEST_FEWER") != nullptr ? 1 : 3); i++) {
        skip_launches(1048575 - 21 - 1 - 5 * i);
        char *after = counts_of_grid_barriers(), *words_after = strstr(after, "bytes_written");
        cr_assert_eq(strncmp(words, words_after, 60), 0, "%.60s\n%.60s", words, words_after);
        free(after);
    }
    free(before);
}
