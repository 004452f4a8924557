/* The device itself. simt_features: each thing that kernels and host code rely on, with exact expectations, which hold
 * for the simulated device and for a card alike. simt_errors: what the simulated device must refuse, with the CUDA
 * error code and a report that names the line; on a card these are skipped, since it need not notice.
 */
#include "captured.h"
#include "processor.h"
#include "simt_kernels.h"
#include "simulated.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

static void need_device(void) {
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) cr_skip_test("needs a CUDA device or the simulated one");
    capture_stderr();
}

static bool simulated(void) {
    struct cudaDeviceProp properties;
    cr_assert_eq(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    return strcmp(properties.name, "sim") == 0;
}

static void need_simulated_device(void) {
    need_device();
    if (!simulated()) cr_skip_test("needs the simulated device");
    setenv("SIMT_WATCHDOG_SECONDS", "0.3", 1);
}

TestSuite(simt_features, .init = need_device, .timeout = 60);
TestSuite(simt_errors, .init = need_simulated_device, .timeout = 60); /* the watchdog counts processor time */

#define EXPECT_ERROR(call, error) expect_error((call), (error), #call, __LINE__)
#define EXPECT_OK(call) expect_error((call), cudaSuccess, #call, __LINE__)

static void expect_error(cudaError_t got, cudaError_t expected, const char *call, int line) {
    cr_assert_eq(got, expected, "line %d: %s gives %s instead of %s\n%s", line, call, cudaGetErrorName(got),
                 cudaGetErrorName(expected), simt_last_report != NULL ? simt_last_report() : "");
    if (expected != cudaSuccess) expect_reports();
}

static void *on_device(const void *values, size_t bytes) {
    void *memory = NULL;
    EXPECT_OK(cudaMalloc(&memory, bytes));
    EXPECT_OK(cudaMemcpy(memory, values, bytes, cudaMemcpyHostToDevice));
    return memory;
}

/* Every byte is `byte`: 0, or 0xff for "not written yet". */
static void *filled_on_device(int byte, size_t bytes) {
    void *memory = NULL;
    EXPECT_OK(cudaMalloc(&memory, bytes));
    EXPECT_OK(cudaMemset(memory, byte, bytes));
    return memory;
}

/* Waits for the launches before it, frees the device's copy; the host's is the caller's to free. */
static void *take_back(void *memory, size_t bytes) {
    void *values = malloc(bytes);
    cr_assert_not_null(values);
    EXPECT_OK(cudaGetLastError());
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_OK(cudaMemcpy(values, memory, bytes, cudaMemcpyDeviceToHost));
    EXPECT_OK(cudaFree(memory));
    return values;
}

/* Reads `memory` back and compares; says which element differs. */
static void expect_ints(void *memory, const int *expected, int count, const char *what) {
    int *got = take_back(memory, (size_t)count * sizeof *got);
    for (int i = 0; i < count; i++)
        cr_assert_eq(got[i], expected[i], "%s: element %d is %d instead of %d", what, i, got[i], expected[i]);
    free(got);
}

static const int BLOCK_SIZES[] = {1, 31, 32, 33, 64, 100, 256, 1024};
enum { BLOCK_SIZE_COUNT = sizeof BLOCK_SIZES / sizeof *BLOCK_SIZES };

/* Small numbers without a pattern that a wrong index would repeat. */
static int scrambled(int i) { return (int)((unsigned)i * 2654435761u >> 22) - 512; }

/* ---- indices ----------------------------------------------------------------------------------------------------- */

static bool same_extent(struct extent a, struct extent b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

static void check_indices(struct extent grid, struct extent block) {
    size_t threads = (size_t)block.x * block.y * block.z, count = (size_t)grid.x * grid.y * grid.z * threads;
    struct seen *out = filled_on_device(0, count * sizeof *out);
    run_indices(grid, block, out);
    struct seen *got = take_back(out, count * sizeof *got);
    for (size_t i = 0; i < count; i++) {
        unsigned thread = (unsigned)(i % threads), number = (unsigned)(i / threads);
        struct extent own = {thread % block.x, thread / block.x % block.y, thread / block.x / block.y};
        struct extent of = {number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y};
        cr_assert_eq(got[i].times, 1, "element %zu was written %u times", i, got[i].times);
        cr_assert(same_extent(got[i].thread, own) && same_extent(got[i].block, of), "element %zu", i);
        cr_assert(same_extent(got[i].block_size, block) && same_extent(got[i].grid_size, grid), "element %zu", i);
    }
    free(got);
}

Test(simt_features, indices_of_1d_blocks) {
    for (int i = 0; i < BLOCK_SIZE_COUNT; i++)
        check_indices((struct extent){7, 1, 1}, (struct extent){(unsigned)BLOCK_SIZES[i], 1, 1});
}

Test(simt_features, indices_of_2d_blocks) {
    check_indices((struct extent){5, 3, 1}, (struct extent){16, 16, 1});
    check_indices((struct extent){1, 4, 1}, (struct extent){1, 33, 1});
    check_indices((struct extent){3, 1, 1}, (struct extent){3, 5, 1});
}

Test(simt_features, indices_of_3d_blocks_and_grids) {
    check_indices((struct extent){2, 3, 4}, (struct extent){5, 4, 3});
    check_indices((struct extent){1, 1, 9}, (struct extent){2, 2, 64});
    check_indices((struct extent){4, 3, 2}, (struct extent){1, 1, 31});
}

Test(simt_features, many_small_blocks) { check_indices((struct extent){20011, 2, 1}, (struct extent){1, 1, 1}); }

/* ---- block-wide barriers ----------------------------------------------------------------------------------------- */

Test(simt_features, syncthreads_reverses_a_block) {
    for (int size = 0; size < BLOCK_SIZE_COUNT; size++) {
        int n = BLOCK_SIZES[size], in[1024], expected[1024];
        for (int i = 0; i < n; i++) in[i] = expected[n - 1 - i] = scrambled(i);
        int *data = on_device(in, (size_t)n * sizeof *in);
        run_reverse(data, n);
        expect_ints(data, expected, n, "reversed");
    }
}

Test(simt_features, syncthreads_tree_reduction) {
    for (int size = 0; size < BLOCK_SIZE_COUNT; size++) {
        int n = BLOCK_SIZES[size], in[1024], sum = 0;
        for (int i = 0; i < n; i++) sum += in[i] = scrambled(i + size);
        int *data = on_device(in, (size_t)n * sizeof *in), *out = filled_on_device(0xff, sizeof *out);
        run_block_sum(data, out, n);
        expect_ints(out, &sum, 1, "sum");
        EXPECT_OK(cudaFree(data));
    }
}

Test(simt_features, syncthreads_in_a_loop) {
    for (int size = 0; size < BLOCK_SIZE_COUNT; size++) {
        int n = BLOCK_SIZES[size], rounds = 37, in[1024], expected[1024];
        for (int i = 0; i < n; i++) in[i] = scrambled(i);
        for (int i = 0; i < n; i++) expected[i] = in[(i + rounds) % n];
        int *data = on_device(in, (size_t)n * sizeof *in);
        run_rotate(data, n, rounds);
        expect_ints(data, expected, n, "rotated");
    }
}

Test(simt_features, syncthreads_count_or_and) {
    for (int size = 0; size < BLOCK_SIZE_COUNT; size++) {
        for (int pattern = 0; pattern < 4; pattern++) { /* none, the last thread, some with odd values, all */
            int n = BLOCK_SIZES[size], in[1024], expected[3 * 1024], count = 0;
            for (int i = 0; i < n; i++) {
                in[i] = pattern == 0 ? 0 : pattern == 1 ? i == n - 1 : pattern == 2 ? -4 * (i % 3 == 0) : 256;
                count += in[i] != 0;
            }
            for (int i = 0; i < n; i++)
                expected[3 * i] = count, expected[3 * i + 1] = count > 0, expected[3 * i + 2] = count == n;
            int *data = on_device(in, (size_t)n * sizeof *in);
            int *out = filled_on_device(0xff, 3 * (size_t)n * sizeof *out);
            run_block_votes(data, out, n);
            expect_ints(out, expected, 3 * n, "count, or, and");
            EXPECT_OK(cudaFree(data));
        }
    }
}

/* ---- warps ------------------------------------------------------------------------------------------------------- */

Test(simt_features, syncwarp_exchanges_through_shared_memory) {
    enum { N = 128 };
    int in[N], expected[N], rounds = 5;
    for (int i = 0; i < N; i++) in[i] = scrambled(i);
    for (int i = 0; i < N; i++) expected[i] = in[i / 32 * 32 + (i + rounds) % 32];
    int *data = on_device(in, sizeof in);
    run_syncwarp(data, N, rounds);
    expect_ints(data, expected, N, "next lanes");
}

/* The lane that `lane` reads, as the CUDA programming guide defines it. */
static int source_lane(enum shuffle kind, int lane, int amount, int width) {
    int first = lane / width * width, last = first + width - 1;
    switch (kind) {
    case SHUFFLE_INDEX: return first + (5 * lane + amount) % width;
    case SHUFFLE_UP: return lane - amount < first ? lane : lane - amount;
    case SHUFFLE_DOWN: return lane + amount > last ? lane : lane + amount;
    case SHUFFLE_XOR: return (lane ^ amount) > last ? lane : lane ^ amount;
    }
    return lane;
}

/* A value of the type in which every byte that the type can use matters. */
static void put_value(void *values, enum value_type type, int i) {
    switch (type) {
    case TYPE_INT: ((int *)values)[i] = -123456789 + 1000003 * i; break;
    case TYPE_UNSIGNED: ((unsigned *)values)[i] = 4000000000u + 1000003u * (unsigned)i; break;
    case TYPE_FLOAT: ((float *)values)[i] = -1.0f / (float)(i + 3); break;
    case TYPE_DOUBLE: ((double *)values)[i] = -1.0 / (i + 3); break;
    case TYPE_LONG_LONG: ((long long *)values)[i] = -1234567890123456789 + 10000000033 * i; break;
    }
}

static void check_shuffle(enum shuffle kind, enum value_type type, int threads, int width) {
    static const size_t sizes[] = {sizeof(int), sizeof(unsigned), sizeof(float), sizeof(double), sizeof(long long)};
    size_t size = sizes[type];
    int amounts = width < 32 && kind == SHUFFLE_XOR ? width : 32;
    uint64_t values[128];
    for (int i = 0; i < threads; i++) put_value(values, type, i);
    void *in = on_device(values, (size_t)threads * size);
    void *out = filled_on_device(0xff, (size_t)(amounts * threads) * size);
    run_shuffle(kind, type, in, out, threads, width, amounts);
    unsigned char *got = take_back(out, (size_t)(amounts * threads) * size);
    for (int amount = 0; amount < amounts; amount++) {
        for (int i = 0; i < threads; i++) {
            int source = i / 32 * 32 + source_lane(kind, i % 32, amount, width);
            cr_assert_eq(memcmp(got + (size_t)(amount * threads + i) * size,
                                (unsigned char *)values + (size_t)source * size, size),
                         0, "shuffle %d of type %d, width %d, amount %d: thread %d did not get the value of %d", kind,
                         type, width, amount, i, source);
        }
    }
    free(got);
    EXPECT_OK(cudaFree(in));
}

static void check_shuffles_of_full_warps(enum shuffle kind) {
    for (enum value_type type = TYPE_INT; type <= TYPE_LONG_LONG; type++)
        for (int width = 2; width <= 32; width *= 2) check_shuffle(kind, type, 64, width);
}

Test(simt_features, shfl_sync) { check_shuffles_of_full_warps(SHUFFLE_INDEX); }
Test(simt_features, shfl_up_sync) { check_shuffles_of_full_warps(SHUFFLE_UP); }
Test(simt_features, shfl_down_sync) { check_shuffles_of_full_warps(SHUFFLE_DOWN); }
Test(simt_features, shfl_xor_sync) { check_shuffles_of_full_warps(SHUFFLE_XOR); }

Test(simt_features, shfl_xor_sync_reads_earlier_groups) {
    /* With a width below 32, a lane of a later group reads across its group's start, one of an earlier cannot. */
    enum { N = 32, WIDTH = 8, AMOUNTS = 32 };
    int in[N], expected[AMOUNTS * N];
    for (int i = 0; i < N; i++) in[i] = scrambled(i);
    for (int i = 0; i < AMOUNTS * N; i++) expected[i] = in[source_lane(SHUFFLE_XOR, i % N, i / N, WIDTH)];
    int *data = on_device(in, sizeof in), *out = filled_on_device(0xff, sizeof expected);
    run_shuffle(SHUFFLE_XOR, TYPE_INT, data, out, N, WIDTH, AMOUNTS);
    expect_ints(out, expected, AMOUNTS * N, "xor across groups");
}

Test(simt_features, shuffles_in_a_partial_last_warp) {
    for (enum shuffle kind = SHUFFLE_INDEX; kind <= SHUFFLE_XOR; kind++) {
        for (int width = 2; width <= 16; width *= 2) check_shuffle(kind, TYPE_INT, 48, width);
        for (int width = 2; width <= 8; width *= 2) check_shuffle(kind, TYPE_FLOAT, 8, width);
        check_shuffle(kind, TYPE_DOUBLE, 98, 2);
    }
}

Test(simt_features, broadcast_in_blocks_of_any_size) {
    for (int n = 1; n <= 100; n++) {
        int in[100], expected[100];
        for (int i = 0; i < n; i++) in[i] = scrambled(i);
        for (int i = 0; i < n; i++) expected[i] = in[i / 32 * 32];
        int *data = on_device(in, (size_t)n * sizeof *in), *out = filled_on_device(0xff, (size_t)n * sizeof *out);
        run_broadcast(data, out, n);
        expect_ints(out, expected, n, "broadcast");
        EXPECT_OK(cudaFree(data));
    }
}

Test(simt_features, half_warps_shuffle_in_branches_of_their_own) {
    enum { N = 96 };
    int in[N], expected[N];
    for (int i = 0; i < N; i++) in[i] = scrambled(i);
    for (int i = 0; i < N; i++) {
        expected[i] = 0;
        for (int j = 0; j < 16; j++) expected[i] += in[i / 16 * 16 + j];
        if (i % 32 >= 16) expected[i] = -expected[i];
    }
    int *data = on_device(in, sizeof in), *out = filled_on_device(0xff, sizeof in);
    run_half_warps(data, out, N);
    expect_ints(out, expected, N, "sums of 16");
}

static void check_votes(const int *in, int n) {
    int expected[3 * 128];
    for (int i = 0; i < n; i++) {
        unsigned ballot = 0, mask = 0;
        for (int j = i / 32 * 32; j < n && j < i / 32 * 32 + 32; j++) {
            mask |= 1u << j % 32;
            if (in[j] != 0) ballot |= 1u << j % 32;
        }
        expected[3 * i] = ballot != 0;
        expected[3 * i + 1] = ballot == mask;
        expected[3 * i + 2] = (int)ballot;
    }
    int *data = on_device(in, (size_t)n * sizeof *in), *out = filled_on_device(0xff, 3 * (size_t)n * sizeof *out);
    run_votes(data, (unsigned *)out, n);
    expect_ints(out, expected, 3 * n, "any, all, ballot");
    EXPECT_OK(cudaFree(data));
}

Test(simt_features, votes) {
    int in[128];
    for (int pattern = 0; pattern < 5; pattern++) { /* none, one, alternating warps, irregular, all */
        for (int i = 0; i < 128; i++) {
            in[i] = pattern == 0   ? 0
                    : pattern == 1 ? i == 70
                    : pattern == 2 ? i / 32 % 2
                    : pattern == 3 ? scrambled(i) > 0
                                   : -8;
        }
        check_votes(in, 128);
        check_votes(in, 71);
        check_votes(in, 1);
    }
}

Test(simt_features, votes_of_some_lanes) {
    enum { N = 32 };
    int in[N], expected[3 * N];
    for (int i = 0; i < N; i++) in[i] = i % 4 != 2; /* odd lanes: all; even lanes do not count */
    memset(expected, 0xff, sizeof expected);
    for (int i = 1; i < N; i += 2) expected[3 * i] = expected[3 * i + 1] = 1, expected[3 * i + 2] = (int)0xaaaaaaaau;
    int *data = on_device(in, sizeof in), *out = filled_on_device(0xff, sizeof expected);
    run_votes_of_odd_lanes(data, (unsigned *)out);
    expect_ints(out, expected, 3 * N, "any, all, ballot");
}

static void check_matches(const int *in, int n) {
    static int expected[MATCHES * 128];
    for (int i = 0; i < n; i++) {
        int first = i / 32 * 32, end = first + 32 < n ? first + 32 : n;
        int *own = &expected[MATCHES * i];
        unsigned lanes = 0, same = 0, sum = 0, and = ~0u, or = 0, xor = 0, lowest = ~0u, highest = 0;
        int min = INT32_MAX, max = INT32_MIN;
        for (int j = first; j < end; j++) {
            unsigned value = (unsigned)in[j];
            lanes |= 1u << (j - first);
            same |= (unsigned)(in[j] == in[i]) << (j - first);
            sum += value, and &= value, or |= value, xor ^= value;
            min = in[j] < min ? in[j] : min, max = in[j] > max ? in[j] : max;
            lowest = value < lowest ? value : lowest, highest = value > highest ? value : highest;
        }
        own[MATCH_ANY] = (int)same;
        own[MATCH_ALL] = same == lanes ? (int)lanes : 0;
        own[MATCH_ALL_PREDICATE] = same == lanes;
        own[MATCH_ALL_OF_ONES] = (int)lanes;
        own[MATCH_ALL_OF_ONES_PREDICATE] = 1;
        own[REDUCE_ADD] = own[REDUCE_ADD_UNSIGNED] = (int)sum;
        own[REDUCE_MIN] = min, own[REDUCE_MAX] = max;
        own[REDUCE_MIN_UNSIGNED] = (int)lowest, own[REDUCE_MAX_UNSIGNED] = (int)highest;
        own[REDUCE_AND] = (int)and, own[REDUCE_OR] = (int)or, own[REDUCE_XOR] = (int)xor;
    }
    int *data = on_device(in, (size_t)n * sizeof *in);
    int *out = filled_on_device(0xff, MATCHES * (size_t)n * sizeof *out);
    run_matches(data, out, n);
    expect_ints(out, expected, MATCHES * n, "match and reduce");
    EXPECT_OK(cudaFree(data));
}

Test(simt_features, matches_and_reductions) {
    int in[128];
    for (int pattern = 0; pattern < 3; pattern++) { /* few values, of both signs; all different; all alike */
        for (int i = 0; i < 128; i++) in[i] = pattern == 0 ? i % 3 - 1 : pattern == 1 ? scrambled(i) : -7;
        check_matches(in, 128);
        check_matches(in, 71);
        check_matches(in, 1);
    }
}

/* ---- atomics ----------------------------------------------------------------------------------------------------- */

/* What CELLS cells hold after n threads with the numbers 0 to n - 1, each starting from `start`. */
static void expect_cells(const uint64_t *got, uint64_t width_mask, int64_t start, int n, const char *what) {
    uint64_t numbers = 0, all_xor = (uint64_t)start, bits = 0;
    for (int i = 0; i < n; i++) numbers += (uint64_t)i, all_xor ^= (uint64_t)i, bits |= 1ull << i % 31;
    uint64_t before = (uint64_t)start;
    cr_assert_eq(got[CELL_ADD], (uint64_t)n, "%s: add", what);
    if (width_mask == 0xffffffffu) {
        cr_assert_eq(got[CELL_SUB], (before - 2 * (uint64_t)n) & width_mask, "%s: sub", what);
    }
    cr_assert_eq(got[CELL_MIN], 0, "%s: min", what);
    cr_assert_eq(got[CELL_MAX], (uint64_t)n - 1, "%s: max", what);
    cr_assert_eq(got[CELL_AND], before & ~bits & width_mask, "%s: and", what);
    cr_assert_eq(got[CELL_OR], (before | bits) & width_mask, "%s: or", what);
    cr_assert_eq(got[CELL_XOR], all_xor & width_mask, "%s: xor", what);
    cr_assert_lt(got[CELL_EXCHANGE], (uint64_t)n, "%s: exchange", what);
    /* Each number was put in once, and has come out or is still there. */
    cr_assert_eq((got[CELL_REPLACED] + got[CELL_EXCHANGE]) & width_mask, (before + numbers) & width_mask,
                 "%s: what exchange returned", what);
    cr_assert_eq(got[CELL_CAS], 3 * (uint64_t)n, "%s: compare and swap", what);
}

enum { START = 0x5a5a5a };

static uint64_t start_of(int cell, uint64_t most) {
    switch (cell) {
    case CELL_ADD:
    case CELL_CAS:
    case CELL_MAX:
    case CELL_REPLACED: return 0;
    case CELL_MIN: return most;
    default: return START;
    }
}

static void check_tickets(int *tickets, int count, int times) {
    int *expected = malloc((size_t)count * sizeof *expected);
    for (int i = 0; i < count; i++) expected[i] = times;
    expect_ints(tickets, expected, count, "what atomicAdd returned");
    free(expected);
}

static void check_atomics(enum value_type type, bool on_shared) {
    enum { BLOCKS = 9, THREADS = 100 };
    size_t size = type == TYPE_LONG_LONG ? 8 : 4;
    uint64_t mask = type == TYPE_LONG_LONG ? UINT64_MAX : UINT32_MAX, wide[BLOCKS][CELLS];
    uint64_t most = type == TYPE_INT ? INT32_MAX : mask; /* the type's largest value */
    unsigned char cells[BLOCKS * CELLS * 8];
    for (int i = 0; i < BLOCKS * CELLS; i++) {
        uint64_t start = start_of(i % CELLS, most);
        memcpy(cells + (size_t)i * size, &start, size); /* the lower bytes come first on every machine with CUDA */
    }
    void *memory = on_device(cells, BLOCKS * CELLS * size);
    int *tickets = filled_on_device(0, BLOCKS * THREADS * sizeof *tickets);
    switch (type) {
    case TYPE_INT: run_atomics_int(memory, tickets, BLOCKS, THREADS, on_shared); break;
    case TYPE_UNSIGNED: run_atomics_unsigned(memory, tickets, BLOCKS, THREADS, on_shared); break;
    default: run_atomics_long(memory, tickets, BLOCKS, THREADS, on_shared); break;
    }
    unsigned char *got = take_back(memory, BLOCKS * CELLS * size);
    memset(wide, 0, sizeof wide);
    for (int i = 0; i < BLOCKS * CELLS; i++) memcpy(&wide[i / CELLS][i % CELLS], got + (size_t)i * size, size);
    free(got);
    for (int block = 0; block < (on_shared ? BLOCKS : 1); block++)
        expect_cells(wide[block], mask, START, on_shared ? THREADS : BLOCKS * THREADS,
                     on_shared ? "shared memory" : "global memory");
    check_tickets(tickets, on_shared ? THREADS : BLOCKS * THREADS, on_shared ? BLOCKS : 1);
}

Test(simt_features, atomics_on_int) {
    check_atomics(TYPE_INT, false);
    check_atomics(TYPE_INT, true);
}
Test(simt_features, atomics_on_unsigned) {
    check_atomics(TYPE_UNSIGNED, false);
    check_atomics(TYPE_UNSIGNED, true);
}
Test(simt_features, atomics_on_unsigned_long_long) {
    check_atomics(TYPE_LONG_LONG, false);
    check_atomics(TYPE_LONG_LONG, true);
}

Test(simt_features, atomics_on_negative_ints) {
    int cells[CELLS] = {[CELL_MIN] = 5, [CELL_MAX] = -5, [CELL_SUB] = -7, [CELL_AND] = -1};
    int *memory = on_device(cells, sizeof cells), *ticket = filled_on_device(0, sizeof *ticket);
    run_atomics_int(memory, ticket, 1, 1, false); /* the one thread has the number 0 */
    int expected[CELLS] = {[CELL_ADD] = 1, [CELL_SUB] = -9, [CELL_AND] = -2, [CELL_OR] = 1, [CELL_CAS] = 3};
    expect_ints(memory, expected, CELLS, "cells");
}

Test(simt_features, atomics_on_float) {
    enum { BLOCKS = 20, THREADS = 64, N = BLOCKS * THREADS };
    for (int on_shared = 0; on_shared < 2; on_shared++) {
        float *memory = filled_on_device(0, 3 * sizeof *memory);
        run_atomics_float(memory, BLOCKS, THREADS, on_shared);
        float *got = take_back(memory, 3 * sizeof *got);
        cr_assert_eq(got[0], N * (N - 1) / 8.0f, "%g", got[0]); /* every partial sum is exact in float */
        cr_assert_eq(got[1] + got[2], N * (N - 1) / 2.0f, "%g + %g", got[1], got[2]);
        free(got);
    }
}

Test(simt_features, atomics_on_double) {
    enum { BLOCKS = 50, THREADS = 96, N = BLOCKS * THREADS };
    for (int on_shared = 0; on_shared < 2; on_shared++) {
        double *memory = filled_on_device(0, 3 * sizeof *memory);
        run_atomics_double(memory, BLOCKS, THREADS, on_shared);
        double *got = take_back(memory, 3 * sizeof *got);
        cr_assert_eq(got[0], (double)N * (N - 1) / 8, "%g", got[0]);
        free(got);
    }
}

Test(simt_features, contention_over_many_blocks) {
    int *count = filled_on_device(0, sizeof *count), expected = 1500 * 256;
    run_count(count, 1500, 256);
    expect_ints(count, &expected, 1, "threads");
}

Test(simt_features, last_block_sees_all_others) {
    enum { N = 10000, BLOCKS = 30 };
    int in[N], sum = 0;
    for (int i = 0; i < N; i++) sum += in[i] = scrambled(i);
    int *data = on_device(in, sizeof in), *partial = filled_on_device(0xff, BLOCKS * sizeof *partial);
    int *out = filled_on_device(0xff, sizeof *out);
    run_last_block(data, N, partial, filled_on_device(0, sizeof(unsigned)), out, BLOCKS);
    expect_ints(out, &sum, 1, "sum");
}

Test(simt_features, spin_lock) {
    int *lock = filled_on_device(0, sizeof *lock), *count = filled_on_device(0, sizeof *count), expected = 16 * 32;
    run_spin_lock(lock, count, 16, 32);
    expect_ints(count, &expected, 1, "threads that held the lock");
}

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

Test(simt_features, shared_2d_array) {
    enum { N = 32 };
    float in[N * N];
    for (int i = 0; i < N * N; i++) in[i] = (float)scrambled(i);
    float *out = filled_on_device(0xff, sizeof in);
    run_transpose(on_device(in, sizeof in), out);
    float *got = take_back(out, sizeof in);
    for (int i = 0; i < N * N; i++) cr_assert_eq(got[i], in[i % N * N + i / N], "element %d is %g", i, got[i]);
    free(got);
}

Test(simt_features, shared_arrays_and_scalars_in_one_declaration) {
    enum { N = 32 };
    int in[N], expected[N], sum = 0;
    for (int i = 0; i < N; i++) sum += in[i] = scrambled(i);
    for (int i = 0; i < N; i++) expected[i] = in[N - 1 - i] + 10 * in[i ^ 1] + sum;
    int *out = filled_on_device(0xff, sizeof in);
    run_many_arrays(on_device(in, sizeof in), out);
    expect_ints(out, expected, N, "sum");
}

Test(simt_features, shared_arrays_of_dependent_size) {
    int expected[4 * 64];
    for (int i = 0; i < 4 * 64; i++) {
        int n = 8 << i / 64;
        expected[i] = (n - 1) * n * (2 * n - 1) / 6;
    }
    int *out = filled_on_device(0xff, sizeof expected);
    run_dependent_sizes(out);
    expect_ints(out, expected, 4 * 64, "sum of squares");
}

Test(simt_features, shared_arrays_aligned_for_vectors) {
    float *out = filled_on_device(0xff, 64 * sizeof *out);
    int *misplaced = filled_on_device(0xff, sizeof *misplaced), aligned = 0;
    run_aligned_arrays(out, (unsigned *)misplaced);
    expect_ints(misplaced, &aligned, 1, "addresses modulo 16");
    float *got = take_back(out, 64 * sizeof *got);
    for (int i = 0; i < 64; i++) cr_assert_eq(got[i], (float)(i + i % 3), "element %d is %g", i, got[i]);
    free(got);
}

Test(simt_features, shared_declaration_reached_twice_is_one_array) {
    int expected[64], *out = filled_on_device(0xff, sizeof expected);
    for (int i = 0; i < 64; i++) expected[i] = 63 - i;
    run_repeated_site(out);
    expect_ints(out, expected, 64, "reversed");
}

enum { SHARED_48_KB = 48 << 10, SHARED_227_KB = 227 << 10 };

static void check_dynamic_shared(size_t bytes) {
    int n = (int)(bytes / sizeof(int)), *out = filled_on_device(0xff, bytes), *expected = malloc(bytes);
    for (int i = 0; i < n; i++) expected[i] = 7 * (n - 1 - i);
    run_dynamic_shared(out, bytes);
    expect_ints(out, expected, n, "dynamic shared memory");
    free(expected);
}

Test(simt_features, dynamic_shared_up_to_48_kb) {
    check_dynamic_shared(4);
    check_dynamic_shared(1000);
    check_dynamic_shared(SHARED_48_KB);
}

Test(simt_features, dynamic_shared_beyond_48_kb_is_refused_without_the_attribute) {
    int *out = filled_on_device(0, SHARED_227_KB);
    run_dynamic_shared(out, SHARED_48_KB + 4);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    run_dynamic_shared(out, SHARED_227_KB);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_OK(cudaDeviceSynchronize());
    check_dynamic_shared(SHARED_48_KB);
}

static void need_227_kb(void) {
    int most = 0;
    EXPECT_OK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    if (most < SHARED_227_KB) cr_skip_test("needs 227 KB of shared memory; this card has less");
}

Test(simt_features, dynamic_shared_of_227_kb_with_the_attribute) {
    need_227_kb();
    EXPECT_OK(allow_dynamic_shared(SHARED_227_KB));
    check_dynamic_shared(SHARED_227_KB);
    check_dynamic_shared(SHARED_48_KB + 4);
    check_dynamic_shared(1000);
}

Test(simt_features, dynamic_shared_beyond_the_attribute_is_refused) {
    need_227_kb();
    EXPECT_OK(allow_dynamic_shared(100000));
    check_dynamic_shared(100000);
    int *out = filled_on_device(0, SHARED_227_KB);
    run_dynamic_shared(out, 100004);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_ERROR(allow_dynamic_shared(SHARED_227_KB + 1), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    check_dynamic_shared(100000);
}

Test(simt_features, dynamic_shared_divided_by_hand) {
    double *out = filled_on_device(0xff, 200 * sizeof *out);
    run_dynamic_parts(out, 200);
    double *got = take_back(out, 200 * sizeof *got);
    for (int i = 0; i < 200; i++) cr_assert_eq(got[i], 1.5 * (199 - i), "element %d is %g", i, got[i]);
    free(got);
}

Test(simt_features, dynamic_beside_static_shared) {
    int expected[256], *out = filled_on_device(0xff, sizeof expected);
    for (int i = 0; i < 256; i++) expected[i] = 1001 * (255 - i);
    run_dynamic_and_static(out, 256);
    expect_ints(out, expected, 256, "static + dynamic");
}

Test(simt_features, static_and_dynamic_shared_together_beyond_48_kb_are_refused) {
    float *out = filled_on_device(0, 32 * sizeof *out);
    run_big_static(out, SHARED_48_KB - (16 << 10));
    EXPECT_OK(cudaGetLastError());
    EXPECT_OK(cudaDeviceSynchronize());
    run_big_static(out, SHARED_48_KB - (16 << 10) + 16);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize(); /* the simulated device learns it inside the kernel */
    cr_assert_neq(error, cudaSuccess, "48 KB and 16 bytes were accepted without the attribute");
}

/* ---- vectors, templates, arguments, launches --------------------------------------------------------------------- */

Test(simt_features, float4_loads_and_stores) {
    enum { N = 400 };
    float in[N];
    for (int i = 0; i < N; i++) in[i] = (float)scrambled(i);
    float *out = filled_on_device(0xff, sizeof in);
    run_vectors(on_device(in, sizeof in), out, N);
    float *got = take_back(out, sizeof in);
    for (int i = 0; i < N; i++) cr_assert_eq(got[i], in[i / 4 * 4 + 3 - i % 4], "element %d is %g", i, got[i]);
    free(got);
}

Test(simt_features, vectors_in_braces_and_made) {
    union {
        float f[20];
        struct {
            float floats[20];
            int ints[12];
        };
    } expected = {.floats = {1, 2, 3, 4, 1, 12, 3, 4, 0, 0, 0, 0, 0.5f, 1.5f, 2.5f, 3.5f, 5, 6, 7, 8},
                  .ints = {25, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 22}};
    float *out = filled_on_device(0xff, 32 * sizeof *out);
    run_vector_parts(out);
    expect_ints((int *)out, (int *)&expected, 32, "bits of the parts");
}

Test(simt_features, kernels_with_template_arguments) {
    int expected[8] = {1, 26, 4, 2, 5, 6, -7, 1}, *out = filled_on_device(0xff, sizeof expected);
    run_templates(out);
    expect_ints(out, expected, 8, "template");
}

Test(simt_features, struct_passed_by_value) {
    enum { N = 70 };
    int in[N], expected[2 * N];
    struct parameters parameters = {.factor = 2.5, .tag = 'x'};
    for (int i = 0; i < 40; i++) parameters.numbers[i] = 2 * i;
    for (int i = 0; i < N; i++) {
        in[i] = scrambled(i);
        expected[i] = 5 * (i % 40) + in[i] + 'x';
        expected[N + i] = 2 * (i % 40);
    }
    parameters.in = on_device(in, sizeof in);
    int *out = filled_on_device(0xff, sizeof expected);
    run_parameters(parameters, out, N);
    expect_ints(out, expected, 2 * N, "parameters");
}

Test(simt_features, arguments_convert) {
    double *out = filled_on_device(0xff, 4 * sizeof *out);
    run_conversions(out);
    double *got = take_back(out, 4 * sizeof *got), expected[4] = {3, 2, 4.5, 1};
    for (int i = 0; i < 4; i++) cr_assert_eq(got[i], expected[i], "argument %d is %g", i, got[i]);
    free(got);
}

Test(simt_features, every_form_of_launch) {
    int expected[LAUNCHES] = {6, 6 * 120, 128, 3 * 64, 2 * 8, 10, 11, 6 * 12, 2 * 13, 14, 15, 16, 17, 18, 3 * 19, 20};
    int *threads_of = filled_on_device(0, sizeof expected);
    run_launches(threads_of);
    expect_ints(threads_of, expected, LAUNCHES, "threads of launch");
    cr_assert_str_eq(text_with_launch(), "__shared__ int x; tally<<<1, 1>>>(0) // \"");
}

Test(simt_features, device_functions_and_variables) {
    int expected[64], *out = filled_on_device(0xff, sizeof expected);
    for (int i = 0; i < 64; i++) expected[i] = 1000 + 2 * (i % 4) + 1 + 10 * (i % 4) * (i % 4);
    run_globals(out);
    expect_ints(out, expected, 64, "globals");
}

Test(simt_features, bit_intrinsics) {
    const unsigned in[5] = {0, 1, 0x80000000u, 0x00f00u, 0xffffffffu};
    const int expected[15] = {0, 32, 0, 1, 31, 1, 1, 0, 32, 4, 20, 9, 32, 0, 1};
    int *out = filled_on_device(0xff, sizeof expected);
    run_bits(on_device(in, sizeof in), out, 5);
    expect_ints(out, expected, 15, "popc, clz, ffs");
}

/* What a report calls line 100 must be line 100 of the source: the build rewrites it. */
Test(simt_features, source_lines_are_kept) {
    char path[4096];
    const char *slash = strrchr(__FILE__, '/');
    int directory = slash == NULL ? 0 : (int)(slash - __FILE__) + 1, lines = 0;
    snprintf(path, sizeof path, "%.*ssimt_kernels.cu", directory, __FILE__);
    FILE *file = fopen(path, "r");
    if (file == NULL) cr_skip_test("needs the sources");
    for (int c; (c = getc(file)) != EOF;) lines += c == '\n';
    fclose(file);
    cr_assert_eq(line_last_of_file, lines);
}

/* ---- the runtime API --------------------------------------------------------------------------------------------- */

Test(simt_features, memcpy_in_every_direction) {
    enum { N = 1000 };
    int in[N], back[N] = {0}, *a = NULL, *b = NULL;
    for (int i = 0; i < N; i++) in[i] = scrambled(i);
    EXPECT_OK(cudaMalloc((void **)&a, sizeof in));
    EXPECT_OK(cudaMalloc((void **)&b, sizeof in));
    EXPECT_OK(cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice));
    EXPECT_OK(cudaMemcpy(b, a, sizeof in, cudaMemcpyDeviceToDevice));
    EXPECT_OK(cudaMemcpy(back, b, sizeof in, cudaMemcpyDeviceToHost));
    cr_assert_arr_eq(back, in, sizeof in);
    EXPECT_OK(cudaMemset(a, 0, sizeof in));
    EXPECT_OK(cudaMemcpy(a + 10, in + 10, 20 * sizeof *in, cudaMemcpyDefault));
    EXPECT_OK(cudaMemcpy(back, a, sizeof in, cudaMemcpyDefault));
    for (int i = 0; i < N; i++) cr_assert_eq(back[i], i >= 10 && i < 30 ? in[i] : 0, "element %d", i);
    EXPECT_OK(cudaMemcpy(back, in, sizeof in, cudaMemcpyHostToHost));
    cr_assert_arr_eq(back, in, sizeof in);
    EXPECT_OK(cudaMemcpy(NULL, NULL, 0, cudaMemcpyHostToDevice));
}

Test(simt_features, memset_writes_bytes) {
    unsigned char expected[100], *memory = filled_on_device(0, sizeof expected);
    memset(expected, 0, sizeof expected);
    memset(expected + 3, 0xab, 50);
    EXPECT_OK(cudaMemset(memory + 3, 0x1ab, 50)); /* only the lowest byte counts */
    unsigned char *got = take_back(memory, sizeof expected);
    cr_assert_arr_eq(got, expected, sizeof expected);
    free(got);
}

Test(simt_features, memcpy_in_wrong_directions) {
    int host[100] = {0}, *device = filled_on_device(0, sizeof host);
    EXPECT_ERROR(cudaMemcpy(host, device, sizeof host, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(device, host, sizeof host, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(device, host, sizeof host, (enum cudaMemcpyKind)17), cudaErrorInvalidMemcpyDirection);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidMemcpyDirection);
    EXPECT_OK(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice));
}

Test(simt_features, malloc_and_free) {
    void *memory = (void *)1, *other = NULL;
    EXPECT_OK(cudaMalloc(&memory, 0));
    cr_assert_null(memory);
    EXPECT_OK(cudaFree(NULL));
    EXPECT_ERROR(cudaMalloc(&memory, (size_t)1 << 50), cudaErrorMemoryAllocation);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorMemoryAllocation);
    EXPECT_ERROR(cudaMalloc(NULL, 4), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_OK(cudaMalloc(&memory, 1));
    EXPECT_OK(cudaMalloc(&other, 1));
    cr_assert_neq(memory, other);
    cr_assert_eq((uintptr_t)memory % 256, 0);
    EXPECT_OK(cudaFree(memory));
    EXPECT_OK(cudaFree(other));
}

Test(simt_features, free_of_a_bad_pointer) {
    int host = 0;
    char *memory = filled_on_device(0, 1000);
    EXPECT_ERROR(cudaFree(&host), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaFree(memory + 256), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_OK(cudaFree(memory));
    EXPECT_ERROR(cudaFree(memory), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
}

Test(simt_features, memory_info) {
    size_t before = 0, after = 0, total = 0, bytes = 64 << 20;
    void *memory = NULL;
    EXPECT_OK(cudaMemGetInfo(&before, &total));
    cr_assert(before > 0 && before <= total);
    EXPECT_OK(cudaMalloc(&memory, bytes));
    EXPECT_OK(cudaMemGetInfo(&after, &total));
    /* A card may be shared with others: only the simulated device's count is exact. */
    if (simulated()) cr_assert_eq(before - after, bytes, "%zu bytes", before - after);
}

Test(simt_features, events) {
    cudaEvent_t start = NULL, stop = NULL;
    float elapsed = -1.0f;
    int *count = filled_on_device(0, sizeof *count);
    EXPECT_OK(cudaEventCreate(&start));
    EXPECT_OK(cudaEventCreate(&stop));
    EXPECT_OK(cudaEventRecord(start, NULL));
    run_count(count, 100, 100);
    EXPECT_OK(cudaEventRecord(stop, NULL));
    EXPECT_OK(cudaEventSynchronize(stop));
    EXPECT_OK(cudaEventElapsedTime(&elapsed, start, stop));
    cr_assert(elapsed >= 0.0f && elapsed < 60e3f, "%g ms", elapsed);
    EXPECT_OK(cudaEventDestroy(start));
    EXPECT_OK(cudaEventDestroy(stop));
}

Test(simt_features, a_query_is_no_wait) {
    if (simt_waits == NULL) cr_skip_test("needs the simulated device");
    cudaEvent_t event = NULL;
    EXPECT_OK(cudaEventCreate(&event));
    EXPECT_OK(cudaEventRecord(event, NULL));
    unsigned long waits = simt_waits();
    EXPECT_OK(cudaEventQuery(event));
    EXPECT_OK(cudaStreamQuery(NULL));
    cr_assert_eq(simt_waits(), waits, "a query counts as a wait");
    EXPECT_OK(cudaEventSynchronize(event));
    cr_assert_eq(simt_waits(), waits + 1, "a wait does not count");
}

Test(simt_features, events_not_recorded) {
    cudaEvent_t start = NULL, stop = NULL;
    float elapsed = -1.0f;
    EXPECT_OK(cudaEventCreate(&start));
    EXPECT_OK(cudaEventCreate(&stop));
    EXPECT_ERROR(cudaEventElapsedTime(&elapsed, start, stop), cudaErrorInvalidResourceHandle);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    EXPECT_OK(cudaEventRecord(start, NULL));
    EXPECT_ERROR(cudaEventElapsedTime(&elapsed, start, stop), cudaErrorInvalidResourceHandle);
}

Test(simt_features, streams) {
    enum { N = 1000 };
    int in[N], back[N] = {0}, *data = NULL;
    cudaStream_t stream = NULL;
    for (int i = 0; i < N; i++) in[i] = scrambled(i);
    EXPECT_OK(cudaMalloc((void **)&data, sizeof in));
    EXPECT_OK(cudaStreamCreate(&stream));
    EXPECT_OK(cudaMemsetAsync(data, 0xff, sizeof in, stream));
    EXPECT_OK(cudaMemcpyAsync(data, in, sizeof in / 2, cudaMemcpyHostToDevice, stream));
    run_on_stream(data, N, 5, stream);
    run_on_stream(data, N, -2, stream);
    EXPECT_OK(cudaMemcpyAsync(back, data, sizeof in, cudaMemcpyDeviceToHost, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < N; i++) cr_assert_eq(back[i], (i < N / 2 ? in[i] : -1) + 3, "element %d is %d", i, back[i]);
    EXPECT_OK(cudaStreamDestroy(stream));
}

Test(simt_features, get_last_error_clears_and_peek_does_not) {
    EXPECT_OK(cudaPeekAtLastError());
    EXPECT_ERROR(cudaMalloc(NULL, 4), cudaErrorInvalidValue);
    EXPECT_OK(cudaDeviceSynchronize()); /* success forgets nothing */
    EXPECT_ERROR(cudaPeekAtLastError(), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaPeekAtLastError(), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_OK(cudaGetLastError());
    EXPECT_OK(cudaPeekAtLastError());
}

static void check_bad_launch(struct extent grid, struct extent block) {
    run_empty(grid, block);
    cudaError_t expected = cudaErrorInvalidConfiguration;
    if (!simulated() && cudaPeekAtLastError() == cudaErrorInvalidValue) expected = cudaErrorInvalidValue; /* CUDA 13 */
    EXPECT_ERROR(cudaPeekAtLastError(), expected);
    EXPECT_ERROR(cudaGetLastError(), expected);
    EXPECT_OK(cudaDeviceSynchronize());
    check_indices((struct extent){2, 1, 1}, (struct extent){32, 1, 1});
}

Test(simt_features, launches_that_cannot_be) {
    struct extent one = {1, 1, 1};
    check_bad_launch(one, (struct extent){0, 1, 1});
    check_bad_launch(one, (struct extent){1, 0, 1});
    check_bad_launch(one, (struct extent){1025, 1, 1});
    check_bad_launch(one, (struct extent){32, 33, 1});
    check_bad_launch(one, (struct extent){1, 1, 65});
    check_bad_launch(one, (struct extent){65536, 65536, 1}); /* 2^32 threads */
    check_bad_launch((struct extent){0, 1, 1}, one);
    check_bad_launch((struct extent){1, 65536, 1}, one);
    check_bad_launch((struct extent){1, 1, 65536}, one);
    check_bad_launch((struct extent){0x80000000u, 1, 1}, one);
}

Test(simt_features, launches_at_the_limits) {
    run_empty((struct extent){1, 65535, 1}, (struct extent){1, 1, 1});
    EXPECT_OK(cudaGetLastError());
    run_empty((struct extent){1, 1, 1}, (struct extent){1, 1024, 1});
    EXPECT_OK(cudaGetLastError());
    run_empty((struct extent){3, 1, 1}, (struct extent){4, 4, 64});
    EXPECT_OK(cudaGetLastError());
    EXPECT_OK(cudaDeviceSynchronize());
}

Test(simt_features, error_names) {
#define CHECK_NAME(error) cr_assert_str_eq(cudaGetErrorName(error), #error)
    CHECK_NAME(cudaSuccess);
    CHECK_NAME(cudaErrorInvalidValue);
    CHECK_NAME(cudaErrorMemoryAllocation);
    CHECK_NAME(cudaErrorInitializationError);
    CHECK_NAME(cudaErrorInvalidConfiguration);
    CHECK_NAME(cudaErrorInvalidSymbol);
    CHECK_NAME(cudaErrorInvalidDevicePointer);
    CHECK_NAME(cudaErrorInvalidMemcpyDirection);
    CHECK_NAME(cudaErrorInvalidDeviceFunction);
    CHECK_NAME(cudaErrorNoDevice);
    CHECK_NAME(cudaErrorInvalidDevice);
    CHECK_NAME(cudaErrorInvalidResourceHandle);
    CHECK_NAME(cudaErrorNotReady);
    CHECK_NAME(cudaErrorIllegalAddress);
    CHECK_NAME(cudaErrorLaunchTimeout);
    CHECK_NAME(cudaErrorAssert);
    CHECK_NAME(cudaErrorMisalignedAddress);
    CHECK_NAME(cudaErrorLaunchFailure);
    CHECK_NAME(cudaErrorNotSupported);
    CHECK_NAME(cudaErrorUnknown);
    cr_assert_str_eq(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument");
    cr_assert_str_eq(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    cr_assert_str_eq(cudaGetErrorString(cudaErrorIllegalAddress), "an illegal memory access was encountered");
}

Test(simt_features, device_attributes) {
    struct cudaDeviceProp properties;
    int count = 0, device = -1, value = 0;
    EXPECT_OK(cudaGetDeviceCount(&count));
    EXPECT_OK(cudaGetDevice(&device));
    cr_assert(count >= 1 && device == 0);
    EXPECT_OK(cudaSetDevice(0));
    EXPECT_OK(cudaGetDeviceProperties(&properties, 0));
    cr_assert(properties.warpSize == 32 && properties.maxThreadsPerBlock == 1024);
    EXPECT_OK(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
    cr_assert_eq(value, 32);
    EXPECT_OK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlock, 0));
    cr_assert_eq(value, SHARED_48_KB);
    EXPECT_ERROR(cudaSetDevice(count), cudaErrorInvalidDevice);
    EXPECT_ERROR(cudaGetDeviceProperties(&properties, count), cudaErrorInvalidDevice);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidDevice);
}

Test(simt_features, call_that_is_to_fail) {
    need_simulated_device();
    struct extent one = {1, 1, 1};
    cr_assert_eq(simt_fail_call(2), 0);
    run_empty(one, one);
    EXPECT_OK(cudaGetLastError());
    run_empty(one, one);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorLaunchOutOfResources);
    run_empty(one, one);
    EXPECT_OK(cudaGetLastError());
    simt_fail_call(3);
    cr_assert_eq(simt_fail_call(0), 3);
}

Test(simt_features, part_of_a_grid) {
    need_simulated_device();
    struct extent grid = {8, 1, 1}, one = {1, 1, 1};
    struct seen seen[8], *memory = NULL;
    EXPECT_OK(cudaMalloc((void **)&memory, sizeof seen));
    EXPECT_OK(cudaMemset(memory, 0, sizeof seen));
    simt_run_part(3, 2);
    run_indices(grid, one, memory);
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_OK(cudaMemcpy(seen, memory, sizeof seen, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < 8; i++) cr_assert_eq(seen[i].times, i >= 5, "block %u", i);
    for (unsigned part = 0; part < 2; part++) {
        simt_run_part(3, part);
        run_indices(grid, one, memory);
    }
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_OK(cudaMemcpy(seen, memory, sizeof seen, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < 8; i++) cr_assert_eq(seen[i].times, 1, "block %u", i);
    simt_run_part(0, 0);
    run_indices(grid, one, NULL);
    EXPECT_OK(cudaGetLastError());
    run_empty((struct extent){8, 65536, 1}, one); /* judged, if not run */
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidConfiguration);
    EXPECT_OK(cudaDeviceSynchronize());
}

Test(simt_features, reserved_memory) {
    need_simulated_device();
    size_t bytes = (size_t)1 << LARGE_MEMORY_BITS;
    char *memory = simt_reserve(bytes), last = 1;
    cr_assert_not_null(memory);
    EXPECT_OK(cudaMemcpy(&last, memory + bytes - 1, 1, cudaMemcpyDeviceToHost));
    cr_assert_eq(last, 0);
    EXPECT_OK(cudaMemset(memory + bytes - 1, 7, 1));
    EXPECT_OK(cudaMemcpy(&last, memory + bytes - 1, 1, cudaMemcpyDeviceToHost));
    cr_assert_eq(last, 7);
    EXPECT_OK(cudaMemset(memory, 0, bytes));
    EXPECT_OK(cudaMemcpy(&last, memory + bytes - 1, 1, cudaMemcpyDeviceToHost));
    cr_assert_eq(last, 0);
    EXPECT_OK(cudaFree(memory));
}

Test(simt_features, uses_of_the_default_stream) {
    need_simulated_device();
    cudaStream_t stream = NULL;
    char *memory = NULL;
    EXPECT_OK(cudaStreamCreate(&stream));
    EXPECT_OK(cudaMalloc((void **)&memory, 4));
    unsigned long before = simt_default_stream_uses();
    EXPECT_OK(cudaMemsetAsync(memory, 0, 4, stream));
    cr_assert_eq(simt_default_stream_uses(), before);
    EXPECT_OK(cudaMemsetAsync(memory, 0, 4, NULL));
    run_empty((struct extent){1, 1, 1}, (struct extent){1, 1, 1});
    cr_assert_eq(simt_default_stream_uses(), before + 2);
    EXPECT_OK(cudaFree(memory));
    EXPECT_OK(cudaStreamDestroy(stream));
}

/* ---- a device with less shared memory ---- */

static void set_shared_kib(const char *kib) {
    setenv("SIMT_SHARED_KIB", kib, 1);
    need_simulated_device();
}
static void set_99_kib(void) { set_shared_kib("99"); }
TestSuite(simt_shared_99_kib, .init = set_99_kib, .timeout = 60);

Test(simt_shared_99_kib, is_told_and_kept) {
    struct cudaDeviceProp properties;
    int value = 0;
    EXPECT_OK(cudaGetDeviceProperties(&properties, 0));
    EXPECT_OK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    cr_assert_eq(properties.sharedMemPerBlockOptin, 99 << 10);
    cr_assert_eq(value, 99 << 10);
    EXPECT_ERROR(allow_dynamic_shared((99 << 10) + 1), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_OK(allow_dynamic_shared(99 << 10));
    check_dynamic_shared(99 << 10);
}

static void compare_at_exit(void) {
    char *text = captured_text();
    const char *expected = "simulated device: SIMT_SHARED_KIB is \"100\": it must be 64, 99, 163 or 227\n";
    if (text[0] != '\0' && strcmp(text, expected) != 0) _exit(1);
}

Test(simt_environment, shared_kib_of_no_card, .exit_code = 2) {
    int value;
    capture_stderr();
    atexit(compare_at_exit);
    setenv("SIMT_SHARED_KIB", "100", 1);
    cudaError_t error = cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    unsetenv("SIMT_SHARED_KIB");
    if (error != cudaSuccess || !simulated()) exit(2); /* a card knows no such variable */
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void report_says(const char *words) {
    cr_assert_not_null(strstr(simt_last_report(), words), "no \"%s\" in the report:\n%s", words, simt_last_report());
}

/* "simt_kernels.cu:LINE", with no digit after it. */
static void report_names_line(const char *mark, int line) {
    char wanted[100];
    size_t length = (size_t)snprintf(wanted, sizeof wanted, "simt_kernels.cu:%d", line);
    const char *found = simt_last_report();
    while ((found = strstr(found, wanted)) != NULL && isdigit((unsigned char)found[length])) found++;
    cr_assert_not_null(found, "no \"%s\" (%s) in the report:\n%s", wanted, mark, simt_last_report());
}

#define REPORT_NAMES(mark) report_names_line(#mark, line_##mark)
#define EXPECT_FAULT(fault, error) EXPECT_ERROR(commit(fault, NULL), error)

/* ---- addresses ---- */

Test(simt_errors, read_past_the_end) {
    EXPECT_FAULT(READ_PAST_END, cudaErrorIllegalAddress);
    REPORT_NAMES(read_at);
    report_says("read of 4 bytes out of bounds");
    report_says("byte 40 of");
    report_says("has 40 bytes: element 10, counted in 4-byte elements\n");
    report_says("kernel read_at");
    report_says("block (0,");
    report_says("thread (33,0,0)");
    report_says("cudaErrorIllegalAddress");
}

Test(simt_errors, write_past_the_end) {
    EXPECT_FAULT(WRITE_PAST_END, cudaErrorIllegalAddress);
    REPORT_NAMES(write_at);
    report_says("write of 4 bytes out of bounds");
    report_says("has 40 bytes");
}

Test(simt_errors, read_before_the_start) {
    EXPECT_FAULT(READ_BEFORE_START, cudaErrorIllegalAddress);
    REPORT_NAMES(read_at);
    report_says("4 bytes before the start of device allocation");
}

Test(simt_errors, read_before_the_start_of_the_second_array) {
    EXPECT_FAULT(READ_BEFORE_START_OF_SECOND, cudaErrorIllegalAddress);
    REPORT_NAMES(read_at);
    report_says("4 bytes before the start of device allocation");
}

Test(simt_errors, write_far_away) {
    EXPECT_FAULT(WRITE_FAR_AWAY, cudaErrorIllegalAddress);
    REPORT_NAMES(write_at);
    report_says("write of 4 bytes");
    report_says("no device memory");
}

Test(simt_errors, atomic_past_the_end) {
    EXPECT_FAULT(ATOMIC_PAST_END, cudaErrorIllegalAddress);
    REPORT_NAMES(add_at);
    report_says("has 40 bytes");
}

Test(simt_errors, vector_past_the_end) {
    EXPECT_FAULT(VECTOR_PAST_END, cudaErrorIllegalAddress); /* its first half is inside */
    REPORT_NAMES(read_vector);
    report_says("read of 16 bytes");
    report_says("it begins inside and ends past the end");
}

Test(simt_errors, null_pointer) {
    EXPECT_FAULT(NULL_POINTER, cudaErrorIllegalAddress);
    REPORT_NAMES(read_at);
    report_says("null pointer");
}

static void check_host_pointer(void *host) {
    EXPECT_ERROR(commit(FOREIGN_POINTER, host), cudaErrorIllegalAddress);
    REPORT_NAMES(read_at);
    report_says("host pointer");
}

Test(simt_errors, pointer_to_the_hosts_heap) {
    void *heap = calloc(10, sizeof(float));
    check_host_pointer(heap);
    free(heap);
}

Test(simt_errors, pointer_to_the_hosts_stack) {
    float stack[10] = {0};
    check_host_pointer(stack);
}

static float host_array[10] = {1};
Test(simt_errors, pointer_to_a_static_array_of_the_host) { check_host_pointer(host_array); }

Test(simt_errors, use_after_free) {
    EXPECT_FAULT(USE_AFTER_FREE, cudaErrorIllegalAddress);
    REPORT_NAMES(read_at);
    report_says("freed");
}

Test(simt_errors, past_a_static_shared_array) {
    EXPECT_FAULT(PAST_STATIC_SHARED, cudaErrorIllegalAddress);
    REPORT_NAMES(past_static);
    report_says("bounds: 1 element past the end of the __shared__ array small[24] of 96 bytes\n");
}

Test(simt_errors, past_the_first_of_two_shared_arrays) {
    EXPECT_FAULT(PAST_FIRST_OF_TWO_SHARED, cudaErrorIllegalAddress); /* on a card: lands in the second, silently */
    REPORT_NAMES(past_first);
    report_says("write of 4 bytes out of bounds: 1 element past the end of the __shared__ array left[8] of 32 bytes and "
                "56 elements before the start of the __shared__ array right[8] of 32 bytes");
}

Test(simt_errors, past_dynamic_shared_memory) {
    EXPECT_FAULT(PAST_DYNAMIC_SHARED, cudaErrorIllegalAddress);
    REPORT_NAMES(dynamic_at);
    report_says("dynamic shared memory");
    report_says("80 bytes");
}

Test(simt_errors, before_dynamic_shared_memory) {
    EXPECT_FAULT(BEFORE_DYNAMIC_SHARED, cudaErrorIllegalAddress);
    REPORT_NAMES(dynamic_at);
    report_says("shared memory");
}

Test(simt_errors, misaligned_float4) {
    EXPECT_FAULT(MISALIGNED_VECTOR, cudaErrorMisalignedAddress);
    REPORT_NAMES(read_vector);
    report_says("multiple of 16");
}

/* ---- barriers ---- */

Test(simt_errors, barrier_that_half_the_threads_take) {
    EXPECT_FAULT(HALF_AT_BARRIER, cudaErrorLaunchFailure);
    REPORT_NAMES(barrier_of_half);
    REPORT_NAMES(barrier_of_all);
    report_says("divergent barrier");
    report_says("__syncthreads()");
}

Test(simt_errors, barriers_in_two_branches) {
    EXPECT_FAULT(TWO_BARRIERS, cudaErrorLaunchFailure);
    REPORT_NAMES(barrier_then);
    REPORT_NAMES(barrier_else);
    report_says("divergent barrier");
}

Test(simt_errors, return_before_a_barrier) {
    EXPECT_FAULT(EARLY_RETURN, cudaErrorLaunchFailure);
    REPORT_NAMES(barrier_after_return);
    REPORT_NAMES(access_before_return);
    report_says("has returned from the kernel");
    report_says("__syncthreads()");
    report_says("thread (0,0,0)");
    report_says("thread (1,0,0)");
}

Test(simt_errors, return_without_an_access) {
    EXPECT_FAULT(RETURN_WITHOUT_ACCESS, cudaErrorLaunchFailure);
    REPORT_NAMES(barrier_of_most);
    report_says("has returned from the kernel (it made no access to memory)");
    report_says("thread (50,0,0)");
}

Test(simt_errors, loops_of_unequal_length_with_a_barrier) {
    EXPECT_FAULT(BARRIERS_IN_UNEQUAL_LOOPS, cudaErrorLaunchFailure);
    REPORT_NAMES(barrier_in_loop);
    REPORT_NAMES(barrier_after_loop);
}

/* ---- warps ---- */

Test(simt_errors, shuffle_from_an_absent_lane) {
    EXPECT_FAULT(ABSENT_LANE, cudaErrorLaunchFailure);
    REPORT_NAMES(absent_lane);
    report_says("__shfl_down_sync()");
    report_says("lane 12 reads lane 16");
}

Test(simt_errors, shuffle_from_a_lane_outside_the_mask) {
    EXPECT_FAULT(LANE_OUTSIDE_MASK, cudaErrorLaunchFailure);
    REPORT_NAMES(lane_outside_mask);
    report_says("reads lane 20");
    report_says("0x0000ffff");
}

Test(simt_errors, shuffle_by_a_lane_outside_its_mask) {
    EXPECT_FAULT(CALLER_OUTSIDE_MASK, cudaErrorLaunchFailure);
    REPORT_NAMES(caller_outside_mask);
    report_says("lane 16");
    report_says("0x0000ffff");
}

Test(simt_errors, shuffles_in_two_branches_never_meet) {
    EXPECT_FAULT(SHUFFLES_IN_TWO_BRANCHES, cudaErrorLaunchFailure);
    REPORT_NAMES(shuffle_then);
    REPORT_NAMES(shuffle_else);
    report_says("__shfl_xor_sync()");
}

Test(simt_errors, lanes_with_different_masks_never_meet) {
    EXPECT_FAULT(DIFFERENT_MASKS, cudaErrorLaunchFailure);
    REPORT_NAMES(different_masks);
    report_says("__syncwarp()");
    report_says("mask");
}

Test(simt_errors, barrier_and_shuffle_never_meet) {
    EXPECT_FAULT(BARRIER_MEETS_SHUFFLE, cudaErrorLaunchFailure);
    REPORT_NAMES(barrier_of_half);
    REPORT_NAMES(shuffle_else);
}

/* ---- endless kernels ---- */

Test(simt_errors, endless_loop_that_reads) {
    EXPECT_FAULT(ENDLESS_READS, cudaErrorLaunchTimeout);
    REPORT_NAMES(endless_reads);
    report_says("endless loop");
}

Test(simt_errors, endless_loop_without_memory) {
    EXPECT_FAULT(ENDLESS_SPIN, cudaErrorLaunchTimeout);
    REPORT_NAMES(spin);
    report_says("endless loop");
}

Test(simt_errors, endless_loop_of_one_thread_after_an_access) {
    EXPECT_FAULT(ENDLESS_SPIN_AFTER_WRITE, cudaErrorLaunchTimeout);
    REPORT_NAMES(spin); /* where it is stuck, not where it was before */
    report_says("thread (5,0,0)");
}

Test(simt_errors, endless_loop_of_barriers) {
    EXPECT_FAULT(ENDLESS_BARRIERS, cudaErrorLaunchTimeout);
    REPORT_NAMES(endless_barriers);
}

Test(simt_errors, endless_loop_of_shuffles) {
    EXPECT_FAULT(ENDLESS_SHUFFLES, cudaErrorLaunchTimeout);
    REPORT_NAMES(endless_shuffles);
}

Test(simt_errors, endless_loop_of_atomics) {
    EXPECT_FAULT(ENDLESS_ATOMICS, cudaErrorLaunchTimeout);
    REPORT_NAMES(endless_atomics);
}

/* ---- the rest ---- */

Test(simt_errors, stack_overflow_by_a_large_array) {
    EXPECT_FAULT(LARGE_LOCAL_ARRAY, cudaErrorLaunchFailure);
    report_says("local memory");
    report_says("simt_kernels.cu:"); /* the kernel's first line, or that of its first access */
}

Test(simt_errors, stack_overflow_by_recursion) {
    EXPECT_FAULT(ENDLESS_RECURSION, cudaErrorLaunchFailure);
    REPORT_NAMES(endless_recursion);
    report_says("local memory");
}

Test(simt_errors, integer_division_by_zero) {
    if (!DIVISION_TRAPS) cr_skip_test("the processor gives 0");
    EXPECT_FAULT(DIVISION_BY_ZERO, cudaErrorLaunchFailure);
    REPORT_NAMES(division_by_zero);
    report_says("division by zero");
}

Test(simt_errors, too_much_static_shared_memory) {
    EXPECT_FAULT(TOO_MUCH_STATIC_SHARED, cudaErrorLaunchFailure);
    REPORT_NAMES(too_much_static);
    report_says("too_large");
    report_says("49156 bytes");
}

/* A fresh allocation holds NaN, so that what a kernel should have written and did not shows in results. */
Test(simt_errors, fresh_device_memory_is_nan) {
    enum { N = 3000 };
    for (int round = 0; round < 3; round++) {
        float *fresh = NULL, got[N] = {0};
        EXPECT_OK(cudaMalloc((void **)&fresh, N * sizeof *fresh));
        EXPECT_OK(cudaMemcpy(got, fresh, N * sizeof *fresh, cudaMemcpyDeviceToHost));
        for (int i = 0; i < N; i++) cr_assert(isnan(got[i]), "round %d: element %d is %g", round, i, (double)got[i]);
        /* What was there before must not shine through. */
        EXPECT_OK(cudaMemset(fresh, 0, N * sizeof *fresh));
        EXPECT_OK(cudaFree(fresh));
    }
}

Test(simt_errors, read_of_device_memory_that_nobody_has_written) {
    EXPECT_FAULT(READ_UNWRITTEN_GLOBAL, cudaErrorLaunchFailure);
    REPORT_NAMES(read_unwritten_global);
    report_says("nobody has written");
    report_says("[9]");
}

Test(simt_errors, read_of_shared_memory_that_nobody_has_written) {
    run_fill_shared(3000); /* what earlier kernels wrote does not count */
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_FAULT(READ_UNWRITTEN_SHARED, cudaErrorLaunchFailure);
    REPORT_NAMES(unwritten_shared);
    report_says("nobody has written");
    report_says("byte 20 of the block's dynamic shared memory");
}

Test(simt_errors, memcpy_and_memset_past_the_end) {
    int host[20] = {0}, *device = filled_on_device(0, 10 * sizeof *device);
    int *other = filled_on_device(0, 20 * sizeof *other);
    EXPECT_ERROR(cudaMemcpy(device, host, 11 * sizeof *host, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(device + 1, host, 10 * sizeof *host, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(host, device, 11 * sizeof *host, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(other, device, 11 * sizeof *host, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(host, device, 11 * sizeof *host, cudaMemcpyDefault), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemset(device, 0, 10 * sizeof *device + 1), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemset(host, 0, sizeof host), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(other, host, sizeof host, cudaMemcpyHostToHost), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(other, host, sizeof host, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
    EXPECT_OK(cudaMemcpy(other, host, sizeof host, cudaMemcpyHostToDevice));
}

Test(simt_errors, error_in_a_kernel_is_sticky_until_reset) {
    cudaEvent_t event = NULL, second = NULL;
    cudaStream_t stream = NULL;
    float elapsed = 0;
    int host = 0, *device = filled_on_device(0, sizeof *device);
    void *more = NULL;
    cudaError_t stuck = cudaErrorIllegalAddress;
    EXPECT_OK(cudaEventCreate(&event));
    EXPECT_OK(cudaEventCreate(&second));
    EXPECT_OK(cudaEventRecord(event, NULL));
    EXPECT_OK(cudaEventRecord(second, NULL));
    EXPECT_OK(cudaStreamCreate(&stream));
    EXPECT_FAULT(NULL_POINTER, stuck);
    EXPECT_ERROR(cudaGetLastError(), stuck);
    EXPECT_ERROR(cudaGetLastError(), stuck);
    EXPECT_ERROR(cudaPeekAtLastError(), stuck);
    EXPECT_ERROR(cudaDeviceSynchronize(), stuck);
    EXPECT_ERROR(cudaMalloc(&more, 4), stuck);
    EXPECT_ERROR(cudaMalloc(&more, 0), stuck);
    EXPECT_ERROR(cudaFree(device), stuck);
    EXPECT_ERROR(cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost), stuck);
    EXPECT_ERROR(cudaMemcpyAsync(&host, device, sizeof host, cudaMemcpyDeviceToHost, stream), stuck);
    EXPECT_ERROR(cudaMemset(device, 0, sizeof host), stuck);
    EXPECT_ERROR(cudaMemsetAsync(device, 0, sizeof host, stream), stuck);
    EXPECT_ERROR(cudaEventRecord(event, NULL), stuck);
    EXPECT_ERROR(cudaEventSynchronize(event), stuck);
    EXPECT_ERROR(cudaEventElapsedTime(&elapsed, event, second), stuck);
    EXPECT_ERROR(cudaStreamSynchronize(stream), stuck);
    EXPECT_ERROR(allow_dynamic_shared(1000), stuck);
    run_count(device, 1, 1); /* runs nothing */
    EXPECT_ERROR(cudaGetLastError(), stuck);
    run_empty((struct extent){1, 1, 1}, (struct extent){0, 1, 1});
    EXPECT_ERROR(cudaGetLastError(), stuck);
    report_says("null pointer");

    EXPECT_OK(cudaDeviceReset());
    EXPECT_OK(cudaGetLastError());
    EXPECT_OK(cudaDeviceSynchronize());
    cr_assert_str_empty(simt_last_report());
    check_indices((struct extent){3, 1, 1}, (struct extent){64, 1, 1});
}

Test(simt_errors, reset_frees_memory) {
    int *device = filled_on_device(0, sizeof *device);
    EXPECT_OK(cudaDeviceReset());
    EXPECT_ERROR(cudaMemset(device, 0, sizeof *device), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaFree(device), cudaErrorInvalidValue);
}

Test(simt_errors, device_works_again_after_each_kind_of_error) {
    static const struct {
        enum fault fault;
        cudaError_t error;
    } faults[] = {{READ_PAST_END, cudaErrorIllegalAddress}, {TWO_BARRIERS, cudaErrorLaunchFailure},
                  {EARLY_RETURN, cudaErrorLaunchFailure},   {DIFFERENT_MASKS, cudaErrorLaunchFailure},
                  {ENDLESS_SPIN, cudaErrorLaunchTimeout},   {DIVISION_BY_ZERO, cudaErrorLaunchFailure},
                  {ENDLESS_READS, cudaErrorLaunchTimeout},  {MISALIGNED_VECTOR, cudaErrorMisalignedAddress}};
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
            if (faults[i].fault == DIVISION_BY_ZERO && !DIVISION_TRAPS) continue;
            EXPECT_FAULT(faults[i].fault, faults[i].error);
            EXPECT_OK(cudaDeviceReset());
            check_indices((struct extent){40, 1, 1}, (struct extent){100, 1, 1});
        }
    }
}
