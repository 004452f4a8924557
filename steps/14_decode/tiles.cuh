// Tiles in shared memory and a row tile in registers: what the rungs of chapter 14 share. Most of it is chapter 10's.
#ifndef TILES_CUH
#define TILES_CUH

#include "device.cuh"
#include "tensor.cuh"

// The index of (row, col) in a tile: the XOR exchanges the row's groups of 8 columns.
template <int D> __device__ inline int place(int row, int col) { return row * D + (col ^ row % 8 * 8); }

// Start to copy rows [first, first + ROWS) of a (rows, d) matrix to a (ROWS, D) tile, 8 elements per cp.async. Elements past
// the last row or the last column become zeros. No commit, no wait.
template <int D, int ROWS, int THREADS, class T>
__device__ __forceinline__ void copy_rows(T *tile, const T *matrix, int first, int rows, int d) {
    constexpr int STEP = 8 * THREADS / D; // rows that all threads copy together
    static_assert(STEP % 8 == 0 && ROWS % STEP == 0,
                  "a thread's groups lie STEP rows apart, at one place in their rows");
    int row = threadIdx.x / (D / 8), col = threadIdx.x % (D / 8) * 8;
    T *to = tile + place<D>(row, col);
    const T *from = matrix + (size_t)(first + row) * d + col;
#pragma unroll
    for (int r = 0; r < ROWS; r += STEP, from += STEP * d) {
        bool inside = first + row + r < rows && col < d;
        __pipeline_memcpy_async(to + r * D, inside ? from : matrix, 16, inside ? 0 : 16);
    }
}

// The A fragments of 16 rows of a (rows, d) matrix, straight from global memory; zeros past the last row or column.
template <int D, class T>
__device__ __forceinline__ void load_A(uint32_t (&A)[D / 16][4], const T *matrix, int rows, int d) {
    int row = threadIdx.x % WARP / 4, col = threadIdx.x % 4 * 2;
#pragma unroll
    for (int k = 0; k < D / 16; k++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int r = row + i % 2 * 8, c = col + i / 2 * 8 + 16 * k;
            A[k][i] = r < rows && c < d ? *(const uint32_t *)(matrix + (size_t)r * d + c) : 0;
        }
}

// The online softmax of one row tile and 8 NS keys, the first of which is my_key for this lane. Row i of this lane
// attends to the keys before limit[i]. S becomes P; O, m and l are brought up to date, m in units of log 2, l of this
// lane's keys only. While a row has no key its weights are 1: 2^(NONE - m) = 0 removes them when the first key comes.
template <int NS, int NO>
__device__ __forceinline__ void softmax(float (&S)[NS][4], float (&O)[NO][4], float (&m)[2], float (&l)[2],
                                        float factor, const int (&limit)[2], int my_key) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float m_new = m[i];
#pragma unroll
        for (int n = 0; n < NS; n++)
#pragma unroll
            for (int e = 2 * i; e < 2 * i + 2; e++) {
                S[n][e] = my_key + 8 * n + e % 2 < limit[i] ? S[n][e] * factor : NONE;
                m_new = fmaxf(m_new, S[n][e]);
            }
        m_new = quad_max(m_new);
        float rescale = exp2_approx(m[i] - m_new);
        m[i] = m_new;
        l[i] *= rescale;
#pragma unroll
        for (int n = 0; n < NS; n++)
#pragma unroll
            for (int e = 2 * i; e < 2 * i + 2; e++) {
                S[n][e] = exp2_approx(S[n][e] - m_new);
                l[i] += S[n][e];
            }
#pragma unroll
        for (int n = 0; n < NO; n++)
#pragma unroll
            for (int e = 2 * i; e < 2 * i + 2; e++) O[n][e] *= rescale;
    }
}

#endif
