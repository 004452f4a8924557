// All variants of the backward pass: rungs 15a to 15f together.
//
// Template switches where an idea costs instructions in the inner loop, or registers in it: changed scores (15b), dropout (15e), and one
// for windows (15a), grouped heads (15c), packed sequences (15d) and rotary embedding (15f), told apart when the program runs.
#ifndef BACKWARD_ALL_CUH
#define BACKWARD_ALL_CUH

#include "attention.h"

#include "backward.cuh"
#include "packed.cuh"
#include "rotary_bwd.cuh"
#include "scores.cuh"
#include "transposed_all.cuh"
#include "variants.cuh"
#include "window_bwd.cuh"

namespace bwd {

// D = rowsum(dO o O) and L2 = L log2(e), +inf for a row that attends to no key: its P is 2^(S - inf) = 0. D_MAX / 8 threads
// per row, padded rows of each sequence too; zeroes dQ_sum. Stores the rotated Q.
template <class T, int D_MAX>
static __global__ void preprocess(const T *O, const T *dO, // (heads, N_q, d)
                                  const float *L,          // (heads, N_q)
                                  const T *Q, T *rotated,  // (heads, N_q, d)
                                  const float2 *table,     // (positions, d / 2)
                                  float *L2, float *D,     // (heads, padded)
                                  float *dQ_sum,           // (heads, padded, D_MAX)
                                  int padded, problem p) {
    rows_of of = own_sequence(p);
    int row = own_block(p) * blockDim.y + threadIdx.y, col = threadIdx.x * 8;
    if (row >= (of.N_q + ROW_PAD - 1) / ROW_PAD * ROW_PAD) return; // the whole block: another sequence is longer
    size_t head = blockIdx.y, in = head * p.N_q + of.first + row, out = head * padded + padded_first(p, of) + row;
    float sum = 0.0f;
    if (row < of.N_q && col < p.d) {
        uint4 x = *(const uint4 *)(O + in * p.d + col), y = *(const uint4 *)(dO + in * p.d + col);
        const T *a = (const T *)&x, *b = (const T *)&y;
#pragma unroll
        for (int i = 0; i < 8; i++) sum += (float)a[i] * (float)b[i];
        uint4 *to = (uint4 *)(rotated + in * p.d + col);
        if (p.rotary) *to = rotated_chunk(Q + in * p.d, col, turns_at(table, p, row + of.N_kv - of.N_q), p);
    }
    float4 *zero = (float4 *)(dQ_sum + out * D_MAX);
    zero[threadIdx.x] = zero[threadIdx.x + D_MAX / 8] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int bit = D_MAX / 16; bit > 0; bit /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, bit);
    if (threadIdx.x != 0) return;
    D[out] = sum;
    L2[out] = row < of.N_q && L[in] != -INFINITY ? L[in] * LOG2_E : INFINITY;
}

// dQ = scale dQ_sum turned back, from the order of fragments to rows. One thread: rows g and g + 8 of a fragment, 8 columns.
template <class T, int D>
static __global__ void postprocess(const float *dQ_sum, const float2 *table, T *dQ, int padded, problem p) {
    rows_of of = own_sequence(p);
    int pair = own_block(p) * blockDim.y + threadIdx.y, col = threadIdx.x * 8;
    int row = pair / 8 * 16 + pair % 8;
    if (row >= of.N_q || col >= p.d) return;
    size_t head = blockIdx.y, in = head * padded + padded_first(p, of) + row / 16 * 16;
    const float4 *from = (const float4 *)(dQ_sum + in * D + threadIdx.x * 128) + pair % 8 * 4;
    uint32_t upper[4], lower[4];
#pragma unroll
    for (int t = 0; t < 4; t++) {
        float4 c = from[t];
        upper[t] = pack<T>(c.x * p.scale, c.y * p.scale);
        lower[t] = pack<T>(c.z * p.scale, c.w * p.scale);
    }
    if (p.rotary) {
        int position = row + of.N_kv - of.N_q, last = of.N_kv - 1;
        turned_back<T>(upper, lower, (const float *)from - threadIdx.x * 128, col,
                       make_int2(position, min(position + 8, last)), table, p);
    }
    T *to = dQ + (head * p.N_q + of.first + row) * p.d + col;
    *(uint4 *)to = make_uint4(upper[0], upper[1], upper[2], upper[3]);
    if (row + 8 < of.N_q) *(uint4 *)(to + (size_t)8 * p.d) = make_uint4(lower[0], lower[1], lower[2], lower[3]);
}

