/* V transposed in shared memory, by ldmatrix.trans, two byte permutes and stmatrix. */
#ifndef TRANSPOSE8_CUH
#define TRANSPOSE8_CUH

#include "device.cuh"
#include "tiles8.cuh"

/* Byte `column` of row `row` of a tile whose rows are SPAN bytes, in the swizzle of SPAN bytes. */
template <int SPAN> __device__ inline int swizzled(int row, int column) {
    int at = row * SPAN + column;
    return at ^ (at >> 7 & (SPAN / 16 - 1)) << 4;
}

/* V_t (D, Bc) = V (Bc, D), by a warpgroup. One turn of a warp takes 32 keys of 16 columns. ldmatrix.trans transposes pairs of bytes: lane
 * 4 g + t gets columns 2 g and 2 g + 1 of keys 2 t and 2 t + 1. Of the pairs from keys 0 to 7 and from keys 8 to 15, the lower bytes are
 * four keys of column 2 g, and the upper bytes those of column 2 g + 1: just the keys that P has at places 4 t to 4 t + 3. */
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
        stmatrix_x4(V_t + swizzled<Bc>(16 * i + 2 * row + matrix % 2, 32 * warp + matrix / 2 * 16), turned);
    }
}

#endif
