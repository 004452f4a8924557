/* Device helpers that more than one chapter uses, each under the chapter that introduces it. */
#ifndef DEVICE_CUH
#define DEVICE_CUH

#include <cuda_pipeline.h>

#include "ptx.cuh"

constexpr int WARP = 32;
constexpr unsigned FULL_WARP = 0xffffffffu;

// ---- 02_tiled_matmul: reductions over a warp. Every lane gets the result; all 32 lanes must call. Each round adds the
// value of the lane whose number differs in one bit, so that after five rounds every lane has met all 32.

__device__ inline float warp_reduce_max(float x) {
    for (int bit = WARP / 2; bit > 0; bit /= 2) x = fmaxf(x, __shfl_xor_sync(FULL_WARP, x, bit));
    return x;
}

__device__ inline float warp_reduce_sum(float x) {
    for (int bit = WARP / 2; bit > 0; bit /= 2) x += __shfl_xor_sync(FULL_WARP, x, bit);
    return x;
}

// ---- 04_fa1_fwd: copy rows [first, first + count) of a (rows, d) matrix to a tile in shared memory, `stride` floats a row;
// rows past the end become zeros. All warps of the block take part, a row each in turn. No barrier.

template <int WARPS>
__device__ inline void load_tile(float *tile, int stride, const float *matrix, int first, int count, int rows, int d) {
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    for (int r = warp; r < count; r += WARPS)
        for (int c = lane; c < d; c += WARP)
            tile[r * stride + c] = first + r < rows ? matrix[(size_t)(first + r) * d + c] : 0.0f;
}

// ---- 06_vectorized: a warp's lanes as 4 rows x 8 columns. A 16-byte shared load of a warp takes 2 turns instead of 4
// when lane i reads the same address as lane i^1, or as lane i^2. Rows are given the lane bits 0 and 4 and columns the
// bits 1 to 3, so what depends on the row is equal for lanes i and i^2, and what depends on the column for lanes i, i^1.
constexpr int LANE_ROWS = 4, LANE_COLS = 8;
__device__ inline int lane_row(int lane) { return (lane & 1) | (lane >> 3 & 2); }
__device__ inline int lane_col(int lane) { return lane >> 1 & 7; }

__device__ inline float4 load4(const float *p) { return *(const float4 *)p; }

__device__ inline void fma4(float4 &sum, float a, float4 b) {
    sum.x += a * b.x;
    sum.y += a * b.y;
    sum.z += a * b.z;
    sum.w += a * b.w;
}

__device__ inline void scale4(float4 &x, float a) {
    x.x *= a;
    x.y *= a;
    x.z *= a;
    x.w *= a;
}

// Start to copy rows [first, first + ROWS) of a (rows, d) matrix to a tile of D columns; past the ends, zeros. No
// commit, no wait. Unrolled further, the addresses would take the registers that the kernels need for sums.
template <int ROWS, int D, int STRIDE, int THREADS>
__device__ inline void copy_tile(float *tile, const float *matrix, int first, int rows, int d) {
    if (d % 4 == 0) { // rows begin at multiples of 16 bytes
#pragma unroll 2
        for (int i = threadIdx.x; i < ROWS * D / 4; i += THREADS) {
            int r = i / (D / 4), c = i % (D / 4) * 4;
            bool inside = first + r < rows && c < d;
            const float *from = inside ? matrix + (size_t)(first + r) * d + c : matrix;
            __pipeline_memcpy_async(tile + r * STRIDE + c, from, 16, inside ? 0 : 16);
        }
    } else {
#pragma unroll 1
        for (int i = threadIdx.x; i < ROWS * D; i += THREADS) {
            int r = i / D, c = i % D;
            bool inside = first + r < rows && c < d;
            const float *from = inside ? matrix + (size_t)(first + r) * d + c : matrix;
            __pipeline_memcpy_async(tile + r * STRIDE + c, from, 4, inside ? 0 : 4);
        }
    }
}

// A thread's part of A B^T over DEPTH columns: its rows of A are 4 rows apart, its rows of B 8. For four columns at a
// time, TM + TN loads of 16 bytes feed 4 TM TN multiply-adds. Both matrices have `stride` floats a row.
template <int TM, int TN, int DEPTH, int UNROLL>
__device__ __forceinline__ void multiply_rows(float (&sum)[TM][TN], const float *A, const float *B, int stride) {
#pragma unroll UNROLL
    for (int c = 0; c < DEPTH; c += 4) {
        float4 A_reg[TM];
#pragma unroll
        for (int i = 0; i < TM; i++) A_reg[i] = load4(A + LANE_ROWS * i * stride + c);
#pragma unroll
        for (int j = 0; j < TN; j++) {
            float4 b = load4(B + LANE_COLS * j * stride + c);
#pragma unroll
            for (int i = 0; i < TM; i++) {
                sum[i][j] += A_reg[i].x * b.x;
                sum[i][j] += A_reg[i].y * b.y;
                sum[i][j] += A_reg[i].z * b.z;
                sum[i][j] += A_reg[i].w * b.w;
            }
        }
    }
}

