/* How matrices move between shared memory and the registers of a warp: ldmatrix, stmatrix, and what the meter counts of both.
 * For cards of compute_capability = 80 and later: those for which the build compiles this file. */
#include "meter_test.h"

#include <stdint.h>

#include "ptx.cuh"

TestSuite(mma_meter, .init = need_simulated_device, .timeout = 60);

enum { ROWS = 64 };

/* Different rows for all lanes, or any rows, some of them twice. */
static void pick_rows(int pick[32], bool different) {
    int rows[ROWS];
    for (int i = 0; i < ROWS; i++) rows[i] = i;
    for (int i = 0; i < 32; i++) {
        int j = i + rand() % (ROWS - i), row = rows[j];
        rows[j] = rows[i], rows[i] = row;
        pick[i] = different ? row : rand() % ROWS;
    }
}

/* ---- ldmatrix ---------------------------------------------------------------------------------------------------- */

template <int MATRICES, bool TRANSPOSED> __device__ static void load(uint32_t (&matrix)[MATRICES], const void *row) {
    if constexpr (MATRICES == 1) TRANSPOSED ? ldmatrix_x1_trans(matrix, row) : ldmatrix_x1(matrix, row);
    if constexpr (MATRICES == 2) TRANSPOSED ? ldmatrix_x2_trans(matrix, row) : ldmatrix_x2(matrix, row);
    if constexpr (MATRICES == 4) TRANSPOSED ? ldmatrix_x4_trans(matrix, row) : ldmatrix_x4(matrix, row);
}

/* Lane l names row pick[l] of in (64, 8); out: MATRICES registers per lane. */
template <int MATRICES, bool TRANSPOSED>
__global__ static void load_picked(const uint16_t *in, const int *pick, uint32_t *out) {
    __shared__ uint4 tile[64]; // 64 rows of 8 elements
    int lane = threadIdx.x;
    for (int i = 0; i < 64; i += 32) tile[lane + i] = ((const uint4 *)in)[lane + i];
    __syncthreads(); // the tile is complete before any lane reads it
    uint32_t matrix[MATRICES];
    load<MATRICES, TRANSPOSED>(matrix, &tile[pick[lane]]);
    for (int i = 0; i < MATRICES; i++) out[lane * MATRICES + i] = matrix[i];
}

static void run_ldmatrix(int matrices, int transposed, const uint16_t *in, const int *pick, uint32_t *out) {
    if (matrices == 1 && !transposed) load_picked<1, false><<<1, 32>>>(in, pick, out);
    if (matrices == 1 && transposed) load_picked<1, true><<<1, 32>>>(in, pick, out);
    if (matrices == 2 && !transposed) load_picked<2, false><<<1, 32>>>(in, pick, out);
    if (matrices == 2 && transposed) load_picked<2, true><<<1, 32>>>(in, pick, out);
    if (matrices == 4 && !transposed) load_picked<4, false><<<1, 32>>>(in, pick, out);
    if (matrices == 4 && transposed) load_picked<4, true><<<1, 32>>>(in, pick, out);
}

Test(matrices, ldmatrix) {
    uint16_t in[ROWS][8];
    for (int i = 0; i < ROWS * 8; i++) in[i / 8][i % 8] = (uint16_t)(i * 40503 + 1);
    uint16_t *in_device = *on_device(in);
    for (int matrices = 1; matrices <= 4; matrices *= 2)
        for (int transposed = 0; transposed < 2; transposed++)
            for (int trial = 0; trial < 4; trial++) {
                int pick[32];
                uint32_t got[32 * 4] = {0};
                pick_rows(pick, trial % 2);
                int *pick_device = on_device(pick);
                uint32_t *out = on_device(got);
                run_ldmatrix(matrices, transposed, in_device, pick_device, out);
                EXPECT_OK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
                for (int lane = 0; lane < 32; lane++)
                    for (int i = 0; i < matrices; i++)
                        for (int half = 0; half < 2; half++) {
                            int row = lane / 4, col = lane % 4 * 2 + half;
                            int expected = transposed ? in[pick[8 * i + col]][row] : in[pick[8 * i + row]][col];
                            int element = (int)(got[lane * matrices + i] >> 16 * half & 0xffff);
                            cr_assert_eq(element, expected, "x%d%s: lane %d, register %d, half %d", matrices,
                                         transposed ? ".trans" : "", lane, i, half);
                        }
                EXPECT_OK(cudaFree(pick_device));
                EXPECT_OK(cudaFree(out));
            }
}

/* Row r of the matrices is r * stride bytes into shared memory. */
template <int MATRICES> __global__ static void load_strided(int stride, uint32_t *out) {
    __shared__ uint4 tile[256];
    int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32) tile[i] = make_uint4(i, i, i, i);
    __syncthreads(); // the tile is complete before any lane reads it
    uint32_t matrix[MATRICES];
    load<MATRICES, false>(matrix, &tile[lane * stride / 16 % 256]);
    out[lane] = matrix[0];
}

static void run_ldmatrix_stride(int matrices, int stride_bytes, uint32_t *out) {
    if (matrices == 1) load_strided<1><<<1, 32>>>(stride_bytes, out);
    if (matrices == 2) load_strided<2><<<1, 32>>>(stride_bytes, out);
    if (matrices == 4) load_strided<4><<<1, 32>>>(stride_bytes, out);
}

