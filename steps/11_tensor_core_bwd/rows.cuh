// The kernels before and after the one that computes the gradients, from rung 11f on.
#ifndef ROWS_CUH
#define ROWS_CUH

#include "attention.h"

#include <math.h>

#include "tensor.cuh"

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
    L2[out] = row < p.N_q && L[in] != -INFINITY ? L[in] * LOG2_E : INFINITY;
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

#endif
