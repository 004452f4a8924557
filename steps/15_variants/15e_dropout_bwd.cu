// 15e_dropout_bwd: the mask of the forward pass, computed again.
//
// Idea      A weight's random word depends on its place alone, so the backward pass computes it again, as it does S and P. Kept
//           weights enter dV; dP of kept weights enters dS; D is what it was, because it is the row sum of dO o O.
// Costs     A Philox call of ten rounds per four scores.
// Limiter   Not known; README.md beside this file has the time of each part.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include "backward.cuh"
#include "rows.cuh"
#include "variants.cuh"
using namespace bwd;

// dK and dV of one tile of keys at d 64, from S^T = K Q^T: keys are rows, so the fragments of P^T and dS^T are the A of dV
// += P^T dO and dK += dS^T Q. One warp: KEYS keys and all queries of a tile, CHUNK of them at a time.
// Adds to dQ_sum: dQ of the previous tile beside the products of this one.
template <class T, class C, bool DROPS>
static __global__ __launch_bounds__(C::THREADS, 2) void backward_transposed(
    const T *Q, const T *K, const T *V, const T *dO, // (heads, N_q, d), (heads, N_kv, d) twice, (heads, N_q, d)
    const float *L2, const float *D,                 // (heads, padded)
    float *dQ_sum,                                   // (heads, padded, C::D) in the order of fragments
    T *dK, T *dV,                                    // (heads, N_kv, d)
    int padded, problem p) {
    constexpr int Br = C::Br, Bc = C::Bc, MT = C::KEYS / 16, NT = C::CHUNK / 8;
    extern __shared__ uint4 smem[];
    T *K_smem = (T *)smem, *V_smem = K_smem + Bc * C::D;                           // (Bc, D)
    T *Q_smem = V_smem + Bc * C::D, *dO_smem = Q_smem + 2 * Br * C::D;             // (2, Br, D)
    T *dS_smem = dO_smem + 2 * Br * C::D;                                          // (2, Bc, Br)
    float *L2_smem = (float *)(dS_smem + 2 * Br * Bc), *D_smem = L2_smem + 2 * Br; // (2, Br)
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    int my_key = warp * C::KEYS;
    int q_row = warp / (C::D / C::Q_COLS) * C::Q_ROWS, q_col = warp % (C::D / C::Q_COLS) * C::Q_COLS;
    size_t head = blockIdx.y;
    int key0 = blockIdx.x * Bc;
    Q += head * p.N_q * p.d, dO += head * p.N_q * p.d, K += head * p.N_kv * p.d, V += head * p.N_kv * p.d;
    dK += head * p.N_kv * p.d, dV += head * p.N_kv * p.d;
    L2 += head * padded, D += head * padded, dQ_sum += head * padded * C::D;
    float factor = p.scale * LOG2_E, kept_factor = DROPS ? 1.0f / (1.0f - p.dropout) : 1.0f;
    uint32_t threshold = dropout_threshold(p);

    auto start_rows = [&](int row0, int stage) {
        copy_rows<Br, C::D, C::THREADS>(Q_smem + stage * Br * C::D, Q, row0, p.N_q, p.d);
        copy_rows<Br, C::D, C::THREADS>(dO_smem + stage * Br * C::D, dO, row0, p.N_q, p.d);
        copy_L2_and_D<Br>(L2_smem + stage * Br, D_smem + stage * Br, L2, D, row0);
        __pipeline_commit();
    };
    auto finish_dQ = [&](int row0, const T *dS_tile) {
        float dQ_reg[C::Q_ROWS / 16][C::Q_COLS / 8][4] = {};
        multiply<true, Br, true, C::D, Bc>(dQ_reg, dS_tile, q_row, K_smem, q_col);
        add_dQ<C::D>(dQ_sum, dQ_reg, row0 + q_row, q_col);
    };

    float dV_reg[MT][C::D / 8][4] = {}, dK_reg[MT][C::D / 8][4] = {};
    int first_row = first_attending_query(p, key0) / Br * Br; // rows before it attend to none of these keys
    copy_rows<Bc, C::D, C::THREADS>(K_smem, K, key0, p.N_kv, p.d);
    copy_rows<Bc, C::D, C::THREADS>(V_smem, V, key0, p.N_kv, p.d);
    if (first_row < p.N_q) start_rows(first_row, 0);
    int stage = 0;
    for (int row0 = first_row; row0 < p.N_q; row0 += Br, stage ^= 1) {
        __pipeline_wait_prior(0);
        __syncthreads(); // this stage has arrived, the previous dS is complete; no thread still reads the other stage or this dS
        if (row0 + Br < p.N_q) start_rows(row0 + Br, stage ^ 1);
        const T *Q_tile = Q_smem + stage * Br * C::D, *dO_tile = dO_smem + stage * Br * C::D;
        const float *L2_tile = L2_smem + stage * Br, *D_tile = D_smem + stage * Br;
        T *dS_tile = dS_smem + stage * Br * Bc;
        bool masked = key0 + Bc > attended_keys(p, row0); // the tile's first row attends to the fewest keys
#pragma unroll
        for (int chunk = 0; chunk < Br; chunk += C::CHUNK) {
            float S[MT][NT][4] = {}, dP[MT][NT][4] = {};
            multiply<false, C::D, false, C::D, C::D>(S, K_smem, my_key, Q_tile, chunk);
            multiply<false, C::D, false, C::D, C::D>(dP, V_smem, my_key, dO_tile, chunk);
#pragma unroll
            for (int j = 0; j < NT; j++) {
                float2 row_L2 = *(const float2 *)(L2_tile + chunk + 8 * j + 2 * t);
#pragma unroll
                for (int i = 0; i < MT; i++)
#pragma unroll
                    for (int e = 0; e < 4; e++)
                        S[i][j][e] = exp2_approx(S[i][j][e] * factor - (e % 2 ? row_L2.y : row_L2.x));
            }
            if (masked) {
#pragma unroll
                for (int j = 0; j < NT; j++)
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        int row = chunk + 8 * j + 2 * t + e % 2, key = my_key + e / 2 * 8 + g;
                        int attended = attended_keys(p, row0 + row) - key0;
#pragma unroll
                        for (int i = 0; i < MT; i++) S[i][j][e] = key + 16 * i < attended ? S[i][j][e] : 0.0f;
                    }
            }
            static_assert(4 * MT * NT <= 32);
            uint32_t kept = DROPS ? 0 : ~0u; // bit 4 (NT i + j) + e: whether the weight of S[i][j][e] is kept
#pragma unroll
            for (int i = 0; i < MT && DROPS; i++)
#pragma unroll
                for (int j = 0; j < NT; j += 2)
#pragma unroll
                    for (int e = 0; e < 2; e++) { // rows 8 j and 8 (j + 1) + 2 t + e, keys g and g + 8
                        int row = row0 + chunk + 8 * j + 2 * t + e, key = key0 + my_key + 16 * i + g;
                        uint4 word = dropout_words(p, row, key, head, 0);
                        kept |= ((word.x >= threshold) << e | (word.y >= threshold) << (2 + e) |
                                 (word.z >= threshold) << (4 + e) | (word.w >= threshold) << (6 + e))
                                << 4 * (NT * i + j);
                    }
            uint32_t P_reg[NT / 2][MT][4], dS_reg[NT / 2][MT][4]; // A of dV and dK
#pragma unroll
            for (int j = 0; j < NT; j++) {
                float2 row_D = *(const float2 *)(D_tile + chunk + 8 * j + 2 * t);
#pragma unroll
                for (int i = 0; i < MT; i++)
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        bool keep = kept >> (4 * (NT * i + j) + e) & 1;
                        dP[i][j][e] =
                            S[i][j][e] * ((keep ? dP[i][j][e] * kept_factor : 0.0f) - (e % 2 ? row_D.y : row_D.x));
                        S[i][j][e] = keep ? S[i][j][e] : 0.0f;
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
        if (row0 > first_row) finish_dQ(row0 - Br, dS_smem + (stage ^ 1) * Br * Bc);
    }
    __pipeline_wait_prior(0); // no query attends to these keys: the copies of K and V are under way
    __syncthreads();          // the last dS is complete
    if (first_row < p.N_q) finish_dQ((p.N_q - 1) / Br * Br, dS_smem + (stage ^ 1) * Br * Bc);
    store_fragments(dV, dV_reg, kept_factor, key0 + my_key, 0, p.N_kv, p.d);
    store_fragments(dK, dK_reg, p.scale, key0 + my_key, 0, p.N_kv, p.d);
}

// dK and dV of one tile of keys; adds to dQ_sum. The products with P and dS of the previous
// tile are computed beside S and dP of this one.
template <class T, class C, bool DROPS>
static __global__ __launch_bounds__(C::THREADS) void backward_keys(
    const T *Q, const T *K, const T *V, const T *dO, // (heads, N_q, d), (heads, N_kv, d) twice, (heads, N_q, d)
    const float *L2, const float *D,                 // (heads, padded)
    float *dQ_sum,                                   // (heads, padded, C::D) in the order of fragments
    T *dK, T *dV,                                    // (heads, N_kv, d)
    int padded, problem p) {
    constexpr int Br = C::Br, Bc = C::Bc;
    extern __shared__ uint4 smem[];
    T *K_smem = (T *)smem, *V_smem = K_smem + Bc * C::D;                           // (Bc, D)
    T *Q_smem = V_smem + Bc * C::D, *dO_smem = Q_smem + 3 * Br * C::D;             // (3, Br, D)
    T *P_smem = dO_smem + 3 * Br * C::D, *dS_smem = P_smem + 2 * Br * Bc;          // (2, Br, Bc)
    float *L2_smem = (float *)(dS_smem + 2 * Br * Bc), *D_smem = L2_smem + 3 * Br; // (3, Br)
    __mbarrier_t *barriers = (__mbarrier_t *)(D_smem + 3 * Br);
    split_barrier loaded{barriers}, stored{barriers + 1}, read{barriers + 2};
    if (threadIdx.x < 3) __mbarrier_init(barriers + threadIdx.x, C::WARPS);
    __syncthreads(); // the barriers are ready
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    // The first row and column of this warp in S and dP, in dV and dK, and in dQ.
    int s_row = warp / (Bc / C::S_KEYS) * C::S_ROWS, s_key = warp % (Bc / C::S_KEYS) * C::S_KEYS;
    int k_key = warp / (C::D / C::K_COLS) * C::K_KEYS, k_col = warp % (C::D / C::K_COLS) * C::K_COLS;
    int q_row = warp / (C::D / C::Q_COLS) * C::Q_ROWS, q_col = warp % (C::D / C::Q_COLS) * C::Q_COLS;
    size_t head = blockIdx.y;
    int key0 = blockIdx.x * Bc;
    Q += head * p.N_q * p.d, dO += head * p.N_q * p.d, K += head * p.N_kv * p.d, V += head * p.N_kv * p.d;
    dK += head * p.N_kv * p.d, dV += head * p.N_kv * p.d;
    L2 += head * padded, D += head * padded, dQ_sum += head * padded * C::D;
    float factor = p.scale * LOG2_E, kept_factor = DROPS ? 1.0f / (1.0f - p.dropout) : 1.0f;
    uint32_t threshold = dropout_threshold(p);

    auto start_rows = [&](int row0, int stage) {
        copy_rows<Br, C::D, C::THREADS>(Q_smem + stage * Br * C::D, Q, row0, p.N_q, p.d);
        copy_rows<Br, C::D, C::THREADS>(dO_smem + stage * Br * C::D, dO, row0, p.N_q, p.d);
        copy_L2_and_D<Br>(L2_smem + stage * Br, D_smem + stage * Br, L2, D, row0);
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
    int first_row = first_attending_query(p, key0) / Br * Br; // rows before it attend to none of these keys
    copy_rows<Bc, C::D, C::THREADS>(K_smem, K, key0, p.N_kv, p.d);
    copy_rows<Bc, C::D, C::THREADS>(V_smem, V, key0, p.N_kv, p.d);
    if (first_row < p.N_q) start_rows(first_row, 0);
    __pipeline_wait_prior(0);
    loaded.arrive();
    int tile = 0, stage = 0, previous_stage = 0;
    for (int row0 = first_row; row0 < p.N_q; row0 += Br, tile++) {
        int next_stage = stage == 2 ? 0 : stage + 1;
        const T *Q_tile = Q_smem + stage * Br * C::D, *dO_tile = dO_smem + stage * Br * C::D;
        const float *L2_tile = L2_smem + stage * Br, *D_tile = D_smem + stage * Br;
        T *P_tile = P_smem + tile % 2 * Br * Bc, *dS_tile = dS_smem + tile % 2 * Br * Bc;

        float S[C::S_ROWS / 16][C::S_KEYS / 8][4] = {}, dP[C::S_ROWS / 16][C::S_KEYS / 8][4] = {};
        loaded.wait(tile); // all parts of this stage have arrived
        multiply<false, C::D, false, C::D, C::D>(S, Q_tile, s_row, K_smem, s_key);
        multiply<false, C::D, false, C::D, C::D>(dP, dO_tile, s_row, V_smem, s_key);
        if (tile > 1) read.wait(tile - 2); // no warp still reads the next stage, or the P and dS of tile - 2
        if (row0 + Br < p.N_q) start_rows(row0 + Br, next_stage);
        bool masked = key0 + Bc > attended_keys(p, row0); // the tile's first row attends to the fewest keys
#pragma unroll
        for (int i = 0; i < C::S_ROWS / 16; i++) {
            uint32_t kept = DROPS ? 0 : ~0u; // bit 16 half + 2 j + e, for the keys of 8 columns at j
#pragma unroll
            for (int j = 0; j < C::S_KEYS / 8 && DROPS; j += 2)
#pragma unroll
                for (int e = 0; e < 2; e++) { // rows g and g + 8, keys 8 j and 8 (j + 1) + 2 t + e
                    int row = row0 + s_row + 16 * i + g, key = key0 + s_key + 8 * j + 2 * t + e;
                    uint4 word = dropout_words(p, row, key, head, 0);
                    kept |= (word.x >= threshold) << (2 * j + e) | (word.y >= threshold) << (2 * j + 2 + e) |
                            (word.z >= threshold) << (16 + 2 * j + e) | (word.w >= threshold) << (18 + 2 * j + e);
                }
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int row = s_row + 16 * i + 8 * half + g;
                float row_L2 = L2_tile[row], row_D = D_tile[row];
                int attended = masked ? attended_keys(p, row0 + row) - key0 : Bc;
#pragma unroll
                for (int j = 0; j < C::S_KEYS / 8; j++) {
                    const float *s = &S[i][j][2 * half], *dp = &dP[i][j][2 * half];
                    int key = s_key + 8 * j + 2 * t;
                    float P0 = exp2_approx(s[0] * factor - row_L2), P1 = exp2_approx(s[1] * factor - row_L2);
                    if (masked) {
                        P0 = key < attended ? P0 : 0.0f;
                        P1 = key + 1 < attended ? P1 : 0.0f;
                    }
                    int at = place<Bc>(row, key);
                    bool keep0 = kept >> (16 * half + 2 * j) & 1, keep1 = kept >> (16 * half + 2 * j + 1) & 1;
                    float dP0 = keep0 ? dp[0] * kept_factor : 0.0f, dP1 = keep1 ? dp[1] * kept_factor : 0.0f;
                    *(uint32_t *)(P_tile + at) = pack<T>(keep0 ? P0 : 0.0f, keep1 ? P1 : 0.0f);
                    *(uint32_t *)(dS_tile + at) = pack<T>(P0 * (dP0 - row_D), P1 * (dP1 - row_D));
                }
            }
        }
        if (tile > 0) stored.wait(tile - 1); // P and dS of the previous tile are complete
        stored.arrive();
        __pipeline_wait_prior(0);
        loaded.arrive();
        int previous = (tile + 1) % 2 * Br * Bc;
        if (tile > 0) add_products(row0 - Br, previous_stage, P_smem + previous, dS_smem + previous);
        previous_stage = stage, stage = next_stage;
    }
    if (tile > 0) {
        int previous = (tile + 1) % 2 * Br * Bc;
        stored.wait(tile - 1);
        add_products(first_row + (tile - 1) * Br, previous_stage, P_smem + previous, dS_smem + previous);
    }
    store_fragments(dV, dV_reg, kept_factor, key0 + k_key, k_col, p.N_kv, p.d);
    store_fragments(dK, dK_reg, p.scale, key0 + k_key, k_col, p.N_kv, p.d);
}

// ---- on the host -------------------------------------------------------------------------------------------------------

static int padded_rows(const problem *p) { return ceil_div(p->N_q, ROW_PAD) * ROW_PAD; }
static size_t workspace_bytes(const problem *p) { // dQ_sum, L2 and D
    return sizeof(float) * p->batch * p->heads * padded_rows(p) * (size_t)((p->d <= 64 ? 64 : 128) + 2);
}

template <class T, class C, bool DROPS> static constexpr auto kernel_of() {
    if constexpr (C::TRANSPOSED)
        return backward_transposed<T, C, DROPS>;
    else
        return backward_keys<T, C, DROPS>;
}

template <class T, class C, bool DROPS>
static cudaError_t run(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    int heads = p->batch * p->heads, padded = padded_rows(p);
    float *dQ_sum = (float *)workspace, *L2 = dQ_sum + (size_t)heads * padded * C::D, *D = L2 + (size_t)heads * padded;
    const T *Q = (const T *)t->Q, *K = (const T *)t->K, *V = (const T *)t->V, *dO = (const T *)t->dO;
    dim3 threads(C::D / 8, 2048 / C::D), blocks(padded / threads.y, heads), key_blocks(ceil_div(p->N_kv, C::Bc), heads);
    cudaError_t error =
        launch(preprocess<T, C::D>, blocks, threads, 0, stream, (const T *)t->O, dO, t->L, L2, D, dQ_sum, padded, *p);
    if (error == cudaSuccess)
        error = launch(kernel_of<T, C, DROPS>(), key_blocks, C::THREADS, C::BYTES, stream, Q, K, V, dO, L2, D, dQ_sum,
                       (T *)t->dK, (T *)t->dV, padded, *p);
    blocks.x /= 2; // one thread: two rows
    if (error == cudaSuccess)
        error = launch(postprocess<T, C::D>, blocks, threads, 0, stream, (const float *)dQ_sum, (T *)t->dQ, padded, *p);
    return error;
}

// The larger tiles where a block may have that much shared memory; for the plain problem the plain kernel.
template <int D, class T> struct tilings {
    using large =
        std::conditional_t<D == 64, transposed_tiling<64, 64, 128, 4, 32, 2>, tiling<128, 64, 128, 8, 2, 4, 2>>;
    using small = std::conditional_t<D == 64, large, tiling<128, 32, 64, 4, 2, 2, 2>>;
    static_assert(small::BYTES <= LEAST_SHARED_BYTES_8_0, "fits on every card since 8.0");
    template <class C> static attention_pass *of(bool drops) { return drops ? run<T, C, true> : run<T, C, false>; }
    static attention_pass *fitting(bool drops) {
        return shared_memory_fits(large::BYTES) ? of<large>(drops) : of<small>(drops);
    }
};

static cudaError_t backward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    return dispatch(
        p, [&]<int D, class T>() { return tilings<D, T>::fitting(p->dropout > 0.0f)(p, t, workspace, stream); });
}

extern "C" const step step_15e_dropout_bwd = {
    .name = "15e_dropout_bwd",
    .idea = "the mask of dropout computed again from counters",
    .beside = "dropout is a variant of chapter 11's problem",
    .backward = backward,
    .workspace_bytes = workspace_bytes,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .variants = DROPOUT,
    .compute_capability = 80,
};
