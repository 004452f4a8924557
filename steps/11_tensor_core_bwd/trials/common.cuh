// What the forms share. The rest is rung 11e's, from which they begin: preprocess, postprocess, swizzle, copies, workspace.
#pragma once

#include "../11e_stages.cu"

#include <cuda_awbarrier_primitives.h>

// p with some bits of its address toggled: in a tile that begins at a multiple of 128 bytes, `columns` < 64 to the right
// (see place).
template <class T> __device__ __forceinline__ const T *toggled(const T *p, int columns) {
    return (const T *)((uintptr_t)p ^ (uintptr_t)(columns * sizeof(T)));
}

// multiply() of the chapter, over columns [k0, k1) of A only. Its XORs are on addresses instead of element numbers.
template <bool A_T, int A_COLS, bool B_T, int B_COLS, int K, int MT, int NT, class T>
__device__ __forceinline__ void multiply_columns(float (&C)[MT][NT][4], const T *A, int m0, const T *B, int n0,
                                                 int k0 = 0, int k1 = K) {
    const T *A_at = A + (A_T ? lane_place<A_COLS, true>(0, m0) : lane_place<A_COLS, false>(m0, 0));
    const T *B_at = B + (B_T ? lane_place<B_COLS, false>(0, n0) : lane_place<B_COLS, true>(n0, 0));
#pragma unroll
    for (int k = k0; k < k1; k += 16) {
        uint32_t A_reg[MT][4];
#pragma unroll
        for (int i = 0; i < MT; i++) {
            if constexpr (A_T)
                ldmatrix_x4_trans(A_reg[i], toggled(A_at, 16 * i) + k * A_COLS);
            else
                ldmatrix_x4(A_reg[i], toggled(A_at, k % 64) + 16 * i * A_COLS + k / 64 * 64);
        }
#pragma unroll
        for (int j = 0; j < NT; j += 2) {
            uint32_t B_reg[4];
            if constexpr (B_T)
                ldmatrix_x4_trans(B_reg, toggled(B_at, 8 * j) + k * B_COLS);
            else
                ldmatrix_x4(B_reg, toggled(B_at, k % 64) + 8 * j * B_COLS + k / 64 * 64);
#pragma unroll
            for (int i = 0; i < MT; i++) {
                mma_m16n8k16<T>(C[i][j], A_reg[i], B_reg[0], B_reg[1]);
                mma_m16n8k16<T>(C[i][j + 1], A_reg[i], B_reg[2], B_reg[3]);
            }
        }
    }
}

// The same with an A that is in registers already: A_reg[k / 16] has 16 columns of all MT tiles of rows.
template <bool B_T, int B_COLS, int KT, int MT, int NT, class T>
__device__ __forceinline__ void multiply_registers(float (&C)[MT][NT][4], const uint32_t (&A_reg)[KT][MT][4],
                                                   const T *B, int m0, int n0) {
    const T *B_at = B + (B_T ? lane_place<B_COLS, false>(m0, n0) : lane_place<B_COLS, true>(n0, m0));
#pragma unroll
    for (int k = 0; k < 16 * KT; k += 16)
#pragma unroll
        for (int j = 0; j < NT; j += 2) {
            uint32_t B_reg[4];
            if constexpr (B_T)
                ldmatrix_x4_trans(B_reg, toggled(B_at, 8 * j) + k * B_COLS);
            else
                ldmatrix_x4(B_reg, toggled(B_at, k % 64) + 8 * j * B_COLS + k / 64 * 64);
#pragma unroll
            for (int i = 0; i < MT; i++) {
                mma_m16n8k16<T>(C[i][j], A_reg[k / 16][i], B_reg[0], B_reg[1]);
                mma_m16n8k16<T>(C[i][j + 1], A_reg[k / 16][i], B_reg[2], B_reg[3]);
            }
        }
}

// All pieces of an A stored (m, k).
template <int A_COLS, int KT, int MT, class T>
__device__ __forceinline__ void load_A(uint32_t (&A_reg)[KT][MT][4], const T *A, int m0) {
    int A_at = lane_place<A_COLS, false>(m0, 0);
#pragma unroll
    for (int k = 0; k < KT; k++)
#pragma unroll
        for (int i = 0; i < MT; i++) ldmatrix_x4(A_reg[k][i], A + (A_at ^ 16 * k) + 16 * i * A_COLS);
}

// The C fragments of one warp, times `factor`, to a swizzled tile.
template <int D, class T, int MT, int NT>
__device__ __forceinline__ void fragments_to_tile(T *tile, const float (&C)[MT][NT][4], int row, int col,
                                                  float factor) {
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < NT; j++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                *(uint32_t *)(tile + place<D>(row + 16 * i + 8 * half + g, col + 8 * j + 2 * t)) =
                    pack<T>(C[i][j][2 * half] * factor, C[i][j][2 * half + 1] * factor);
}

// A swizzled tile (ROWS, D) to rows [first, ...) of a (rows, d) matrix, 16 bytes per thread.
template <int ROWS, int D, int THREADS, class T>
__device__ __forceinline__ void store_tile(T *matrix, const T *tile, int first, int rows, int d) {
    int row = threadIdx.x / (D / 8), col = threadIdx.x % (D / 8) * 8;
#pragma unroll
    for (int r = row; r < ROWS; r += THREADS / (D / 8))
        if (first + r < rows && col < d)
            *(uint4 *)(matrix + (size_t)(first + r) * d + col) = *(const uint4 *)(tile + place<D>(r, col));
}

// A barrier in two halves, for the warps of a block: arrive() after the last access of a phase, wait() before the first access
// that depends on it. A warp that has arrived goes on with other work. Phases are numbered from 0.
struct gate {
    __mbarrier_t *barrier;
    __device__ __forceinline__ void arrive() const {
        __syncwarp(); // all lanes' accesses come before
        if (threadIdx.x % WARP == 0) __mbarrier_arrive(barrier);
    }
    __device__ __forceinline__ void wait(int phase) const {
        while (!__mbarrier_test_wait_parity(barrier, phase & 1)) {
        }
    }
};

template <class T> __device__ __forceinline__ float2 unpack(uint32_t pair);
template <> __device__ __forceinline__ float2 unpack<__nv_bfloat16>(uint32_t pair) {
    return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}
template <> __device__ __forceinline__ float2 unpack<__half>(uint32_t pair) {
    return __half22float2(*(__half2 *)&pair);
}
