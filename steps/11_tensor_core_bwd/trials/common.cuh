// What all trials of chapter 11 share: the parts of the last rung (preprocess, postprocess, swizzle, copies, products) and
// options. A trial is a file that defines options and includes bwd.cuh.
#pragma once

#include "attention.h"

#include <cuda_awbarrier_primitives.h>
#include <cuda_pipeline.h>
#include <math.h>

#include "launch.h"
#include "mask.cuh"
#include "ptx.cuh"
#include "tensor.cuh"

#ifndef INTERIOR
#define INTERIOR 0
#endif
constexpr int ROW_PAD = 128; // dQ_sum, L2 and D have rows up to a multiple of this

// D = rowsum(dO o O) and L2 = L log2(e), +inf for a row that attends to no key: its P is 2^(S - inf) = 0. D_MAX / 8 threads
// per row, padded rows too; zeroes dQ_sum.
template <class T, int D_MAX>
static __global__ void preprocess(const T *O, const T *dO, // (heads, N_q, d)
                                  const float *L,          // (heads, N_q)
                                  float *L2, float *D,     // (heads, padded)
                                  float *dQ_sum,           // (heads, padded, D_MAX)
                                  int padded, problem p) {
    int row = blockIdx.x * blockDim.y + threadIdx.y, col = threadIdx.x * 8;
    size_t head = blockIdx.y, in = head * p.N_q + row, out = head * padded + row;
    float sum = 0.0f;
    if (row < p.N_q && col < p.d) {
        uint4 x = *(const uint4 *)(O + in * p.d + col), y = *(const uint4 *)(dO + in * p.d + col);
        const T *a = (const T *)&x, *b = (const T *)&y;
#pragma unroll
        for (int i = 0; i < 8; i++) sum += (float)a[i] * (float)b[i];
    }
    float4 *zero = (float4 *)(dQ_sum + out * D_MAX);
    zero[threadIdx.x] = zero[threadIdx.x + D_MAX / 8] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int bit = D_MAX / 16; bit > 0; bit /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, bit);
    if (threadIdx.x != 0) return;
    D[out] = sum;
    L2[out] = row < p.N_q && L[in] > -INFINITY ? L[in] * LOG2_E : INFINITY;
}

// dQ = scale dQ_sum, from the order of fragments to rows. One thread: rows g and g + 8 of a fragment, 8 columns.
template <class T, int D> static __global__ void postprocess(const float *dQ_sum, T *dQ, int padded, problem p) {
    int pair = blockIdx.x * blockDim.y + threadIdx.y, col = threadIdx.x * 8;
    int row = pair / 8 * 16 + pair % 8;
    size_t head = blockIdx.y;
    if (row >= p.N_q || col >= p.d) return;
    const float4 *from =
        (const float4 *)(dQ_sum + (head * padded + row / 16 * 16) * D + threadIdx.x * 128) + pair % 8 * 4;
    uint32_t upper[4], lower[4];
#pragma unroll
    for (int t = 0; t < 4; t++) {
        float4 c = from[t];
        upper[t] = pack<T>(c.x * p.scale, c.y * p.scale);
        lower[t] = pack<T>(c.z * p.scale, c.w * p.scale);
    }
    T *to = dQ + (head * p.N_q + row) * p.d + col;
    *(uint4 *)to = make_uint4(upper[0], upper[1], upper[2], upper[3]);
    if (row + 8 < p.N_q) *(uint4 *)(to + (size_t)8 * p.d) = make_uint4(lower[0], lower[1], lower[2], lower[3]);
}

// The place of element (row, col) in a tile of COLS columns. The XOR with the row number permutes the chunks of 8 elements
// (16 bytes) of a row, so that one chunk of 8 neighbouring rows lies in 32 different banks. From the place of a column that
// is a multiple of n, n a power of 2, an XOR with less than n moves as many columns to the right.
template <int COLS> __device__ inline int place(int row, int col) {
    static_assert(COLS % 64 == 0, "a row is 8 chunks or a multiple");
    return row * COLS + (col ^ row % 8 * 8);
}

