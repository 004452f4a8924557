// What rungs 11f, 11g and the last one share, and chapter 15 with them: copies, products, sums and barriers of tiles.
#ifndef TILES_CUH
#define TILES_CUH

#include "attention.h"

#include <cuda_awbarrier_primitives.h>
#include <cuda_pipeline.h>

#include "ptx.cuh"
#include "tensor.cuh"

// The place of element (row, col) in a tile of COLS columns. The XOR with the row number permutes the chunks of 8 elements
// (16 bytes) of a row, so that one chunk of 8 neighbouring rows lies in 32 different banks. From the place of a column that
// is a multiple of n, n a power of 2, an XOR with less than n moves as many columns to the right.
template <int COLS> __device__ inline int place(int row, int col) {
    static_assert(COLS % 64 == 0, "a row is 8 chunks or a multiple");
    return row * COLS + (col ^ row % 8 * 8);
}

// Start to copy rows [first, first + ROWS) of a (rows, d) matrix to a swizzled tile (ROWS, D); past the ends, zeros. No barrier.
template <int ROWS, int D, int THREADS, class T>
__device__ __forceinline__ void copy_rows(T *tile, const T *matrix, int first, int rows, int d) {
    constexpr int STEP = THREADS / (D / 8);
    static_assert(ROWS % STEP == 0 && STEP % 8 == 0,
                  "the chunks of one thread lie in one column and are swizzled alike");
    int row = threadIdx.x / (D / 8), col = threadIdx.x % (D / 8) * 8;
    const T *from = matrix + (size_t)(first + row) * d + col;
    T *to = tile + place<D>(row, col);
#pragma unroll
    for (int r = 0; r < ROWS; r += STEP) {
        bool inside = first + row + r < rows && col < d;
        __pipeline_memcpy_async(to + r * D, inside ? from + (size_t)r * d : matrix, 16, inside ? 0 : 16);
    }
}

// Start to copy L2 and D of rows [row0, row0 + Br) of a head, four numbers per thread. No barrier.
template <int Br>
__device__ __forceinline__ void copy_L2_and_D(float *L2_tile, float *D_tile, const float *L2, const float *D,
                                              int row0) {
    int i = threadIdx.x * 4;
    if (i < Br)
        __pipeline_memcpy_async(L2_tile + i, L2 + row0 + i, 16);
    else if (i < 2 * Br)
        __pipeline_memcpy_async(D_tile + i - Br, D + row0 + i - Br, 16);
}

// Where this lane points for ldmatrix in a 16 x 16 piece at (row, col) of a tile. ACROSS: quadrants 0 and 1 are neighbours in
// a row, else in a column.
template <int COLS, bool ACROSS> __device__ __forceinline__ int lane_place(int row, int col) {
    int lane = threadIdx.x % WARP, low = lane % 8, first = lane / 8 % 2 * 8, second = lane / 16 * 8;
    return ACROSS ? place<COLS>(row + low + second, col + first) : place<COLS>(row + low + first, col + second);
}

