// For cards of compute_capability = 80 and later: those for which the build compiles this file.
#include "mma_kernels.h"

#include <mma.h>

#include "ptx.cuh"

using namespace nvcuda;

// ---- mma.sync -------------------------------------------------------------------------------------------------------

// The lane's element e of a C fragment: row g + 8 (e / 2), column 2 t + e % 2.
__device__ static int C_at(int e) {
    int lane = threadIdx.x, row = lane / 4 + e / 2 * 8, col = lane % 4 * 2 + e % 2;
    return row * 8 + col;
}

template <class T> __global__ static void mma_16_bits(const uint32_t *A, const uint32_t *B, float *C, int rounds) {
    int g = threadIdx.x / 4, t = threadIdx.x % 4; // rows of A and of B transposed have 8 words
    A += blockIdx.x * 128, B += blockIdx.x * 64, C += blockIdx.x * 128;
    uint32_t A_reg[4] = {A[g * 8 + t], A[(g + 8) * 8 + t], A[g * 8 + t + 4], A[(g + 8) * 8 + t + 4]};
    float C_reg[4];
    for (int e = 0; e < 4; e++) C_reg[e] = C[C_at(e)];
    for (int round = 0; round < rounds; round++) mma_m16n8k16<T>(C_reg, A_reg, B[g * 8 + t], B[g * 8 + t + 4]);
    for (int e = 0; e < 4; e++) C[C_at(e)] = C_reg[e];
}

__global__ static void mma_tf32(const uint32_t *A, const uint32_t *B, float *C, int rounds) {
    int g = threadIdx.x / 4, t = threadIdx.x % 4;
    A += blockIdx.x * 128, B += blockIdx.x * 64, C += blockIdx.x * 128;
    uint32_t A_reg[4] = {A[g * 8 + t], A[(g + 8) * 8 + t], A[g * 8 + t + 4], A[(g + 8) * 8 + t + 4]};
    float C_reg[4];
    for (int e = 0; e < 4; e++) C_reg[e] = C[C_at(e)];
    for (int round = 0; round < rounds; round++) mma_m16n8k8_tf32(C_reg, A_reg, B[g * 8 + t], B[g * 8 + t + 4]);
    for (int e = 0; e < 4; e++) C[C_at(e)] = C_reg[e];
}

void run_mma(enum mma_format format, int count, int rounds, const uint32_t *A, const uint32_t *B, float *C) {
    if (format == MMA_HALF) mma_16_bits<__half><<<count, 32>>>(A, B, C, rounds);
    if (format == MMA_BFLOAT16) mma_16_bits<__nv_bfloat16><<<count, 32>>>(A, B, C, rounds);
    if (format == MMA_TF32) mma_tf32<<<count, 32>>>(A, B, C, rounds);
}

// ---- ldmatrix and stmatrix ------------------------------------------------------------------------------------------

template <int MATRICES, bool TRANSPOSED> __device__ static void load(uint32_t (&matrix)[MATRICES], const void *row) {
    if constexpr (MATRICES == 1) TRANSPOSED ? ldmatrix_x1_trans(matrix, row) : ldmatrix_x1(matrix, row);
    if constexpr (MATRICES == 2) TRANSPOSED ? ldmatrix_x2_trans(matrix, row) : ldmatrix_x2(matrix, row);
    if constexpr (MATRICES == 4) TRANSPOSED ? ldmatrix_x4_trans(matrix, row) : ldmatrix_x4(matrix, row);
}

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

void run_ldmatrix(int matrices, int transposed, const uint16_t *in, const int *pick, uint32_t *out) {
    if (matrices == 1 && !transposed) load_picked<1, false><<<1, 32>>>(in, pick, out);
    if (matrices == 1 && transposed) load_picked<1, true><<<1, 32>>>(in, pick, out);
    if (matrices == 2 && !transposed) load_picked<2, false><<<1, 32>>>(in, pick, out);
    if (matrices == 2 && transposed) load_picked<2, true><<<1, 32>>>(in, pick, out);
    if (matrices == 4 && !transposed) load_picked<4, false><<<1, 32>>>(in, pick, out);
    if (matrices == 4 && transposed) load_picked<4, true><<<1, 32>>>(in, pick, out);
}

// stmatrix needs compute capability 9.0; below, its kernels store nothing, and the test does not run them.
template <bool TRANSPOSED> __device__ static void store(void *row, const uint32_t (&matrix)[4]) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    TRANSPOSED ? stmatrix_x4_trans(row, matrix) : stmatrix_x4(row, matrix);
#endif
}

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