// A thread's part of A B, A with DEPTH columns: its rows of A are 4 rows apart, its columns of B come in fours that are
// 32 apart. For four columns of A at a time, TM loads of A and 4 TC of B feed 16 TM TC multiply-adds. Column by column,
// so that no sum is added to twice in a row.
template <int TM, int TC, int DEPTH, int UNROLL>
__device__ __forceinline__ void multiply_columns(float4 (&sum)[TM][TC], const float *A, int A_stride, const float *B,
                                                 int B_stride) {
#pragma unroll UNROLL
    for (int k = 0; k < DEPTH; k += 4) {
        float4 A_reg[TM];
#pragma unroll
        for (int i = 0; i < TM; i++) A_reg[i] = load4(A + LANE_ROWS * i * A_stride + k);
#pragma unroll
        for (int t = 0; t < TC; t++) {
            const float *b = B + k * B_stride + 4 * LANE_COLS * t;
            float4 b0 = load4(b), b1 = load4(b + B_stride), b2 = load4(b + 2 * B_stride), b3 = load4(b + 3 * B_stride);
#pragma unroll
            for (int i = 0; i < TM; i++) fma4(sum[i][t], A_reg[i].x, b0);
#pragma unroll
            for (int i = 0; i < TM; i++) fma4(sum[i][t], A_reg[i].y, b1);
#pragma unroll
            for (int i = 0; i < TM; i++) fma4(sum[i][t], A_reg[i].z, b2);
#pragma unroll
            for (int i = 0; i < TM; i++) fma4(sum[i][t], A_reg[i].w, b3);
        }
    }
}

// Write four columns of a row of a (rows, d) matrix, as one store where rows begin at multiples of 16 bytes.
__device__ inline void store_columns(float *row, int col, int d, float4 x) {
    if (d % 4 == 0) {
        if (col < d) *(float4 *)(row + col) = x;
    } else {
        if (col < d) row[col] = x.x;
        if (col + 1 < d) row[col + 1] = x.y;
        if (col + 2 < d) row[col + 2] = x.z;
        if (col + 3 < d) row[col + 3] = x.w;
    }
}

// ---- 09_fa2_bwd_warps: a thread's part of A^T B over ROWS rows: its columns of A come in fours that are 16 apart, those
// of B in fours that are 32 apart. In a row KN + KC loads of 16 bytes feed 16 KN KC multiply-adds.
template <int KN, int KC, int ROWS, int UNROLL>
__device__ __forceinline__ void multiply_transposed(float4 (&sum)[KN][4][KC], const float *A, int A_stride,
                                                    const float *B, int B_stride) {
#pragma unroll UNROLL
    for (int r = 0; r < ROWS; r++) {
        float4 A_reg[KN], B_reg[KC];
#pragma unroll
        for (int n = 0; n < KN; n++) A_reg[n] = load4(A + r * A_stride + 4 * LANE_ROWS * n);
#pragma unroll
        for (int t = 0; t < KC; t++) B_reg[t] = load4(B + r * B_stride + 4 * LANE_COLS * t);
#pragma unroll
        for (int n = 0; n < KN; n++) {
#pragma unroll
            for (int t = 0; t < KC; t++) {
                fma4(sum[n][0][t], A_reg[n].x, B_reg[t]);
                fma4(sum[n][1][t], A_reg[n].y, B_reg[t]);
                fma4(sum[n][2][t], A_reg[n].z, B_reg[t]);
                fma4(sum[n][3][t], A_reg[n].w, B_reg[t]);
            }
        }
    }
}

// Add to four columns of a row, as one request where rows begin at multiples of 16 bytes.
__device__ inline void add_columns(float *row, int col, int d, float4 x) {
    if (d % 4 == 0) {
        if (col < d) reduce_add4(row + col, x);
    } else {
        if (col < d) atomicAdd(row + col, x.x);
        if (col + 1 < d) atomicAdd(row + col + 1, x.y);
        if (col + 2 < d) atomicAdd(row + col + 2, x.z);
        if (col + 3 < d) atomicAdd(row + col + 3, x.w);
    }
}

#endif
