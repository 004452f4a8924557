// Windows in the backward pass: the order of the blocks, the mask of a row, and the end of a block that visits few tiles.
#ifndef WINDOW_BWD_CUH
#define WINDOW_BWD_CUH

#include "backward.cuh"
#include "variants.cuh"

namespace bwd {

// Under a window the heads are the grid's x and the tiles of at least 64 keys its y: so the blocks of the last keys start last.
inline const char *too_many_tiles(const problem *p) {
    return p->windowed && !p->starts && p->N_kv > 65535 * 64 ? "a window over more than 4194240 keys is not supported"
                                                             : nullptr;
}

// Bit n: whether the row attends to key `key` + n, for n < KEYS.
template <int KEYS> __device__ __forceinline__ uint32_t keys_of(const problem &p, const rows_of &of, int row, int key) {
    static_assert(KEYS <= 32, "a word has 32 bits");
    int first = first_key(p, of, row) - key, end = end_key(p, of, row) - key;
    return end <= 0 || first >= 32 ? 0 : ~0u << max(first, 0) & ~0u >> (32 - min(end, 32));
}

// As store_fragments(), in pieces of 16 bytes: a lane has 4 bytes of a row in a fragment. The fragments of one warp begin at (row, col)
// of the block's tile (ROWS, D), whose rows are those from `first` on. They pass through that part of `tile`, which no other warp uses.
template <int D, class T, int MT, int NT>
__device__ __forceinline__ void store_pieces(T *matrix, T *tile, const float (&C)[MT][NT][4], float factor, int row,
                                             int col, int first, int rows, int d) {
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4, c = col + lane % NT * 8;
    __syncwarp(); // all lanes have read what the previous call stored here
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int j = 0; j < NT; j++) {
                const float *x = &C[i][j][2 * half];
                int at = place<D>(row + 16 * i + 8 * half + g, col + 8 * j + 2 * t);
                *(uint32_t *)(tile + at) = pack<T>(x[0] * factor, x[1] * factor);
            }
    __syncwarp(); // the part is complete
#pragma unroll
    for (int r = row + lane / NT; r < row + 16 * MT; r += WARP / NT)
        if (first + r < rows && c < d)
            *(uint4 *)(matrix + (size_t)(first + r) * d + c) = *(const uint4 *)(tile + place<D>(r, c));
}

} // namespace bwd

#endif
