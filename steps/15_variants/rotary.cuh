// Rotary embedding: the table of cos and sin, and the rotation of 8 neighbouring columns of a row. Both passes use them.
//
// Pair c of the d / 2 pairs of a row at `position` turns by position * 10000^(-2 c / d):
//
//       x' = x cos - y sin        y' = y cos + x sin        with columns 2 c and 2 c + 1 (interleaved), or c and c + d / 2 (halved)
//
// The transpose of a rotation is the rotation by the opposite angle. So the gradient of Q is the gradient of the rotated Q, rotated
// by the opposite angle (BACK below).
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

// For four columns from col on, a multiple of 4: the first one's pair, and where the other elements of their pairs begin. Those are
// neighbours too, as d is a multiple of 8; where interleaved, they are the four themselves.
__device__ __forceinline__ int pair_of(const problem &p, int col) {
    return p.rotary == problem::INTERLEAVED ? col / 2 : col < p.d / 2 ? col : col - p.d / 2;
}
__device__ __forceinline__ int partners_of(const problem &p, int col) {
    return p.rotary == problem::INTERLEAVED ? col : col < p.d / 2 ? col + p.d / 2 : col - p.d / 2;
}

// x[0..3], columns col to col + 3 of a row, turned, or turned BACK. y: the columns from partners_of(col) on.
template <bool BACK>
__device__ __forceinline__ void turn_four(const problem &p, float (&x)[4], const float (&y)[4], int col,
                                          const float2 *turns) {     // (d / 2), of the row's position
    const float4 *pairs = (const float4 *)(turns + pair_of(p, col)); // each has two pairs
    float4 a = pairs[0];
    if (p.rotary == problem::INTERLEAVED) {
        float2 low = make_float2(x[0], x[1]), high = make_float2(x[2], x[3]);
        float sine0 = BACK ? -a.y : a.y, sine1 = BACK ? -a.w : a.w;
        x[0] = low.x * a.x - low.y * sine0, x[1] = low.y * a.x + low.x * sine0;
        x[2] = high.x * a.z - high.y * sine1, x[3] = high.y * a.z + high.x * sine1;
    } else {
        float4 b = pairs[1];
        float sign = (col < p.d / 2) != BACK ? -1.0f : 1.0f; // the first of a pair takes sin from the second
        x[0] = x[0] * a.x + sign * y[0] * a.y, x[1] = x[1] * a.z + sign * y[1] * a.w;
        x[2] = x[2] * b.x + sign * y[2] * b.y, x[3] = x[3] * b.z + sign * y[3] * b.w;
    }
}

// Columns col to col + 7 of a row, rotated and rounded to 16 bits. col is a multiple of 8.
template <class T>
__device__ __forceinline__ uint4 rotated_chunk(const T *row,                 // (d)
                                               int col, const float2 *turns, // (d / 2), of the row's position
                                               const problem &p) {
    uint32_t rounded[4];
#pragma unroll
    for (int i = 0; i < 8; i += 4) { // 8 bytes and their partners
        uint2 own = *(const uint2 *)(row + col + i), other = *(const uint2 *)(row + partners_of(p, col + i));
        const T *a = (const T *)&own, *b = (const T *)&other;
        float x[4] = {(float)a[0], (float)a[1], (float)a[2], (float)a[3]};
        float y[4] = {(float)b[0], (float)b[1], (float)b[2], (float)b[3]};
        turn_four<false>(p, x, y, col + i, turns);
        rounded[i / 2] = pack<T>(x[0], x[1]), rounded[i / 2 + 1] = pack<T>(x[2], x[3]);
    }
    return make_uint4(rounded[0], rounded[1], rounded[2], rounded[3]);
}

#endif