// Start to copy rows [first, first + ROWS) of a (rows, d) matrix to a swizzled tile (ROWS, D); past the ends, zeros. No
// barrier.
template <int ROWS, int D, int THREADS, class T>
__device__ __forceinline__ void copy_rows(T *tile, const T *matrix, int first, int rows, int d) {
    constexpr int STEP = THREADS / (D / 8);
    static_assert(ROWS % STEP == 0 && STEP % 8 == 0,
                  "the chunks of one thread lie in one column and are swizzled alike");
    int row = threadIdx.x / (D / 8), col = threadIdx.x % (D / 8) * 8;
    const T *from = matrix + (size_t)(first + row) * d + col;
    T *to = tile + place<D>(row, col);
    if (INTERIOR && d == D && first + ROWS <= rows) { // interior tiles are copied without bounds checks
#pragma unroll
        for (int r = 0; r < ROWS; r += STEP) __pipeline_memcpy_async(to + r * D, from + r * D, 16);
        return;
    }
    [[maybe_unused]] constexpr int UNROLL = INTERIOR ? 1 : ROWS / STEP;
#pragma unroll UNROLL
    for (int r = 0; r < ROWS; r += STEP) {
        bool inside = first + row + r < rows && col < d;
        __pipeline_memcpy_async(to + r * D, inside ? from + (size_t)r * d : matrix, 16, inside ? 0 : 16);
    }
}

// Where this lane points for ldmatrix in a 16 x 16 piece at (row, col) of a tile. ACROSS: quadrants 0 and 1 are neighbours in
// a row, else in a column.
template <int COLS, bool ACROSS> __device__ __forceinline__ int lane_place(int row, int col) {
    int lane = threadIdx.x % WARP, low = lane % 8, first = lane / 8 % 2 * 8, second = lane / 16 * 8;
    return ACROSS ? place<COLS>(row + low + second, col + first) : place<COLS>(row + low + first, col + second);
}

// p with some bits of its address toggled: in a tile that begins at a multiple of 128 bytes, `columns` < 64 to the right
// (see place).
template <class T> __device__ __forceinline__ const T *toggled(const T *p, int columns) {
    return (const T *)((uintptr_t)p ^ (uintptr_t)(columns * sizeof(T)));
}

// C (16 MT x 8 NT elements of one warp) += A B over columns [k0, k1) of A. A is stored (m, k), or with A_T (k, m), in rows of
// A_COLS elements; B is stored (n, k), or with B_T (k, n). The warp's part begins at row m0 of A and column n0 of B. The four
// registers of a piece are one A, or two B, in the order in which mma takes them (tensor.cuh).
template <bool A_T, int A_COLS, bool B_T, int B_COLS, int K, int MT, int NT, class T>
__device__ __forceinline__ void multiply(float (&C)[MT][NT][4], const T *A, int m0, const T *B, int n0, int k0 = 0,
                                         int k1 = K) {
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

// dQ_sum += the C fragments of one warp, whose first row and column these are.
template <int D, int MT, int NT>
__device__ __forceinline__ void add_dQ(float *dQ_sum, const float (&C)[MT][NT][4], int row, int col) {
    float *to = dQ_sum + (size_t)row * D + col * 16 + threadIdx.x % WARP * 4;
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < NT; j++)
            reduce_add4(to + i * 16 * D + j * 128, make_float4(C[i][j][0], C[i][j][1], C[i][j][2], C[i][j][3]));
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

// The C fragments straight to a (rows, d) matrix, as in the last rung.
template <class T, int MT, int NT>
__device__ __forceinline__ void store_fragments(T *matrix, const float (&C)[MT][NT][4], int row, int col, float factor,
                                                int rows, int d) {
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int j = 0; j < NT; j++) {
                int r = row + 16 * i + 8 * half + g, c = col + 8 * j + 2 * t;
                if (r < rows && c < d)
                    *(uint32_t *)(matrix + (size_t)r * d + c) =
                        pack<T>(C[i][j][2 * half] * factor, C[i][j][2 * half + 1] * factor);
            }
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
#ifndef SIMT_HERE // the simulated device has no parity
        while (!__mbarrier_test_wait_parity(barrier, phase & 1)) {
        }
#else
        while (!__mbarrier_test_wait(barrier, phase)) {
        }
#endif
    }
};

template <class T> __device__ __forceinline__ float2 unpack(uint32_t pair);
template <> __device__ __forceinline__ float2 unpack<__nv_bfloat16>(uint32_t pair) {
    return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}
template <> __device__ __forceinline__ float2 unpack<__half>(uint32_t pair) {
    return __half22float2(*(__half2 *)&pair);
}