// C (16 MT x 8 NT elements of one warp) += A B over K columns of A. A is stored (m, k), or with A_T (k, m), in rows of A_COLS
// elements; B is stored (n, k), or with B_T (k, n). The warp's part begins at row m0 of A and column n0 of B. The four
// registers of a piece are one A, or two B, in the order in which mma takes them (tensor.cuh).
template <bool A_T, int A_COLS, bool B_T, int B_COLS, int K, int MT, int NT, class T>
__device__ __forceinline__ void multiply(float (&C)[MT][NT][4], const T *A, int m0, const T *B, int n0) {
    int A_at = A_T ? lane_place<A_COLS, true>(0, m0) : lane_place<A_COLS, false>(m0, 0);
    int B_at = B_T ? lane_place<B_COLS, false>(0, n0) : lane_place<B_COLS, true>(n0, 0);
#pragma unroll
    for (int k = 0; k < K; k += 16) {
        uint32_t A_reg[MT][4];
#pragma unroll
        for (int i = 0; i < MT; i++) {
            if constexpr (A_T)
                ldmatrix_x4_trans(A_reg[i], A + (A_at ^ 16 * i) + k * A_COLS);
            else
                ldmatrix_x4(A_reg[i], A + (A_at ^ k) + 16 * i * A_COLS);
        }
#pragma unroll
        for (int j = 0; j < NT; j += 2) {
            uint32_t B_reg[4];
            if constexpr (B_T)
                ldmatrix_x4_trans(B_reg, B + (B_at ^ 8 * j) + k * B_COLS);
            else
                ldmatrix_x4(B_reg, B + (B_at ^ k) + 8 * j * B_COLS);
#pragma unroll
            for (int i = 0; i < MT; i++) {
                mma_m16n8k16<T>(C[i][j], A_reg[i], B_reg[0], B_reg[1]);
                mma_m16n8k16<T>(C[i][j + 1], A_reg[i], B_reg[2], B_reg[3]);
            }
        }
    }
}

// The same with an A in registers: A_reg[k] has 16 columns of A for each of the MT tiles of rows. B is stored (k, n).
template <int B_COLS, int K, int MT, int NT, class T>
__device__ __forceinline__ void multiply_registers(float (&C)[MT][NT][4], const uint32_t (&A_reg)[K][MT][4], const T *B,
                                                   int k0) {
    int B_at = lane_place<B_COLS, false>(k0, 0);
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
        for (int j = 0; j < NT; j += 2) {
            uint32_t B_reg[4];
            ldmatrix_x4_trans(B_reg, B + (B_at ^ 8 * j) + 16 * k * B_COLS);
#pragma unroll
            for (int i = 0; i < MT; i++) {
                mma_m16n8k16<T>(C[i][j], A_reg[k][i], B_reg[0], B_reg[1]);
                mma_m16n8k16<T>(C[i][j + 1], A_reg[k][i], B_reg[2], B_reg[3]);
            }
        }
}

// dQ_sum += the fragments of one warp, whose first row and column these are.
template <int D, int MT, int NT>
__device__ __forceinline__ void add_dQ(float *dQ_sum, const float (&dQ_reg)[MT][NT][4], int row, int col) {
    float *to = dQ_sum + (size_t)row * D + col * 16 + threadIdx.x % WARP * 4;
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < NT; j++) {
            const float(&x)[4] = dQ_reg[i][j];
            reduce_add4(to + i * 16 * D + j * 128, make_float4(x[0], x[1], x[2], x[3]));
        }
}

// The fragments of one warp, times `factor`, to rows of a (rows, d) matrix.
template <class T, int MT, int NT>
__device__ __forceinline__ void store_fragments(T *matrix, const float (&C)[MT][NT][4], float factor, int row, int col,
                                                int rows, int d) {
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int j = 0; j < NT; j++) {
                int r = row + 16 * i + 8 * half + g, c = col + 8 * j + 2 * t;
                const float *x = &C[i][j][2 * half];
                if (r < rows && c < d)
                    *(uint32_t *)(matrix + (size_t)r * d + c) = pack<T>(x[0] * factor, x[1] * factor);
            }
}

// A barrier in two halves, for the warps of a block: arrive() after the last access of a phase, wait() before the first
// access that depends on it. A warp that has arrived goes on with other work. Phases are numbered from 0.
struct split_barrier {
    __mbarrier_t *barrier;
    __device__ __forceinline__ void arrive() const {
        __syncwarp(); // all lanes' accesses come before
        if (threadIdx.x % WARP == 0) __mbarrier_arrive(barrier);
    }
    __device__ __forceinline__ void wait(int phase) const {
        while (!__mbarrier_test_wait_parity(barrier, phase % 2 != 0)) continue;
    }
};

#endif
