/* The online softmax of 16 query rows per warp, for weights in e4m3. A lane holds its part of S, m and l as in tensor.cuh. */
#ifndef SOFTMAX8_CUH
#define SOFTMAX8_CUH

#include "fp8.cuh"
#include "mask.cuh"
#include "tensor.cuh"

/* P is 2^P_EXPONENT times as large as the weights: up to 256 of the 448 that e4m3 holds, so that weights down to 2^-14 are normal
 * numbers there. A row gets its new maximum at once: a slack as in chapter 12 would take P past 448. */
constexpr float P_EXPONENT = 8.0f;

/* S becomes P, not yet rounded, and m, the maximum of factor S, and l, the sum of P over this lane's keys, are brought up to date. O
 * must be multiplied by `rescale`. my_key: the key of S[0][0]; my_row: the row of S[0][0]. If `masked`, S is multiplied by the factor
 * before its maximum is found, since its sign may be negative and NONE must stay the least. */
template <int NS>
__device__ __forceinline__ void weights8(float (&S)[NS][4], float (&m)[2], float (&l)[2], float (&rescale)[2],
                                         float factor, const problem &p, bool masked, int my_key, int my_row) {
    float left = masked ? 1.0f : factor;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int attended = masked ? attended_keys(p, my_row + 8 * i) - my_key : 0; // of the keys from my_key on
        float highs[4] = {NONE, NONE, NONE, NONE}, sums[4] = {}; // four chains, since a thread waits for each link
#pragma unroll
        for (int n = 0; n < NS; n++)
#pragma unroll
            for (int e = 2 * i; e < 2 * i + 2; e++) {
                if (masked) S[n][e] = 8 * n + e % 2 < attended ? S[n][e] * factor : NONE;
                highs[n % 4] = fmaxf(highs[n % 4], S[n][e]);
            }
        float high = fmaxf(fmaxf(highs[0], highs[1]), fmaxf(highs[2], highs[3]));
        float m_new = fmaxf(m[i], quad_max(high) * left);
        rescale[i] = exp2_approx(m[i] - m_new);
        m[i] = m_new;
        l[i] *= rescale[i];
#pragma unroll
        for (int n = 0; n < NS; n++)
#pragma unroll
            for (int e = 2 * i; e < 2 * i + 2; e++) {
                S[n][e] = exp2_approx(S[n][e] * left - (m_new - P_EXPONENT));
                sums[n % 4] += S[n][e];
            }
        l[i] += (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
}

/* P rounded to e4m3 as A of the products with V, packed as it lies: position 4 t + i of 16 gets key 2 t + i % 2 + i / 2 * 8. */
template <int NS> __device__ __forceinline__ void round_P8(uint32_t (&P)[NS / 4][4], const float (&S)[NS][4]) {
#pragma unroll
    for (int k = 0; k < NS / 4; k++)
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const float *left = S[4 * k + r / 2 * 2] + r % 2 * 2, *right = S[4 * k + r / 2 * 2 + 1] + r % 2 * 2;
            P[k][r] = pack_e4m3(left[0], left[1], right[0], right[1]);
        }
}

#endif
