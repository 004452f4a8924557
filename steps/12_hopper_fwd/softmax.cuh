/* The online softmax of 16 query rows per warp in three parts, so that a product can run between them. A lane holds its part of
 * S, O, m and l as in tensor.cuh: m is the maximum of factor S in units of log 2, l the sum over this lane's keys. As in the
 * last rung of chapter 10 a row keeps its m until the maximum has grown by SLACK. */
#ifndef SOFTMAX_CUH
#define SOFTMAX_CUH

#include "mask.cuh"
#include "tensor.cuh"

constexpr float SLACK = 8.0f; // in units of log 2: a weight may grow to 2^8 before its row gets a new maximum

/* First part: masks S and looks for new maxima. Where a row of the warp has one, m and l are brought up to date, O must be
 * multiplied by `rescale`, and the result is true for all lanes. my_key: the key of S[0][0]; my_row: the row of S[0][0]. If
 * `masked`, S is multiplied by the factor, too, since its sign may be negative and NONE must stay the least. */
template <int NS>
__device__ __forceinline__ bool new_maxima(float (&S)[NS][4], float (&m)[2], float (&l)[2], float (&rescale)[2],
                                           const problem &p, bool masked, int my_key, int my_row) {
    float factor = p.scale * LOG2_E, left = masked ? 1.0f : factor, high[2];
    // attended_keys() in fewer registers: row my_row + r attends to the keys before my_key + min(limit + r, all).
    int limit = my_row + 1 + (p.causal ? p.N_kv - p.N_q : p.N_kv) - my_key, all = p.N_kv - my_key;
    bool grows = false;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        high[i] = NONE;
#pragma unroll
        for (int n = 0; n < NS; n++)
#pragma unroll
            for (int e = 2 * i; e < 2 * i + 2; e++) {
                float &s = S[n][e];
                if (masked) s = 8 * n + e % 2 < min(limit + 8 * i, all) ? s * factor : NONE;
                high[i] = fmaxf(high[i], s);
            }
        grows |= high[i] * left - m[i] > SLACK;
    }
    if (!__any_sync(FULL_WARP, grows)) return false; // all lanes take one path: the quads' shuffles find their lanes
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float m_new = fmaxf(m[i], quad_max(high[i]) * left);
        rescale[i] = exp2_approx(m[i] - m_new);
        m[i] = m_new;
        l[i] *= rescale[i];
    }
    return true;
}

/* Second part: S becomes P = 2^(factor S - m), or 2^(S - m) if `masked`, and l grows by it, by two weights at a time: half as many
 * additions wait for each other, and half as many are rounded at the size of l. */
template <int NS>
__device__ __forceinline__ void weights(float (&S)[NS][4], const float (&m)[2], float (&l)[2], const problem &p,
                                        bool masked) {
    float left = masked ? 1.0f : p.scale * LOG2_E;
#pragma unroll
    for (int n = 0; n < NS; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float *s = S[n] + 2 * i; // two keys of row i
            for (int e = 0; e < 2; e++) s[e] = exp2_approx(s[e] * left - m[i]);
            l[i] += s[0] + s[1];
        }
}

/* Third part, after new_maxima() was true. */
template <int NO> __device__ __forceinline__ void rescale_rows(float (&O)[NO][4], const float (&rescale)[2]) {
#pragma unroll
    for (int n = 0; n < NO; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) O[n][e] *= rescale[e / 2];
}

/* P rounded to 16 bits, as A of the products with V. */
template <class T, int NS> __device__ __forceinline__ void round_P(uint32_t (&P)[NS / 2][4], const float (&S)[NS][4]) {
#pragma unroll
    for (int k = 0; k < NS / 2; k++) pack_A<T>(P[k], S[2 * k], S[2 * k + 1]);
}

#endif
