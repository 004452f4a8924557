// Rotary embedding: the table of cos and sin, and the rotation of 8 neighbouring columns of a row. Both passes use them.
//
// Pair c of the d / 2 pairs of a row at `position` turns by position * 10000^(-2 c / d):
//
//       x' = x cos - y sin        y' = y cos + x sin        with columns 2 c and 2 c + 1 (interleaved), or c and c + d / 2 (halved)
//
// A rotation's transpose turns back: the gradient of Q is that of the rotated Q, turned by the opposite angle (BACK below).
#ifndef ROTARY_CUH
#define ROTARY_CUH

#include <stdint.h>

#include "attention.h"
#include "tensor.cuh"

// The positions of all rows: keys stand at 0 to N_kv - 1, query i at i + N_kv - N_q, where the first may be negative. A packed
// sequence counts from 0, queries and keys alike.
__host__ __device__ inline int first_position(const problem &p) {
    return p.starts || p.N_kv > p.N_q ? 0 : p.N_kv - p.N_q;
}
__host__ __device__ inline int positions(const problem &p) {
    return p.starts ? p.longest : p.N_q > p.N_kv ? p.N_q : p.N_kv;
}

// The bytes of the table (positions, d / 2) of pairs cos, sin; a multiple of 16, 0 where nothing turns.
static inline size_t rotary_bytes(const problem &p) { return p.rotary ? sizeof(float) * positions(p) * p.d : 0; }

// The row of the table for one position: (d / 2).
__device__ inline const float2 *turns_at(const float2 *table, const problem &p, int position) {
    return table + (size_t)(position - first_position(p)) * (p.d / 2);
}

// One thread per pair. A float has 24 bits: an angle of 16384 radians would be wrong by 1e-3. So the angle is a double, in turns
// of which only the fraction counts; what is left for the float is below one turn.
static __global__ void fill_rotary_table(float2 *table, // (positions, d / 2)
                                         problem p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / (p.d / 2), c = i % (p.d / 2);
    if (row >= positions(p)) return;
    constexpr double LOG2_10000 = 13.287712379549449, TURNS_PER_RADIAN = 0.15915494309189535;
    double turns = (row + first_position(p)) * exp2(-2.0 * c / p.d * LOG2_10000) * TURNS_PER_RADIAN;
    float angle = 2.0f * (float)(turns - rint(turns)); // in half turns
    table[i] = make_float2(cospif(angle), sinpif(angle));
}

// x in column `col` after the turn; y: the other element of its pair.
template <bool BACK = false>
__device__ __forceinline__ float turned(const problem &p, float x, float y, int col, float2 turn) {
    bool second = p.rotary == problem::INTERLEAVED ? col % 2 : col >= p.d / 2;
    return x * turn.x + (second != BACK ? y : -y) * turn.y;
}

// The pair of a column, and the column of the pair's other element. Four columns from a multiple of 4 on have their others in four
// neighbouring columns, as d is a multiple of 8.
__device__ __forceinline__ int pair_of(const problem &p, int col) {
    return p.rotary == problem::INTERLEAVED ? col / 2 : col < p.d / 2 ? col : col - p.d / 2;
}
__device__ __forceinline__ int partner_of(const problem &p, int col) {
    return p.rotary == problem::INTERLEAVED ? col ^ 1 : col < p.d / 2 ? col + p.d / 2 : col - p.d / 2;
}

// Columns col to col + 7 of a row, rotated and rounded to 16 bits. col is a multiple of 8.
template <class T>
__device__ __forceinline__ uint4 rotated_chunk(const T *row,                 // (d)
                                               int col, const float2 *turns, // (d / 2), of the row's position
                                               const problem &p) {
    bool interleaved = p.rotary == problem::INTERLEAVED;
    uint4 chunk = *(const uint4 *)(row + col);
    const T *x = (const T *)&chunk;
    uint32_t rounded[4];
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
        uint2 partners = *(const uint2 *)(row + (interleaved ? col + i : partner_of(p, col + i)));
        const T *y = (const T *)&partners;
        const float4 *pairs = (const float4 *)(turns + pair_of(p, col + i)); // two pairs; four where halved
        float4 a = pairs[0], b = pairs[interleaved ? 0 : 1];
        float2 low = make_float2(a.x, a.y), high = make_float2(a.z, a.w);
        float2 turn[4] = {low, interleaved ? low : high, interleaved ? high : make_float2(b.x, b.y),
                          make_float2(b.z, b.w)};
        float z[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            z[j] = turned(p, (float)x[i + j], interleaved ? (float)y[j ^ 1] : (float)y[j], col + i + j, turn[j]);
        rounded[i / 2] = pack<T>(z[0], z[1]);
        rounded[i / 2 + 1] = pack<T>(z[2], z[3]);
    }
    return make_uint4(rounded[0], rounded[1], rounded[2], rounded[3]);
}

#endif
