/* Tensor cores with 16-bit elements: what chapters 10 and 11 share.
 *
 * mma.sync m16n8k16 computes C (16 x 8, fp32) += A (16 x 16) B (16 x 8) in one warp. Each lane holds parts of the
 * three matrices in registers: its fragments. With g = lane / 4 and t = lane % 4:
 *
 *       A: 4 registers, 2 elements each     B: 2 registers, 2 elements each     C: 4 registers, 1 float each
 *               k                                    n                                  n
 *             2t,2t+1  2t+8,2t+9                     g                               2t   2t+1
 *         g  [  A0   |   A2  ]             2t,2t+1  [ B0 ]                       g  [ C0 | C1 ]
 *       g+8  [  A1   |   A3  ]             2t+8,+9  [ B1 ]                     g+8  [ C2 | C3 ]
 *
 * A row of C lies in the 4 lanes of a quad (lanes with one g). Two neighbouring C tiles, their pairs rounded to 16
 * bits, are an A: A0 = C0 C1 and A1 = C2 C3 of the left tile, A2 and A3 of the right one.
 *
 * A 16 x 16 piece of a row-major matrix in shared memory is four 8 x 8 quadrants, one in each of four registers. The
 * piece's part in the product decides in which order, because the registers of a B must be neighbours:
 *
 *       A, and B from rows that are k                B from rows that are n
 *       (P V: a row of V is a key)                   (Q K^T: a row of K is a key)
 *                [ 0 | 2 ]                                    [ 0 | 1 ]
 *                [ 1 | 3 ]                                    [ 2 | 3 ]
 *
 * A piece for B serves two mma: registers 0 and 1 for the first 8 columns of C, 2 and 3 for the next 8. For P V each
 * quadrant is transposed, since a register of B holds two neighbours in k. */
#ifndef TENSOR_CUH
#define TENSOR_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <float.h>
#include <math.h>
#include <stdint.h>

#include "device.cuh"
#include "mask.cuh"

constexpr float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;

/* A masked score, and the maximum of no scores: finite, so that NONE - NONE is 0 and not NaN. */
constexpr float NONE = -FLT_MAX / 4;

/* Cards since compute capability 8.0 give a block 99 KiB of shared memory at least. */
constexpr size_t LEAST_SHARED_BYTES_8_0 = 99 * 1024;

/* Two floats rounded to nearest, ties to even, in one register: `low` in the lower half. */
template <class T> __device__ uint32_t pack(float low, float high);

template <> __device__ inline uint32_t pack<__nv_bfloat16>(float low, float high) {
    __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *(uint32_t *)&pair;
}

template <> __device__ inline uint32_t pack<__half>(float low, float high) {
    __half2 pair = __floats2half2_rn(low, high);
    return *(uint32_t *)&pair;
}

/* Two neighbouring C tiles as one A. */
template <class T>
__device__ __forceinline__ void pack_A(uint32_t (&A)[4], const float (&left)[4], const float (&right)[4]) {
    A[0] = pack<T>(left[0], left[1]);
    A[1] = pack<T>(left[2], left[3]);
    A[2] = pack<T>(right[0], right[1]);
    A[3] = pack<T>(right[2], right[3]);
}

/* The 16 x 16 piece of a row-major tile (.., D) whose first element is at `from`, one load per register; rows that
 * are k (order of A) or rows that are n. */
template <int D, class T> __device__ inline void gather_k(uint32_t (&piece)[4], const T *from) {
    from += threadIdx.x % WARP / 4 * D + threadIdx.x % 4 * 2;
    for (int i = 0; i < 4; i++) piece[i] = *(const uint32_t *)(from + i % 2 * 8 * D + i / 2 * 8);
}

template <int D, class T> __device__ inline void gather_n(uint32_t (&piece)[4], const T *from) {
    from += threadIdx.x % WARP / 4 * D + threadIdx.x % 4 * 2;
    for (int i = 0; i < 4; i++) piece[i] = *(const uint32_t *)(from + i / 2 * 8 * D + i % 2 * 8);
}

