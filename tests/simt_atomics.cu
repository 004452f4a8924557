/* Atomics on all types, in global and in shared memory, and what is built of them: a counter, a last block, a lock. */
#include "device_test.h"

#include <limits>

enum {
    CELL_ADD,
    CELL_SUB,
    CELL_MIN,
    CELL_MAX,
    CELL_AND,
    CELL_OR,
    CELL_XOR,
    CELL_EXCHANGE,
    CELL_REPLACED, /* the sum of what the exchanges returned */
    CELL_CAS,      /* adds 3 by compare-and-swap */
    CELLS
};

/* tickets[t] counts the threads to whom the addition of 1 to CELL_ADD returned t. */
template <typename T> __device__ void all_atomics(T *cells, int *tickets, int id) {
    T value = (T)id;
    atomicAdd(&tickets[(int)atomicAdd(&cells[CELL_ADD], (T)1)], 1);
    if constexpr (sizeof(T) == 4) atomicSub(&cells[CELL_SUB], (T)2); /* CUDA has it for 32 bits only */
    atomicMin(&cells[CELL_MIN], value);
    atomicMax(&cells[CELL_MAX], value);
    atomicAnd(&cells[CELL_AND], ~((T)1 << id % 31));
    atomicOr(&cells[CELL_OR], (T)1 << id % 31);
    atomicXor(&cells[CELL_XOR], value);
    atomicAdd(&cells[CELL_REPLACED], atomicExch(&cells[CELL_EXCHANGE], value));
    T expected = 0, found;
    while ((found = atomicCAS(&cells[CELL_CAS], expected, expected + 3)) != expected) expected = found;
}

template <typename T> __global__ void atomics_on_global(T *cells, int *tickets) {
    all_atomics(cells, tickets, global_thread());
}

/* CELLS values for each block. */
template <typename T> __global__ void atomics_on_shared(T *cells, int *tickets) {
    __shared__ T own[CELLS];
    for (int i = (int)threadIdx.x; i < CELLS; i += (int)blockDim.x) own[i] = cells[blockIdx.x * CELLS + i];
    __syncthreads();
    all_atomics(own, tickets, (int)threadIdx.x);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < CELLS; i += (int)blockDim.x) cells[blockIdx.x * CELLS + i] = own[i];
}

enum { START = 0x5a5a5a };

template <typename T> static T start_of(int cell) {
    switch (cell) {
    case CELL_ADD:
    case CELL_CAS:
    case CELL_MAX:
    case CELL_REPLACED: return 0;
    case CELL_MIN: return std::numeric_limits<T>::max();
    default: return START;
    }
}

/* What CELLS cells hold after n threads with the numbers 0 to n - 1. */
template <typename T> static void expect_cells(const T *got, int n, const char *what) {
    T numbers = 0, all_xor = START, bits = 0;
    for (int i = 0; i < n; i++) numbers += (T)i, all_xor ^= (T)i, bits |= (T)1 << i % 31;
    cr_assert_eq(got[CELL_ADD], (T)n, "%s: add", what);
    if (sizeof(T) == 4) cr_assert_eq(got[CELL_SUB], (T)(START - 2 * n), "%s: sub", what);
    cr_assert_eq(got[CELL_MIN], (T)0, "%s: min", what);
    cr_assert_eq(got[CELL_MAX], (T)(n - 1), "%s: max", what);
    cr_assert_eq(got[CELL_AND], (T)START & ~bits, "%s: and", what);
    cr_assert_eq(got[CELL_OR], (T)START | bits, "%s: or", what);
    cr_assert_eq(got[CELL_XOR], all_xor, "%s: xor", what);
    cr_assert_lt((unsigned long long)got[CELL_EXCHANGE], (unsigned long long)n, "%s: exchange", what);
    /* Each number was put in once, and has come out or is still there. */
    cr_assert_eq(got[CELL_REPLACED] + got[CELL_EXCHANGE], START + numbers, "%s: what exchange returned", what);
    cr_assert_eq(got[CELL_CAS], (T)(3 * n), "%s: compare and swap", what);
}

template <typename T> static void check_atomics(bool on_shared) {
    constexpr int BLOCKS = 9, THREADS = 100;
    T cells[BLOCKS * CELLS];
    for (int i = 0; i < BLOCKS * CELLS; i++) cells[i] = start_of<T>(i % CELLS);
    T *memory = on_device(cells);
    int *tickets = filled_on_device<int>(0, BLOCKS * THREADS), threads = on_shared ? THREADS : BLOCKS * THREADS;
    if (on_shared)
        atomics_on_shared<T><<<BLOCKS, THREADS>>>(memory, tickets);
    else
        atomics_on_global<T><<<BLOCKS, THREADS>>>(memory, tickets);
    auto got = take_back(memory, BLOCKS * CELLS);
    for (int block = 0; block < (on_shared ? BLOCKS : 1); block++)
        expect_cells(&got[block * CELLS], threads, on_shared ? "shared memory" : "global memory");
    std::vector<int> times(threads, on_shared ? BLOCKS : 1);
    expect_values(tickets, times.data(), threads, "what atomicAdd returned");
}