// dK and dV of one tile of keys; adds to dQ_sum. The products with P and dS of the previous
// tile are computed beside S and dP of this one.
template <class T, class C, int MORE>
static __global__ __launch_bounds__(C::THREADS) void backward_keys(
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
    constexpr int Br = C::Br, Bc = C::Bc;
    extern __shared__ uint4 smem[];
    T *K_smem = (T *)smem, *V_smem = K_smem + Bc * C::D;                           // (Bc, D)
    T *Q_smem = V_smem + Bc * C::D, *dO_smem = Q_smem + 3 * Br * C::D;             // (3, Br, D)
    T *P_smem = dO_smem + 3 * Br * C::D, *dS_smem = P_smem + 2 * Br * Bc;          // (2, Br, Bc)
    float *L2_smem = (float *)(dS_smem + 2 * Br * Bc), *D_smem = L2_smem + 3 * Br; // (3, Br)
    __mbarrier_t *barriers = (__mbarrier_t *)(D_smem + 3 * Br);
    split_barrier loaded{barriers}, stored{barriers + 1}, read{barriers + 2};
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    // The first row and column of this warp in S and dP, in dV and dK, and in dQ.
    int s_row = warp / (Bc / C::S_KEYS) * C::S_ROWS, s_key = warp % (Bc / C::S_KEYS) * C::S_KEYS;
    int k_key = warp / (C::D / C::K_COLS) * C::K_KEYS, k_col = warp % (C::D / C::K_COLS) * C::K_COLS;
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
        size_t first = (size_t)(h * p.N_q) * p.d;
        copy_rows<Br, C::D, C::THREADS>(Q_smem + stage * Br * C::D, Q + first, row0, of.N_q, p.d);
        copy_rows<Br, C::D, C::THREADS>(dO_smem + stage * Br * C::D, dO + first, row0, of.N_q, p.d);
        int i = threadIdx.x * 4;
        row0 += h * padded; // of L2 and D; copy_L2_and_D() is another machine code here
        if (i < Br)
            __pipeline_memcpy_async(L2_smem + stage * Br + i, L2 + row0 + i, 16);
        else if (i < 2 * Br)
            __pipeline_memcpy_async(D_smem + stage * Br + i - Br, D + row0 + i - Br, 16);
        __pipeline_commit();
    };

    float dV_reg[C::K_KEYS / 16][C::K_COLS / 8][4] = {}, dK_reg[C::K_KEYS / 16][C::K_COLS / 8][4] = {};
    auto add_products = [&](int row0, int stage, const T *P_tile, const T *dS_tile) { // to dV, dK and dQ
        multiply<true, Bc, true, C::D, Br>(dV_reg, P_tile, k_key, dO_smem + stage * Br * C::D, k_col);
        multiply<true, Bc, true, C::D, Br>(dK_reg, dS_tile, k_key, Q_smem + stage * Br * C::D, k_col);
        float dQ_reg[C::Q_ROWS / 16][C::Q_COLS / 8][4] = {};
        multiply<false, Bc, true, C::D, Bc>(dQ_reg, dS_tile, q_row, K_smem, q_col);
        read.arrive();
        add_dQ<C::D>(dQ_sum, dQ_reg, row0 + q_row, q_col);
    };
    int first_row = first_query(p, of, key0) / Br * Br,
        end_row = MORE & PLACES ? end_query(p, of, min(key0 + Bc, of.N_kv) - 1) : of.N_q;
    copy_rotated<Bc, C::D, C::THREADS>(K_smem, K, key0, of.N_kv, table, p);
    copy_rows<Bc, C::D, C::THREADS>(V_smem, V, key0, of.N_kv, p.d);
    __pipeline_commit();
    if (first_row < end_row) start_rows(0, first_row, 0);                   // other rows attend to none of these keys
    if (threadIdx.x < 3) __mbarrier_init(barriers + threadIdx.x, C::WARPS); // while the copies are under way
    __syncthreads();                                                        // the barriers are ready
    __pipeline_wait_prior(0);
    loaded.arrive();
    int tile = 0, stage = 0, previous_stage = 0, previous_row = 0;
    for (int h = 0, row0 = first_row; h < group && row0 < end_row; tile++) { // as in backward_transposed
        int next_h = row0 + Br < end_row ? h : h + 1, next_row = next_h == h ? row0 + Br : first_row;
        int next_stage = stage == 2 ? 0 : stage + 1;
        const T *Q_tile = Q_smem + stage * Br * C::D, *dO_tile = dO_smem + stage * Br * C::D;
        const float *L2_tile = L2_smem + stage * Br, *D_tile = D_smem + stage * Br;
        T *P_tile = P_smem + tile % 2 * Br * Bc, *dS_tile = dS_smem + tile % 2 * Br * Bc;

        float S[C::S_ROWS / 16][C::S_KEYS / 8][4] = {}, dP[C::S_ROWS / 16][C::S_KEYS / 8][4] = {};
        loaded.wait(tile); // all parts of this stage have arrived
        multiply<false, C::D, false, C::D, C::D>(S, Q_tile, s_row, K_smem, s_key);
        multiply<false, C::D, false, C::D, C::D>(dP, dO_tile, s_row, V_smem, s_key);
        if (tile > 1) read.wait(tile - 2); // no warp still reads the next stage, or the P and dS of tile - 2
        if (next_h < group) start_rows(next_h, next_row, next_stage);
        // The keys that all rows attend to: from the first key of the last row on, up to the last key of the first row.
        bool masked = key0 < first_key(p, of, row0 + Br - 1) || key0 + Bc > end_key(p, of, row0);
        size_t head = head0 + h;
        float slope = MORE & SCORES ? alibi_slope(p, head % p.heads) * LOG2_E : 0.0f;
#pragma unroll
        for (int i = 0; i < C::S_ROWS / 16; i++) {
            uint32_t kept = ~0u; // bit 16 half + 2 j + e, for the keys of 8 columns at j
            if constexpr (MORE & DROPS) {
#pragma unroll
                for (int j = 0; j < C::S_KEYS / 8; j += 2)
#pragma unroll
                    for (int e = 0; e < 2; e++) { // rows g and g + 8, keys 8 j and 8 (j + 1) + 2 t + e
                        int row = row0 + s_row + 16 * i + g, key = key0 + s_key + 8 * j + 2 * t + e;
                        uint4 word = dropout_words(p, row, key, head, sequence);
                        kept &= ~((word.x < threshold) << (2 * j + e) | (word.y < threshold) << (2 * j + 2 + e) |
                                  (word.z < threshold) << (16 + 2 * j + e) | (word.w < threshold) << (18 + 2 * j + e));
                    }
            }
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int row = s_row + 16 * i + 8 * half + g;
                float row_L2 = L2_tile[row], row_D = D_tile[row];
                uint32_t attends = masked ? keys_of<C::S_KEYS>(p, of, row0 + row, key0 + s_key + 2 * t) : ~0u;
#pragma unroll
                for (int j = 0; j < C::S_KEYS / 8; j++) {
                    float *s = &S[i][j][2 * half], *dp = &dP[i][j][2 * half], less0 = row_L2, less1 = row_L2;
                    int key = s_key + 8 * j + 2 * t;
                    bool keep0 = kept >> (16 * half + 2 * j) & 1, keep1 = kept >> (16 * half + 2 * j + 1) & 1;
                    if constexpr (MORE & DROPS)
                        dp[0] = keep0 ? dp[0] * kept_factor : 0.0f, dp[1] = keep1 ? dp[1] * kept_factor : 0.0f;
                    dp[0] -= row_D, dp[1] -= row_D;
                    if constexpr (MORE & SCORES) {
                        if (capped) dp[0] *= cap(s[0], cap_factor), dp[1] *= cap(s[1], cap_factor);
                        float ahead = key0 + key - (row0 + row + of.N_kv - of.N_q); // from the row's position
                        less0 += slope * fabsf(ahead), less1 += slope * fabsf(ahead + 1.0f);
                    }
                    float P0 = exp2_approx(s[0] * factor - less0), P1 = exp2_approx(s[1] * factor - less1);
                    if (masked) P0 = attends >> 8 * j & 1 ? P0 : 0.0f, P1 = attends >> (8 * j + 1) & 1 ? P1 : 0.0f;
                    int at = place<Bc>(row, key);
                    *(uint32_t *)(P_tile + at) =
                        MORE & DROPS ? pack<T>(keep0 ? P0 : 0.0f, keep1 ? P1 : 0.0f) : pack<T>(P0, P1);
                    *(uint32_t *)(dS_tile + at) = pack<T>(P0 * dp[0], P1 * dp[1]);
                }
            }
        }
        if (tile > 0) stored.wait(tile - 1); // P and dS of the previous tile are complete
        stored.arrive();
        __pipeline_wait_prior(0);
        loaded.arrive();
        int previous = (tile + 1) % 2 * Br * Bc;
        if (tile > 0) add_products(previous_row, previous_stage, P_smem + previous, dS_smem + previous);
        previous_stage = stage, stage = next_stage;
        previous_row = h * padded + row0, h = next_h, row0 = next_row;
    }
    if (tile > 0) {
        int previous = (tile + 1) % 2 * Br * Bc;
        stored.wait(tile - 1);
        add_products(previous_row, previous_stage, P_smem + previous, dS_smem + previous);
    }
    __syncthreads(); // no copy of V is under way where no query attends to these keys, and no warp still reads V
    store_pieces<C::D>(dV, V_smem, dV_reg, kept_factor, k_key, k_col, key0, of.N_kv, p.d);
    if (!p.rotary)
        store_pieces<C::D>(dK, V_smem, dK_reg, p.scale, k_key, k_col, key0, of.N_kv, p.d);
    else
        store_turned_back<Bc, C::D, C::THREADS>(dK, (float *)smem, dK_reg, p.scale, k_key, k_col, key0, of.N_kv, table,
                                                p);
}