/* Rows that are k with each quadrant transposed. Two loads per register: its two elements come from two rows. */
template <int D, class T> __device__ inline void gather_k_trans(uint32_t (&piece)[4], const T *from) {
    const uint16_t *bits = (const uint16_t *)from + threadIdx.x % 4 * 2 * D + threadIdx.x % WARP / 4;
    for (int i = 0; i < 4; i++) {
        const uint16_t *pair = bits + i % 2 * 8 * D + i / 2 * 8;
        piece[i] = pair[0] | (uint32_t)pair[D] << 16;
    }
}

/* Reductions over a quad: the lanes that share rows of C. Every lane gets the result; all 32 lanes must call. */
__device__ inline float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(FULL_WARP, x, 1));
    return fmaxf(x, __shfl_xor_sync(FULL_WARP, x, 2));
}

__device__ inline float quad_sum(float x) {
    x += __shfl_xor_sync(FULL_WARP, x, 1);
    return x + __shfl_xor_sync(FULL_WARP, x, 2);
}

/* The online softmax (docs/math.md, eq. 15) of one row tile, 16 query rows, and 8 NS keys. This lane has elements 2 i
 * and 2 i + 1 of each C fragment in query row my_row + 8 i, i = 0 and 1; element 0 of S[0] belongs to key my_key. S
 * becomes P before normalisation; O, m and l are brought up to date. m: maximum of factor S, where exp(scale s) =
 * 2^(factor s). l: sum of P over this lane's keys only. masked: whether some row does not attend to some key. While a
 * row has no key, its weights are 1; the rescaling by 2^(NONE - m) = 0 removes them when the first key comes. All 32
 * lanes must call. */
template <int NS, int NO>
__device__ __forceinline__ void online_softmax(float (&S)[NS][4], float (&O)[NO][4], float (&m)[2], float (&l)[2],
                                               const problem &p, bool masked, int my_key, int my_row) {
    float factor = p.scale * LOG2_E;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int attended = masked ? attended_keys(p, my_row + 8 * i) - my_key : 0; // of the keys from my_key on
        float m_new = m[i];
#pragma unroll
        for (int n = 0; n < NS; n++)
#pragma unroll
            for (int e = 2 * i; e < 2 * i + 2; e++) {
                S[n][e] *= factor;
                if (masked && 8 * n + e % 2 >= attended) S[n][e] = NONE;
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

/* The epilogue of one row tile: normalise, round and store O (N_q, d), d a multiple of 8, and store L (N_q). my_row:
 * row 0 of this lane. */
template <class T, int NO>
__device__ __forceinline__ void store_rows(T *O, float *L, const float (&O_reg)[NO][4], const float (&m)[2],
                                           const float (&l)[2], int my_row, int N_q, int d) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float sum = quad_sum(l[i]);
        int row = my_row + 8 * i;
        if (row >= N_q) continue;
        bool any = m[i] > NONE || isnan(sum); // the row attends to at least one key
        float inverse = any ? 1.0f / sum : 0.0f;
        T *to = O + (size_t)row * d + threadIdx.x % 4 * 2;
#pragma unroll
        for (int n = 0; n < NO; n++)
            if (8 * n < d)
                *(uint32_t *)(to + 8 * n) = pack<T>(O_reg[n][2 * i] * inverse, O_reg[n][2 * i + 1] * inverse);
        if (threadIdx.x % 4 == 0) L[row] = any ? (m[i] + log2f(sum)) * LN_2 : -INFINITY;
    }
}

/* Call run.operator()<D, T>() with the tile width D, 64 or 128, and the element type T of a problem in 16 bits. */
template <class F> cudaError_t dispatch(const problem *p, F run) {
    if (p->dtype == BF16)
        return p->d <= 64 ? run.template operator()<64, __nv_bfloat16>()
                          : run.template operator()<128, __nv_bfloat16>();
    return p->d <= 64 ? run.template operator()<64, __half>() : run.template operator()<128, __half>();
}

#endif