Test(simt_features, atomics_on_int) {
    check_atomics<int>(false);
    check_atomics<int>(true);
}
Test(simt_features, atomics_on_unsigned) {
    check_atomics<unsigned>(false);
    check_atomics<unsigned>(true);
}
Test(simt_features, atomics_on_unsigned_long_long) {
    check_atomics<unsigned long long>(false);
    check_atomics<unsigned long long>(true);
}

Test(simt_features, atomics_on_negative_ints) {
    int cells[CELLS] = {0}, expected[CELLS] = {0};
    cells[CELL_MIN] = 5, cells[CELL_MAX] = -5, cells[CELL_SUB] = -7, cells[CELL_AND] = -1;
    int *memory = on_device(cells);
    atomics_on_global<int><<<1, 1>>>(memory, filled_on_device<int>(0, 1)); /* the one thread has the number 0 */
    expected[CELL_ADD] = 1, expected[CELL_SUB] = -9, expected[CELL_AND] = -2, expected[CELL_OR] = 1, expected[CELL_CAS] = 3;
    expect_values(memory, expected, CELLS, "cells");
}

/* cells: sum of thread numbers / 4 by atomicAdd, latest exchange, sum of what exchanges returned. */
template <typename T> __global__ void floating_atomics(T *cells, bool on_shared) {
    __shared__ T own[3];
    if (threadIdx.x < 3) own[threadIdx.x] = 0;
    __syncthreads();
    T *into = on_shared ? own : cells;
    atomicAdd(&into[0], (T)global_thread() / 4);
    if constexpr (sizeof(T) == 4) /* CUDA exchanges no doubles */
        atomicAdd(&into[2], atomicExch(&into[1], (T)global_thread()));
    __syncthreads();
    if (on_shared && threadIdx.x < 3) atomicAdd(&cells[threadIdx.x], own[threadIdx.x]);
}

Test(simt_features, atomics_on_float) {
    enum { BLOCKS = 20, THREADS = 64, N = BLOCKS * THREADS };
    for (bool on_shared : {false, true}) {
        float *memory = filled_on_device<float>(0, 3);
        floating_atomics<float><<<BLOCKS, THREADS>>>(memory, on_shared);
        auto got = take_back(memory, 3);
        cr_assert_eq(got[0], N * (N - 1) / 8.0f, "%g", got[0]); /* every partial sum is exact in float */
        cr_assert_eq(got[1] + got[2], N * (N - 1) / 2.0f, "%g + %g", got[1], got[2]);
    }
}

Test(simt_features, atomics_on_double) {
    enum { BLOCKS = 50, THREADS = 96, N = BLOCKS * THREADS };
    for (bool on_shared : {false, true}) {
        double *memory = filled_on_device<double>(0, 3);
        floating_atomics<double><<<BLOCKS, THREADS>>>(memory, on_shared);
        auto got = take_back(memory, 3);
        cr_assert_eq(got[0], (double)N * (N - 1) / 8, "%g", got[0]);
    }
}

__global__ static void count_threads(int *count) { atomicAdd(count, 1); }

Test(simt_features, contention_over_many_blocks) {
    int *count = filled_on_device<int>(0, 1), expected = 1500 * 256;
    count_threads<<<1500, 256>>>(count);
    expect_values(count, &expected, 1, "threads");
}

/* Each block sums its part; the block that finishes last adds the parts up. */
__global__ static void last_block(const int *in, int n, volatile int *partial_sums, unsigned *blocks_done, int *out) {
    __shared__ int sum;
    __shared__ bool is_last;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    for (int i = global_thread(); i < n; i += (int)(gridDim.x * blockDim.x)) atomicAdd(&sum, in[i]);
    __syncthreads();
    if (threadIdx.x == 0) {
        partial_sums[blockIdx.x] = sum;
        __threadfence();
        is_last = atomicAdd(blocks_done, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last || threadIdx.x != 0) return;
    __threadfence();
    *out = 0;
    for (unsigned block = 0; block < gridDim.x; block++) *out += partial_sums[block];
}

Test(simt_features, last_block_sees_all_others) {
    enum { N = 10000, BLOCKS = 30 };
    int in[N], sum = 0;
    for (int i = 0; i < N; i++) sum += in[i] = scrambled(i);
    int *partial = filled_on_device<int>(0xff, BLOCKS), *out = filled_on_device<int>(0xff, 1);
    last_block<<<BLOCKS, 64>>>(on_device(in), N, partial, filled_on_device<unsigned>(0, 1), out);
    expect_values(out, &sum, 1, "sum");
}

__global__ static void spin_lock(int *lock, volatile int *count) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    *count = *count + 1;
    __threadfence();
    atomicExch(lock, 0);
}

Test(simt_features, spin_lock) {
    int *count = filled_on_device<int>(0, 1), expected = 16 * 32;
    spin_lock<<<16, 32>>>(filled_on_device<int>(0, 1), count);
    expect_values(count, &expected, 1, "threads that held the lock");
}