// ---- on the host -------------------------------------------------------------------------------------------------------

static int padded_rows(const problem *p) {
    return (p->starts ? p->N_q / ROW_PAD + p->sequences : ceil_div(p->N_q, ROW_PAD)) * ROW_PAD;
}
static size_t workspace_bytes(const problem *p) { // dQ_sum, L2, D, the table and the rotated Q
    return sizeof(float) * p->batch * p->heads * padded_rows(p) * (size_t)((p->d <= 64 ? 64 : 128) + 2) +
           rotary_bytes(*p) + (p->rotary ? (size_t)2 * p->batch * p->heads * p->N_q * p->d : 0);
}

template <class T, class C, int MORE> static constexpr auto kernel_of() {
    if constexpr (C::TRANSPOSED)
        return backward_transposed<T, C, MORE>;
    else
        return backward_keys<T, C, MORE>;
}

template <class T, class C, int MORE>
static cudaError_t run(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    int heads = p->batch * p->heads, heads_kv = p->batch * kv_heads(p), padded = padded_rows(p);
    int sequences = p->starts ? p->sequences : 1, most_keys = p->starts ? p->longest : p->N_kv;
    int most_rows = ceil_div(p->starts ? p->longest : p->N_q, ROW_PAD) * ROW_PAD;
    float *dQ_sum = (float *)workspace, *L2 = dQ_sum + (size_t)heads * padded * C::D, *D = L2 + (size_t)heads * padded;
    float2 *table = (float2 *)(D + (size_t)heads * padded);
    T *rotated = (T *)((char *)table + rotary_bytes(*p));
    const T *Q = (const T *)t->Q, *K = (const T *)t->K, *V = (const T *)t->V, *dO = (const T *)t->dO;
    dim3 threads(C::D / 8, 2048 / C::D), blocks(most_rows / threads.y * sequences, heads);
    dim3 key_blocks(ceil_div(most_keys, C::Bc) * sequences, heads_kv);
    if (p->windowed && !p->starts) key_blocks = dim3(heads_kv, key_blocks.x);
    int entries = rotary_bytes(*p) / sizeof *table;
    cudaError_t error =
        p->rotary ? launch(fill_rotary_table, ceil_div(entries, 256), 256, 0, stream, table, *p) : cudaSuccess;
    if (error == cudaSuccess)
        error = launch(preprocess<T, C::D>, blocks, threads, 0, stream, (const T *)t->O, dO, t->L, Q, rotated, table,
                       L2, D, dQ_sum, padded, *p);
    if (p->rotary) Q = rotated;
    if (error == cudaSuccess)
        error = launch(kernel_of<T, C, MORE>(), key_blocks, C::THREADS, C::BYTES, stream, Q, K, V, dO, L2, D, dQ_sum,
                       (T *)t->dK, (T *)t->dV, table, padded, heads / heads_kv, *p);
    blocks.x /= 2; // one thread: two rows
    if (error == cudaSuccess)
        error = launch(postprocess<T, C::D>, blocks, threads, 0, stream, (const float *)dQ_sum, table, (T *)t->dQ,
                       padded, *p);
    return error;
}