void run_stmatrix(int transposed, const uint32_t *in, const int *pick, uint16_t *out) {
    if (transposed)
        store_picked<true><<<1, 32>>>(in, pick, out);
    else
        store_picked<false><<<1, 32>>>(in, pick, out);
}

template <int MATRICES> __global__ static void load_strided(int stride, uint32_t *out) {
    __shared__ uint4 tile[256];
    int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32) tile[i] = make_uint4(i, i, i, i);
    __syncthreads(); // the tile is complete before any lane reads it
    uint32_t matrix[MATRICES];
    load<MATRICES, false>(matrix, &tile[lane * stride / 16 % 256]);
    out[lane] = matrix[0];
}

void run_ldmatrix_stride(int matrices, int stride_bytes, uint32_t *out) {
    if (matrices == 1) load_strided<1><<<1, 32>>>(stride_bytes, out);
    if (matrices == 2) load_strided<2><<<1, 32>>>(stride_bytes, out);
    if (matrices == 4) load_strided<4><<<1, 32>>>(stride_bytes, out);
}

__global__ static void store_strided(int stride, uint32_t *out) {
    __shared__ uint4 tile[256];
    int lane = threadIdx.x;
    uint32_t matrix[4] = {0, 1, 2, 3};
    store<false>(&tile[lane * stride / 16], matrix);
    __syncthreads(); // all rows are stored before any lane reads them
    out[lane] = tile[lane * stride / 16].x;
}

void run_stmatrix_stride(int stride_bytes, uint32_t *out) { store_strided<<<1, 32>>>(stride_bytes, out); }

// ---- WMMA -----------------------------------------------------------------------------------------------------------

template <class T, class A_order, class B_order>
__device__ static void multiply(const T *A, const T *B, const float *C, float *D, int stride, wmma::layout_t order) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, A_order> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, T, B_order> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c, zero;
    wmma::load_matrix_sync(a, A, stride);
    wmma::load_matrix_sync(b, B, stride);
    wmma::load_matrix_sync(c, C, stride, order);
    wmma::fill_fragment(zero, 0.0f);
    for (int i = 0; i < c.num_elements; i++) c.x[i] += zero.x[i];
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(D, c, stride, order);
}

template <class T, class A_order, class B_order>
__global__ static void wmma_product(const T *A, const T *B, const float *C, float *D, int stride, int C_by_columns,
                                    int in_shared) {
    __shared__ __align__(32) T A_smem[16 * 32], B_smem[16 * 32];
    __shared__ __align__(32) float C_smem[16 * 32];
    wmma::layout_t order = C_by_columns ? wmma::mem_col_major : wmma::mem_row_major;
    if (!in_shared) {
        multiply<T, A_order, B_order>(A, B, C, D, stride, order);
        return;
    }
    for (int i = threadIdx.x; i < 16 * stride; i += 32) A_smem[i] = A[i], B_smem[i] = B[i], C_smem[i] = C[i];
    __syncwarp(); // the matrices are complete before any lane reads them
    multiply<T, A_order, B_order>(A_smem, B_smem, C_smem, C_smem, stride, order);
    __syncwarp(); // the result is complete before any lane reads it
    for (int i = threadIdx.x; i < 16 * stride; i += 32)
        if (i % stride < 16) D[i] = C_smem[i];
}

template <class T>
static void product(int A_by_columns, int B_by_columns, int C_by_columns, int in_shared, int stride, const uint16_t *A,
                    const uint16_t *B, const float *C, float *D) {
    auto kernel = A_by_columns ? (B_by_columns ? wmma_product<T, wmma::col_major, wmma::col_major>
                                               : wmma_product<T, wmma::col_major, wmma::row_major>)
                               : (B_by_columns ? wmma_product<T, wmma::row_major, wmma::col_major>
                                               : wmma_product<T, wmma::row_major, wmma::row_major>);
    kernel<<<1, 32>>>((const T *)A, (const T *)B, C, D, stride, C_by_columns, in_shared);
}

void run_wmma(enum mma_format format, int A_by_columns, int B_by_columns, int C_by_columns, int in_shared, int stride,
              const uint16_t *A, const uint16_t *B, const float *C, float *D) {
    auto run = format == MMA_HALF ? product<__half> : product<__nv_bfloat16>;
    run(A_by_columns, B_by_columns, C_by_columns, in_shared, stride, A, B, C, D);
}

// ---- exp2_approx ----------------------------------------------------------------------------------------------------

__global__ static void exponentials(const float *in, float *out) {
    int i = blockIdx.x * 32 + threadIdx.x;
    out[i] = exp2_approx(in[i]);
}

void run_exp2_approx(const float *in, float *out, int count) { exponentials<<<count / 32, 32>>>(in, out); }
