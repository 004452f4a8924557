/* Device helpers that more than one chapter uses, each under the chapter that introduces it. */
#ifndef DEVICE_CUH
#define DEVICE_CUH

#include <cuda_pipeline.h>

#include "attention.h"
#include "ptx.cuh"

constexpr int WARP = 32;
constexpr unsigned FULL_WARP = 0xffffffffu;

// ---- 02_tiled_matmul: warp-level reductions. All 32 lanes must call; every lane returns the result. In each of five
// rounds a lane combines its value with the value of the lane whose number differs in one bit.

__device__ inline float warp_reduce_max(float x) {
    for (int bit = WARP / 2; bit > 0; bit /= 2) x = fmaxf(x, __shfl_xor_sync(FULL_WARP, x, bit));
    return x;
}

__device__ inline float warp_reduce_sum(float x) {
    for (int bit = WARP / 2; bit > 0; bit /= 2) x += __shfl_xor_sync(FULL_WARP, x, bit);
    return x;
}

// ---- 04_fa1_fwd: copy rows [first, first + count) of a (rows, d) matrix to a (count, d) tile in shared memory whose
// rows are `stride` floats apart. Rows past the end of the matrix become zeros. One row per warp at a time. No
// barrier.

template <int WARPS>
__device__ inline void load_tile(float *tile, int stride, const float *matrix, int first, int count, int rows, int d) {
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    for (int r = warp; r < count; r += WARPS)
        for (int c = lane; c < d; c += WARP)
            tile[r * stride + c] = first + r < rows ? matrix[(size_t)(first + r) * d + c] : 0.0f;
}

// ---- 06_vectorized: a warp's 32 lanes as 4 rows x 8 columns. A 16-byte shared load of a warp takes 2 wavefronts
// instead of 4 when each lane i has the same address as lane i^1, or when each lane i has the same address as lane
// i^2. Lane bits 0 and 4 number the row, so lanes i and i^2 share their row; bits 1 to 3 number the column, so lanes
// i and i^1 share their column.
constexpr int LANE_ROWS = 4, LANE_COLS = 8;
__device__ inline int lane_row(int lane) { return (lane & 1) | (lane >> 3 & 2); }
__device__ inline int lane_col(int lane) { return lane >> 1 & 7; }

// to[0..3] = from[0..3] by one load of 16 bytes: `from` is a multiple of 16 bytes.
__device__ inline void load4(float *to, const float *from) {
    float4 x = *(const float4 *)from;
    to[0] = x.x;
    to[1] = x.y;
    to[2] = x.z;
    to[3] = x.w;
}

// Copy rows [first, first + ROWS) of a (rows, d) matrix to a (ROWS, D) tile in shared memory whose rows are STRIDE
// floats apart, one element per load. Elements past the last row or the last column become zeros. No barrier.
template <int ROWS, int D, int STRIDE, int THREADS>
__device__ inline void copy_tile_scalar(float *tile, const float *matrix, int first, int rows, int d) {
    for (int i = threadIdx.x; i < ROWS * D; i += THREADS) {
        int r = i / D, c = i % D;
        bool inside = first + r < rows && c < d;
        tile[STRIDE == D ? i : r * STRIDE + c] = inside ? matrix[(size_t)(first + r) * d + c] : 0.0f;
    }
}