static void expect_totals(int stride, const char *requests, const char *wavefronts, const char *conflicts, int expected,
                          int least) {
    char what[40];
    snprintf(what, sizeof what, "rows %d bytes apart", stride);
    const cJSON *kernel = finish();
    expect_total(kernel, requests, 1, what);
    expect_total(kernel, wavefronts, expected, what);
    expect_total(kernel, conflicts, expected - least, what);
}

/* 8 rows of 16 bytes are all 32 banks when they lie side by side. */
static const struct strided {
    int bytes, ways;
} strides[] = {{16, 1}, {32, 2}, {48, 1}, {64, 4}, {128, 8}, {144, 1}, {0, 1}};

Test(mma_meter, wavefronts_of_ldmatrix) {
    uint32_t *out = filled_on_device<uint32_t>(0, 32);
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        for (int matrices = 1; matrices <= 4; matrices *= 2) {
            start(1);
            run_ldmatrix_stride(matrices, strides[i].bytes, out);
            expect_totals(strides[i].bytes, "shared_ldmatrix_requests", "shared_ldmatrix_wavefronts",
                          "shared_ldmatrix_conflicts", matrices * strides[i].ways, matrices);
        }
}

/* The lines of the kernel, not of the header with the instruction. */
Test(mma_meter, lines_are_the_kernels) {
    char *text = nullptr;
    size_t bytes = 0;
    uint32_t *out = filled_on_device<uint32_t>(0, 32);
    start(1);
    run_ldmatrix_stride(4, 16, out);
    finish();
    FILE *file = open_memstream(&text, &bytes);
    simt_meter_print(file, 0);
    fclose(file);
    cr_assert_not_null(strstr(text, "shared ldmatrix 16 B           1 requests            4 wavefronts"), "%s", text);
    cr_assert_not_null(strstr(text, "ldmatrix.x4                      1 times"), "%s", text);
    cr_assert_null(strstr(text, "ptx.cuh"), "%s", text);
    cr_assert_null(strstr(text, "local"), "fragments are registers:\n%s", text);
    free(text);
}

/* ---- stmatrix ---------------------------------------------------------------------------------------------------- */

// stmatrix needs compute capability 9.0; below, its kernels store nothing, and the test does not run them.
template <bool TRANSPOSED> __device__ static void store(void *row, const uint32_t (&matrix)[4]) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    TRANSPOSED ? stmatrix_x4_trans(row, matrix) : stmatrix_x4(row, matrix);
#endif
}

/* The rows that are not picked keep 0xffff. */
template <bool TRANSPOSED> __global__ static void store_picked(const uint32_t *in, const int *pick, uint16_t *out) {
    __shared__ uint4 tile[64];
    int lane = threadIdx.x;
    for (int i = 0; i < 64; i += 32) tile[lane + i] = make_uint4(~0u, ~0u, ~0u, ~0u);
    __syncthreads(); // no lane's filling comes after another lane's row
    uint32_t matrix[4];
    for (int i = 0; i < 4; i++) matrix[i] = in[lane * 4 + i];
    store<TRANSPOSED>(&tile[pick[lane]], matrix);
    __syncthreads(); // all rows are stored before any lane reads them
    for (int i = 0; i < 64; i += 32) ((uint4 *)out)[lane + i] = tile[lane + i];
}

Test(matrices, stmatrix) {
    cudaDeviceProp device;
    EXPECT_OK(cudaGetDeviceProperties(&device, 0));
    if (device.major < 9) cr_skip_test("needs compute capability 9.0");
    uint32_t in[32][4];
    for (int i = 0; i < 128; i++) in[i / 4][i % 4] = (uint32_t)i * 2654435761u;
    uint32_t *in_device = *on_device(in);
    for (int transposed = 0; transposed < 2; transposed++) {
        int pick[32];
        uint16_t expected[ROWS][8];
        memset(expected, 0xff, sizeof expected);
        pick_rows(pick, true);
        for (int lane = 0; lane < 32; lane++)
            for (int i = 0; i < 4; i++)
                for (int half = 0; half < 2; half++) {
                    int row = lane / 4, col = lane % 4 * 2 + half;
                    uint16_t element = (uint16_t)(in[lane][i] >> 16 * half);
                    expected[pick[8 * i + (transposed ? col : row)]][transposed ? row : col] = element;
                }
        auto kernel = transposed ? store_picked<true> : store_picked<false>;
        uint16_t *out = filled_on_device<uint16_t>(0, ROWS * 8);
        kernel<<<1, 32>>>(in_device, on_device(pick), out);
        expect_values(out, *expected, ROWS * 8, "rows of 8");
    }
}

__global__ static void store_strided(int stride, uint32_t *out) {
    __shared__ uint4 tile[256];
    int lane = threadIdx.x;
    uint32_t matrix[4] = {0, 1, 2, 3};
    store<false>(&tile[lane * stride / 16], matrix);
    __syncthreads(); // all rows are stored before any lane reads them
    out[lane] = tile[lane * stride / 16].x;
}

Test(mma_meter, wavefronts_of_stmatrix) {
    uint32_t *out = filled_on_device<uint32_t>(0, 32);
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
        if (strides[i].bytes == 0 || strides[i].bytes > 128) continue; /* rows of its own for each lane, in 4 KiB */
        start(1);
        store_strided<<<1, 32>>>(strides[i].bytes, out);
        expect_totals(strides[i].bytes, "shared_store_requests", "shared_store_wavefronts",
                      "shared_store_conflicts", 4 * strides[i].ways, 4);
    }
}
