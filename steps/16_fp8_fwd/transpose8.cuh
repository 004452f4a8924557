/* V transposed in shared memory, by ldmatrix.trans, two byte permutes and stmatrix; and how O, whose columns have the order of V
 * transposed, is stored. */
#ifndef TRANSPOSE8_CUH
#define TRANSPOSE8_CUH

#include "device.cuh"
#include "softmax8.cuh"
#include "tiles8.cuh"

/* Byte `column` of row `row` of a tile whose rows are SPAN bytes, in the swizzle of SPAN bytes. */
template <int SPAN> __device__ inline int swizzled(int row, int column) {
    int at = row * SPAN + column;
    return at ^ (at >> 7 & (SPAN / 16 - 1)) << 4;
}

/* V_t (D, Bc) = V (Bc, D), by a warpgroup. One turn of a warp takes 32 keys of 16 columns. ldmatrix.trans transposes pairs of bytes: lane
 * 4 g + t gets columns 2 g and 2 g + 1 of keys 2 t and 2 t + 1. Of the pairs from keys 0 to 7 and from keys 8 to 15, the lower bytes are
 * four keys of column 2 g, and the upper bytes those of column 2 g + 1: just the keys that P has at places 4 t to 4 t + 3. Of the 16
 * columns the even ones become rows 0 to 7 of V_t, the odd ones rows 8 to 15: the eight rows of a matrix follow each other, and
 * stmatrix meets all banks. */
template <int D> __device__ __forceinline__ void transpose_tile(uint8_t *V_t, const uint8_t *V) {
    int warp = threadIdx.x / WARP % 4, lane = threadIdx.x % WARP, matrix = lane / 8, row = lane % 8;
#pragma unroll
    for (int i = 0; i < D / 16; i++) { // warp w: keys 32 w to 32 w + 31
        uint32_t pairs[4], turned[4];
        ldmatrix_x4_trans(pairs, V + swizzled<D>(32 * warp + 8 * matrix + row, 16 * i));
        for (int half = 0; half < 2; half++) { // of 16 keys
            turned[2 * half] = __byte_perm(pairs[2 * half], pairs[2 * half + 1], 0x6420);
            turned[2 * half + 1] = __byte_perm(pairs[2 * half], pairs[2 * half + 1], 0x7531);
        }
        stmatrix_x4(V_t + swizzled<Bc>(16 * i + 8 * (matrix % 2) + row, 32 * warp + matrix / 2 * 16), turned);
    }
}

/* store_rows() of tensor.cuh where V_t has its rows in this order: of 16 columns a lane has 4 t to 4 t + 3, t = lane % 4, the even ones in
 * one fragment and the odd ones in the next. d is a multiple of 16. O is multiplied by `scale`. */
template <int NO>
__device__ __forceinline__ void store_rows8(__nv_bfloat16 *O, float *L, const float (&O_reg)[NO][4],
                                            const float (&m)[2], const float (&l)[2], float scale, int my_row, int N_q,
                                            int d) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float sum = quad_sum(l[i]);
        int row = my_row + 8 * i;
        if (row >= N_q) continue;
        bool any = m[i] > NONE || isnan(sum); // the row attends to at least one key
        float inverse = any ? scale / sum : 0.0f;
        __nv_bfloat16 *to = O + (size_t)row * d + threadIdx.x % 4 * 4;
#pragma unroll
        for (int n = 0; n < NO; n += 2) {
            const float *even = O_reg[n] + 2 * i, *odd = O_reg[n + 1] + 2 * i;
            if (8 * n < d)
                *(uint2 *)(to + 8 * n) = {pack<__nv_bfloat16>(even[0] * inverse, odd[0] * inverse),
                                          pack<__nv_bfloat16>(even[1] * inverse, odd[1] * inverse)};
        }
        if (threadIdx.x % 4 == 0) L[row] = any ? (m[i] + log2f(sum)) * LN_2 : -INFINITY;
    }
}

#endif