// The larger tiles where a block may have that much shared memory; the kernel with the switches that the problem needs.
template <int D, class T> struct tilings {
    using large =
        std::conditional_t<D == 64, transposed_tiling<64, 64, 128, 4, 32, 2>, tiling<128, 64, 128, 8, 2, 4, 2>>;
    using small = std::conditional_t<D == 64, large, tiling<128, 32, 64, 4, 2, 2, 2>>;
    static_assert(small::BYTES <= LEAST_SHARED_BYTES_8_0, "fits on every card since 8.0");
    template <class C> static attention_pass *of(const problem *p) {
        if (p->softcap > 0.0f || p->alibi) return p->dropout > 0.0f ? run<T, C, ALL> : run<T, C, SCORES | PLACES>;
        if (p->dropout > 0.0f) return run<T, C, DROPS | PLACES>;
        return p->windowed || p->starts || p->rotary || kv_heads(p) < p->heads ? run<T, C, PLACES> : run<T, C, 0>;
    }
    static attention_pass *fitting(const problem *p) {
        return shared_memory_fits(large::BYTES) ? of<large>(p) : of<small>(p);
    }
};

static cudaError_t backward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    return dispatch(p, [&]<int D, class T>() { return tilings<D, T>::fitting(p)(p, t, workspace, stream); });
}

} // namespace bwd

#endif