// Start to copy rows [first, first + ROWS) of a (rows, d) matrix to a (ROWS, D) tile in shared memory whose rows are
// STRIDE floats apart. Elements past the last row or the last column become zeros. No commit, no wait.
template <int ROWS, int D, int STRIDE, int THREADS>
__device__ inline void copy_tile_checked(float *tile, const float *matrix, int first, int rows, int d) {
    constexpr int STEP = 4 * THREADS / D; // rows that all threads together copy with 16 bytes each
    static_assert(4 * THREADS % D == 0 && ROWS % STEP == 0, "a thread's pieces lie in one column, STEP rows apart");
    int row = threadIdx.x / (D / 4), col = threadIdx.x % (D / 4) * 4;
    if (d % 4 == 0) { // each row begins at a multiple of 16 bytes
#pragma unroll 1
        for (int r = row; r < ROWS; r += STEP) {
            bool inside = first + r < rows && col < d;
            const float *from = inside ? matrix + (size_t)(first + r) * d + col : matrix;
            __pipeline_memcpy_async(tile + r * STRIDE + col, from, 16, inside ? 0 : 16);
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

// The same copy with a fast path: an interior tile, all of whose ROWS x D elements exist, is copied without bounds
// checks.
template <int ROWS, int D, int STRIDE, int THREADS>
__device__ inline void copy_tile(float *tile, const float *matrix, int first, int rows, int d) {
    int row = threadIdx.x / (D / 4), col = threadIdx.x % (D / 4) * 4;
    if (d == D && first + ROWS <= rows) {
        matrix += (size_t)first * D + 4 * threadIdx.x;
#pragma unroll
        for (int r = 0; r < ROWS; r += 4 * THREADS / D)
            __pipeline_memcpy_async(tile + (row + r) * STRIDE + col, matrix + r * D, 16);
    } else {
        copy_tile_checked<ROWS, D, STRIDE, THREADS>(tile, matrix, first, rows, d);
    }
}

// sum += A B^T over DEPTH columns, one register tile (TM, TN) per thread. A points at the thread's first row; its TM
// rows are LANE_ROWS apart. B points at the thread's first row of B; its TN rows are LANE_COLS apart. Rows of both
// matrices are `stride` floats apart. For each four columns, TM + TN loads of 16 bytes feed 4 TM TN FMAs.
template <int DEPTH, int UNROLL, int TM, int TN>
__device__ __forceinline__ void multiply_rows(float (&sum)[TM][TN], const float *A, const float *B, int stride) {
#pragma unroll UNROLL
    for (int c = 0; c < DEPTH; c += 4) {
        float A_reg[TM][4];
#pragma unroll
        for (int i = 0; i < TM; i++) load4(A_reg[i], A + LANE_ROWS * i * stride + c);
#pragma unroll
        for (int j = 0; j < TN; j++) {
            float B_reg[4];
            load4(B_reg, B + LANE_COLS * j * stride + c);
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int k = 0; k < 4; k++) sum[i][j] += A_reg[i][k] * B_reg[k];
        }
    }
}

// sum += A B, where A has DEPTH columns and B has DEPTH rows, one register tile (TM, TC) per thread. A points at the
// thread's first row; its TM rows are LANE_ROWS apart. B points at the thread's first column; its TC columns are
// groups of 4, 4 LANE_COLS apart. For each four columns of A, TM loads of A and TC loads of B, of 16 bytes, feed 4
// TM TC FMAs. The columns are visited forwards in even rows and backwards in odd rows, so that each FMA shares a
// factor with the FMA before it.
template <int DEPTH, int UNROLL, int TM, int TC>
__device__ __forceinline__ void multiply_columns(float (&sum)[TM][TC], const float *A, int A_stride, const float *B,
                                                 int B_stride) {
    static_assert(TC % 4 == 0, "a load of B brings 4 columns");
#pragma unroll UNROLL
    for (int c = 0; c < DEPTH; c += 4) {
        float A_reg[TM][4], B_reg[4][TC];
#pragma unroll
        for (int i = 0; i < TM; i++) load4(A_reg[i], A + LANE_ROWS * i * A_stride + c);
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
            for (int t = 0; t < TC / 4; t++) load4(B_reg[k] + 4 * t, B + (c + k) * B_stride + 4 * LANE_COLS * t);
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TC; j++) {
                    int back = i % 2 == 0 ? j : TC - 1 - j;
                    sum[i][back] += A_reg[i][k] * B_reg[k][back];
                }
    }
}

// Store x[0..3] to columns col to col + 3 of one row of a (rows, d) matrix: one store of 16 bytes where d is a
// multiple of 4. Columns past d are left out.
__device__ inline void store_columns(float *row, int col, int d, const float *x) {
    if (d % 4 == 0) {
        if (col < d) *(float4 *)(row + col) = make_float4(x[0], x[1], x[2], x[3]);
    } else {
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (col + k < d) row[col + k] = x[k];
    }
}

// ---- 09_fa2_bwd_warps: let every pointer begin at the rows of one head.
__device__ inline void select_head(tensors &t, const float *&L2, const float *&D, const problem &p, size_t head) {
    size_t queries = head * p.N_q, keys = head * p.N_kv;
    t.Q += queries * p.d;
    t.K += keys * p.d;
    t.V += keys * p.d;
    t.dO += queries * p.d;
    t.dQ += queries * p.d;
    t.dK += keys * p.d;
    t.dV += keys * p.d;
    L2 += queries;
    D += queries;
}

// sum += A^T B, where A and B have ROWS rows, one register tile (KN, KC) per thread. A points at the thread's first
// column of A; its KN columns are groups of 4, 4 LANE_ROWS apart. B points at the thread's first column of B; its KC
// columns are groups of 4, 4 LANE_COLS apart. Per row, (KN + KC) / 4 loads of 16 bytes feed KN KC FMAs. The columns of
// A are visited forwards and backwards in turn, so that each FMA shares a factor with the FMA before it.
template <int ROWS, int UNROLL, int KN, int KC>
__device__ __forceinline__ void multiply_transposed(float (&sum)[KN][KC], const float *A, int A_stride, const float *B,
                                                    int B_stride) {
    static_assert(KN % 4 == 0 && KC % 4 == 0, "a load brings 4 columns");
#pragma unroll UNROLL
    for (int r = 0; r < ROWS; r++) {
        float A_reg[KN], B_reg[KC];
#pragma unroll
        for (int n = 0; n < KN / 4; n++) load4(A_reg + 4 * n, A + r * A_stride + 4 * LANE_ROWS * n);
#pragma unroll
        for (int t = 0; t < KC / 4; t++) load4(B_reg + 4 * t, B + r * B_stride + 4 * LANE_COLS * t);
#pragma unroll
        for (int j = 0; j < KC; j++)
#pragma unroll
            for (int i = 0; i < KN; i++) {
                int back = j % 2 == 0 ? i : KN - 1 - i;
                sum[back][j] += A_reg[back] * B_reg[j];
            }
    }
}

// Add x[0..3] to columns col to col + 3 of one row of a (rows, d) matrix: one request of 16 bytes where d is a multiple
// of 4. Columns past d are left out.
__device__ inline void add_columns(float *row, int col, int d, const float *x) {
    if (d % 4 == 0) {
        if (col < d) reduce_add4(row + col, make_float4(x[0], x[1], x[2], x[3]));
    } else {
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (col + k < d) atomicAdd(row + col + k, x[k]);
    }
}

#endif
