// All variants of chapter 11's kernel for d 64, which computes the scores with keys as rows.
#ifndef TRANSPOSED_ALL_CUH
#define TRANSPOSED_ALL_CUH

#include "attention.h"

#include "backward.cuh"
#include "packed.cuh"
#include "rotary_bwd.cuh"
#include "scores.cuh"
#include "variants.cuh"
#include "window_bwd.cuh"

namespace bwd {

// MORE below: softcap or ALiBi; dropout; windows, grouped heads, packed sequences or rotary embedding.
enum { SCORES = 1, DROPS = 2, PLACES = 4, ALL = SCORES | DROPS | PLACES };

// dK and dV of one tile of keys at d 64, from S^T = K Q^T: keys are rows, so the fragments of P^T and dS^T are the A of dV
// += P^T dO and dK += dS^T Q. One warp: KEYS keys and all queries of a tile, CHUNK of them at a time.
// Adds to dQ_sum: dQ of the previous tile beside the products of this one.
template <class T, class C, int MORE>
static __global__ __launch_bounds__(C::THREADS, 2) void backward_transposed(
    const T *Q, const T *K, const T *V, const T *dO, // (heads, N_q, d), (heads_kv, N_kv, d) twice, (heads, N_q, d)
    const float *L2, const float *D,                 // (heads, padded)
    float *dQ_sum,                                   // (heads, padded, C::D) in the order of fragments
    T *dK, T *dV,                                    // (heads_kv, N_kv, d)
    const float2 *table,                             // (positions, d / 2), of rotary embedding
    int padded, int group, problem p) {
    rows_of of = MORE & PLACES ? own_sequence(p) : rows_of{0, p.N_q, p.N_kv};
    if constexpr (!(MORE & PLACES)) group = 1, p.rotary = problem::NOT_ROTARY, p.windowed = false, p.starts = NULL;
    int sequence = MORE & PLACES ? blockIdx.x / blocks_of_one(p) : 0;
    bool heads_first = MORE & PLACES && p.windowed && !p.starts; // as in 15a
    int key0 = (heads_first ? blockIdx.y : MORE & PLACES ? own_block(p) : blockIdx.x) * C::Bc;
    if (MORE & PLACES && key0 >= of.N_kv) return; // another sequence is longer
    constexpr int Br = C::Br, Bc = C::Bc, MT = C::KEYS / 16, NT = C::CHUNK / 8;
    extern __shared__ uint4 smem[];
    T *K_smem = (T *)smem, *V_smem = K_smem + Bc * C::D;                           // (Bc, D)
    T *Q_smem = V_smem + Bc * C::D, *dO_smem = Q_smem + 2 * Br * C::D;             // (2, Br, D)
    T *dS_smem = dO_smem + 2 * Br * C::D;                                          // (2, Bc, Br)
    float *L2_smem = (float *)(dS_smem + 2 * Br * Bc), *D_smem = L2_smem + 2 * Br; // (2, Br)
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    int my_key = warp * C::KEYS;
    int q_row = warp / (C::D / C::Q_COLS) * C::Q_ROWS, q_col = warp % (C::D / C::Q_COLS) * C::Q_COLS;
    size_t head_kv = heads_first ? blockIdx.x : blockIdx.y, head0 = head_kv * group; // the first of the group
    size_t q_first = (head0 * p.N_q + of.first) * p.d, k_first = (head_kv * p.N_kv + of.first) * p.d;
    size_t own = head0 * padded + padded_first(p, of); // in L2, D and dQ_sum
    Q += q_first, dO += q_first, K += k_first, V += k_first, dK += k_first, dV += k_first;
    L2 += own, D += own, dQ_sum += own * C::D;
    bool capped = MORE & SCORES && p.softcap > 0.0f;
    float cap_factor = capped ? p.scale / largest_score(p) : 0.0f,
          factor = (capped ? largest_score(p) : p.scale) * LOG2_E;
    float kept_factor = MORE & DROPS ? 1.0f / (1.0f - p.dropout) : 1.0f;
    uint32_t threshold = MORE & DROPS ? dropout_threshold(p) : 0;

    auto start_rows = [&](int h, int row0, int stage) {
        size_t first = (size_t)h * p.N_q * p.d;
        copy_rows<Br, C::D, C::THREADS>(Q_smem + stage * Br * C::D, Q + first, row0, of.N_q, p.d);
        copy_rows<Br, C::D, C::THREADS>(dO_smem + stage * Br * C::D, dO + first, row0, of.N_q, p.d);
        copy_L2_and_D<Br>(L2_smem + stage * Br, D_smem + stage * Br, L2, D, h * padded + row0);
        __pipeline_commit();
    };
    auto finish_dQ = [&](size_t row0, const T *dS_tile) {
        float dQ_reg[C::Q_ROWS / 16][C::Q_COLS / 8][4] = {};
        multiply<true, Br, true, C::D, Bc>(dQ_reg, dS_tile, q_row, K_smem, q_col);
        add_dQ<C::D>(dQ_sum, dQ_reg, row0 + q_row, q_col);
    };

    float dV_reg[MT][C::D / 8][4] = {}, dK_reg[MT][C::D / 8][4] = {};
    int first_row = first_query(p, of, key0) / Br * Br,
        end_row = MORE & PLACES ? end_query(p, of, min(key0 + Bc, of.N_kv) - 1) : of.N_q;
    copy_rotated<Bc, C::D, C::THREADS>(K_smem, K, key0, of.N_kv, table, p);
    copy_rows<Bc, C::D, C::THREADS>(V_smem, V, key0, of.N_kv, p.d);
    __pipeline_commit();
    if (first_row < end_row) start_rows(0, first_row, 0); // other rows attend to none of these keys
    int stage = 0, previous_row = -1;
    // Head h of the group and its rows from row0 on; after its last tile the next head's first one.
    for (int h = 0, row0 = first_row; h < group && row0 < end_row; stage ^= 1) {
        int next_h = row0 + Br < end_row ? h : h + 1, next_row = next_h == h ? row0 + Br : first_row;
        __pipeline_wait_prior(0);
        __syncthreads(); // this stage has arrived, the previous dS is complete; no thread still reads the other stage or this dS
        if (next_h < group) start_rows(next_h, next_row, stage ^ 1);
        const T *Q_tile = Q_smem + stage * Br * C::D, *dO_tile = dO_smem + stage * Br * C::D;
        const float *L2_tile = L2_smem + stage * Br, *D_tile = D_smem + stage * Br;
        T *dS_tile = dS_smem + stage * Br * Bc;
        size_t head = head0 + h;
        float slope = MORE & SCORES ? alibi_slope(p, head % p.heads) * LOG2_E : 0.0f;
        // The keys that all rows attend to: from the first key of the last row on, up to the last key of the first row.
        bool masked = key0 < first_key(p, of, row0 + Br - 1) || key0 + Bc > end_key(p, of, row0);
#pragma unroll
        for (int chunk = 0; chunk < Br; chunk += C::CHUNK) {
            float S[MT][NT][4] = {}, dP[MT][NT][4] = {};
            multiply<false, C::D, false, C::D, C::D>(S, K_smem, my_key, Q_tile, chunk);
            multiply<false, C::D, false, C::D, C::D>(dP, V_smem, my_key, dO_tile, chunk);
            static_assert(4 * MT * NT <= 32);
            uint32_t kept = ~0u; // bit 4 (NT i + j) + e: whether the weight of S[i][j][e] is kept
            if constexpr (MORE & DROPS) {
#pragma unroll
                for (int i = 0; i < MT; i++)
#pragma unroll
                    for (int j = 0; j < NT; j += 2)
#pragma unroll
                        for (int e = 0; e < 2; e++) { // rows 8 j and 8 (j + 1) + 2 t + e, keys g and g + 8
                            int row = row0 + chunk + 8 * j + 2 * t + e, key = key0 + my_key + 16 * i + g;
                            uint4 word = dropout_words(p, row, key, head, sequence);
                            kept &= ~(((word.x < threshold) << e | (word.y < threshold) << (2 + e) |
                                       (word.z < threshold) << (4 + e) | (word.w < threshold) << (6 + e))
                                      << 4 * (NT * i + j));
                        }
            }
            // How far key my_key + g stands after the position of row chunk + 2 t.
            int shift = of.N_kv - of.N_q, ahead = key0 + my_key + g - (row0 + chunk + 2 * t + shift);
#pragma unroll
            for (int j = 0; j < NT; j++) {
                float2 row_L2 = *(const float2 *)(L2_tile + chunk + 8 * j + 2 * t);
                float2 row_D = *(const float2 *)(D_tile + chunk + 8 * j + 2 * t);
#pragma unroll
                for (int i = 0; i < MT; i++)
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        float less = e % 2 ? row_L2.y : row_L2.x;
                        if constexpr (MORE & DROPS)
                            dP[i][j][e] = kept >> (4 * (NT * i + j) + e) & 1 ? dP[i][j][e] * kept_factor : 0.0f;
                        if constexpr (MORE & (SCORES | DROPS)) dP[i][j][e] -= e % 2 ? row_D.y : row_D.x;
                        if constexpr (MORE & SCORES) {
                            if (capped) dP[i][j][e] *= cap(S[i][j][e], cap_factor);
                            less += slope * fabsf((float)ahead + (16 * i + e / 2 * 8 - 8 * j - e % 2));
                        }
                        S[i][j][e] = exp2_approx(S[i][j][e] * factor - less);
                    }
            }
            if (masked) { // first_key() and end_key() in fewer registers
                int low = p.windowed ? -p.left : -of.N_q - shift, keys = of.N_kv - (key0 + my_key + g);
                int high = p.causal ? 0 : p.windowed ? p.right : of.N_kv - shift;
#pragma unroll
                for (int j = 0; j < NT; j++)
#pragma unroll
                    for (int e = 0; e < 4; e++)
#pragma unroll
                        for (int i = 0; i < MT; i++) {
                            int below = 16 * i + e / 2 * 8, distance = ahead + below - 8 * j - e % 2;
                            bool attends = distance >= low && distance <= high && below < keys;
                            S[i][j][e] = attends ? S[i][j][e] : 0.0f;
                        }
            }
            uint32_t P_reg[NT / 2][MT][4], dS_reg[NT / 2][MT][4]; // A of dV and dK
#pragma unroll
            for (int j = 0; j < NT; j++) {
                float2 row_D = *(const float2 *)(D_tile + chunk + 8 * j + 2 * t);
#pragma unroll
                for (int i = 0; i < MT; i++)
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        if constexpr (MORE & (SCORES | DROPS))
                            dP[i][j][e] *= S[i][j][e]; // has D already
                        else
                            dP[i][j][e] = S[i][j][e] * (dP[i][j][e] - (e % 2 ? row_D.y : row_D.x));
                        if constexpr (MORE & DROPS) S[i][j][e] = kept >> (4 * (NT * i + j) + e) & 1 ? S[i][j][e] : 0.0f;
                    }
            }
#pragma unroll
            for (int j = 0; j < NT; j += 2)
#pragma unroll
                for (int i = 0; i < MT; i++) {
                    pack_A<T>(P_reg[j / 2][i], S[i][j], S[i][j + 1]);
                    pack_A<T>(dS_reg[j / 2][i], dP[i][j], dP[i][j + 1]);
#pragma unroll
                    for (int r = 0; r < 4; r++) {
                        int key = my_key + 16 * i + r % 2 * 8 + g, row = chunk + 8 * (j + r / 2) + 2 * t;
                        *(uint32_t *)(dS_tile + place<Br>(key, row)) = dS_reg[j / 2][i][r];
                    }
                }
            multiply_registers<C::D>(dV_reg, P_reg, dO_tile, chunk);
            multiply_registers<C::D>(dK_reg, dS_reg, Q_tile, chunk);
        }
        if (previous_row >= 0) finish_dQ(previous_row, dS_smem + (stage ^ 1) * Br * Bc);
        previous_row = h * padded + row0, h = next_h, row0 = next_row;
    }
    __pipeline_wait_prior(0); // no query attends to these keys: the copies of K and V are under way
    __syncthreads();          // the last dS is complete
    if (previous_row >= 0) finish_dQ(previous_row, dS_smem + (stage ^ 1) * Br * Bc);
    store_fragments(dV, dV_reg, kept_factor, key0 + my_key, 0, of.N_kv, p.d);
    store_turned_back<Bc, C::D, C::THREADS>(dK, (float *)smem, dK_reg, p.scale, my_key, 0, key0, of.N_kv, table, p);
}

} // namespace bwd

#endif
