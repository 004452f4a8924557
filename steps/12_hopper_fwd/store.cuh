/* The end of a query tile from 12e on: O by TMA. */
#ifndef STORE_CUH
#define STORE_CUH

#include "hopper.cuh"
#include "mask.cuh"
#include "tensor.cuh"

/* The 128 threads of a warpgroup normalise O, round it and write it to `tile`, the first of their 64 rows in panels of Br rows, as the
 * TMA will read it; they store L (N_q). A lane holds its part of O, m and l as in softmax.cuh, of the rows my_row and my_row + 8. */
template <int D, int Br, class T>
__device__ __forceinline__ void store_tile(T *tile, float *L, const float (&O)[D / 8][4], const float (&m)[2],
                                           const float (&l)[2], int my_row, int N_q) {
    int warp = threadIdx.x / WARP % 4, lane = threadIdx.x % WARP, row = warp * 16 + lane % 16;
    float inverse[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float sum = quad_sum(l[i]);
        bool any = m[i] > NONE || isnan(sum); // the row attends to at least one key
        inverse[i] = any ? 1.0f / sum : 0.0f;
        if (lane % 4 == 0 && my_row + 8 * i < N_q) L[my_row + 8 * i] = any ? (m[i] + log2f(sum)) * LN_2 : -INFINITY;
    }
    // 16 columns at a time: lanes 0 to 15 give the rows of the first 8, lanes 16 to 31 those of the others.
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
        uint32_t pieces[4];
        for (int i = 0; i < 4; i++) {
            const float *pair = O[n + i / 2] + i % 2 * 2;
            pieces[i] = pack<T>(pair[0] * inverse[i % 2], pair[1] * inverse[i % 2]);
        }
        int column = n * 8 % 64 + lane / 16 * 8;
        stmatrix_x4(tile + n / 8 * Br * 64 + row * 64 + (column ^ row % 8 * 8), pieces); // the 128-byte swizzle
    }
}

#endif
