// Rotary embedding in the backward pass: K on its way in, dK on its way out.
#ifndef ROTARY_BWD_CUH
#define ROTARY_BWD_CUH

#include "backward.cuh"
#include "rotary.cuh"

namespace bwd {

// As copy_rows(), with the rows rotated where the problem says so: row r of the matrix stands at position r. They go through
// registers: that copy is not asynchronous.
template <int ROWS, int D, int THREADS, class T>
__device__ __forceinline__ void copy_rotated(T *tile, const T *matrix, int first, int rows, const float2 *table,
                                             const problem &p) {
    if (!p.rotary) return copy_rows<ROWS, D, THREADS>(tile, matrix, first, rows, p.d);
    int col = threadIdx.x % (D / 8) * 8;
#pragma unroll 1
    for (int r = threadIdx.x / (D / 8); r < ROWS; r += THREADS / (D / 8)) {
        uint4 chunk = make_uint4(0, 0, 0, 0);
        if (first + r < rows && col < p.d)
            chunk = rotated_chunk(matrix + (size_t)(first + r) * p.d, col, turns_at(table, p, first + r), p);
        *(uint4 *)(tile + place<D>(r, col)) = chunk;
    }
}

// As store_fragments(), with the rows turned back in fp32 where the problem says so. row, col: where this warp's fragments begin in the
// block's tile (ROWS, D), whose rows are those from key0 on. A row's pairs may lie in two warps: the tile goes through shared memory.
template <int ROWS, int D, int THREADS, class T, int MT, int NT>
__device__ __forceinline__ void store_turned_back(T *matrix, float *tile, const float (&C)[MT][NT][4], float factor,
                                                  int row, int col, int key0, int rows, const float2 *table,
                                                  const problem &p) {
    if (!p.rotary) return store_fragments(matrix, C, factor, key0 + row, col, rows, p.d);
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    __syncthreads(); // no warp still reads what lay in this memory
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int j = 0; j < NT; j++)
                *(float2 *)(tile + place<D>(row + 16 * i + 8 * half + g, col + 8 * j + 2 * t)) =
                    make_float2(C[i][j][2 * half] * factor, C[i][j][2 * half + 1] * factor);
    __syncthreads(); // the tile is complete
    int c = threadIdx.x % (D / 4) * 4;
    if (c >= p.d) return;
#pragma unroll 1
    for (int r = threadIdx.x / (D / 4); r < ROWS && key0 + r < rows; r += THREADS / (D / 4)) {
        float x[4], y[4];
        load4(x, tile + place<D>(r, c));
        load4(y, tile + place<D>(r, partners_of(p, c)));
        turn_four<true>(p, x, y, c, turns_at(table, p, key0 + r));
        *(uint2 *)(matrix + (size_t)(key0 + r) * p.d + c) = make_uint2(pack<T>(x[0], x[1]), pack<T>(x[2], x[3]));
    }
}

// Columns col to col + 7 of two rows of dQ, 8 rows apart, scaled, turned back and rounded. from: the upper row in its fragment.
// positions: of the two rows.
template <class T>
__device__ __forceinline__ void turned_back(uint32_t (&upper)[4], uint32_t (&lower)[4], const float *from, int col,
                                            const int2 &positions, const float2 *table, const problem &p) {
    auto load = [&](float(&above)[4], float(&below)[4], int c) { // columns c to c + 3 of both rows
        float4 left = *(const float4 *)(from + c / 8 * 128 + c % 8 * 2),
               right = *(const float4 *)(from + c / 8 * 128 + c % 8 * 2 + 4);
        above[0] = left.x * p.scale, above[1] = left.y * p.scale, above[2] = right.x * p.scale,
        above[3] = right.y * p.scale;
        below[0] = left.z * p.scale, below[1] = left.w * p.scale, below[2] = right.z * p.scale,
        below[3] = right.w * p.scale;
    };
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int c = col + 4 * i;
        float x0[4], x1[4], y0[4], y1[4];
        load(x0, x1, c);
        load(y0, y1, partners_of(p, c));
        turn_four<true>(p, x0, y0, c, turns_at(table, p, positions.x));
        turn_four<true>(p, x1, y1, c, turns_at(table, p, positions.y));
        upper[2 * i] = pack<T>(x0[0], x0[1]), upper[2 * i + 1] = pack<T>(x0[2], x0[3]);
        lower[2 * i] = pack<T>(x1[0], x1[1]), lower[2 * i + 1] = pack<T>(x1[2], x1[3]);
    }
}

} // namespace bwd

#endif
