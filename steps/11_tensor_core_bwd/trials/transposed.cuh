// S^T = K Q^T: keys are rows, so P^T and dS^T come out as the A of dV += P^T dO and dK += dS^T Q. Only dQ needs dS in shared
// memory. One warp: KEYS keys and all queries of a tile, CHUNK queries at a time.
#pragma once
#include "common.cuh"

// DELAY 1, 2: dQ of the last tile is computed before, after the products of this one: one barrier per tile. 3: barriers in two
// halves (gates). TURN: S becomes P, and dV is computed, before dP. KV_REG: the fragments of K (1), and of V (2), stay in
// registers. ROTATE: each block begins at another tile of queries.
template <int D_, int Br_, int Bc_, int WARPS_, int CHUNK_, int Q_WARPS, int DELAY_, int KV_REG_, int ROTATE_,
          int STORE16_, int STM_, int BLOCKS_, int TURN_ = 0>
struct t_tiling {
    static constexpr int D = D_, Br = Br_, Bc = Bc_, WARPS = WARPS_, THREADS = WARPS * WARP, CHUNK = CHUNK_;
    static constexpr int DELAY = DELAY_, KV_REG = KV_REG_, ROTATE = ROTATE_, STORE16 = STORE16_, STM = STM_,
                         BLOCKS = BLOCKS_, TURN = TURN_;
    static constexpr int KEYS = Bc / WARPS, MT = KEYS / 16;
    static constexpr int Q_ROWS = Br / Q_WARPS, Q_COLS = D / (WARPS / Q_WARPS); // of one warp in dQ
    static constexpr size_t BYTES =
        2 * (2 * Bc * D + 4 * Br * D + (1 + (DELAY == 1 || DELAY == 2)) * Br * Bc) + 4 * 4 * Br + 64;
    static constexpr bool TWICE = DELAY == 1 || DELAY == 2, GATED = DELAY == 3;
    static_assert(KEYS % 16 == 0 && CHUNK % 16 == 0 && Br % CHUNK == 0 && Q_ROWS % 16 == 0 && Q_COLS % 16 == 0);
    static_assert(ROW_PAD % Br == 0 && 2 * Br / 4 <= THREADS, "threads copy L2 and D in fours");
};

template <class T, class C>
static __global__ __launch_bounds__(C::THREADS, C::BLOCKS) void backward_transposed(
    const T *Q, const T *K, const T *V, const T *dO, // (heads, N_q, d), (heads, N_kv, d) twice, (heads, N_q, d)
    const float *L2, const float *D,                 // (heads, padded)
    float *dQ_sum,                                   // (heads, padded, C::D) in the order of fragments
    T *dK, T *dV,                                    // (heads, N_kv, d)
    int padded, problem p) {
    constexpr int Br = C::Br, Bc = C::Bc, MT = C::MT, CT = C::CHUNK / 8, KD = C::D / 16;
    extern __shared__ uint4 smem[];
    T *K_smem = (T *)smem, *V_smem = K_smem + Bc * C::D;                                        // (Bc, D)
    T *Q_smem = V_smem + Bc * C::D, *dO_smem = Q_smem + 2 * Br * C::D;                          // (2, Br, D)
    T *dS_smem = dO_smem + 2 * Br * C::D;                                                       // (1 or 2, Bc, Br)
    float *L2_smem = (float *)(dS_smem + (1 + C::TWICE) * Br * Bc), *D_smem = L2_smem + 2 * Br; // (2, Br)
    __mbarrier_t *barriers = (__mbarrier_t *)(D_smem + 2 * Br);
    [[maybe_unused]] gate loaded{barriers}, read{barriers + 1}, dS_stored{barriers + 2}, dS_free{barriers + 3};
    if constexpr (C::GATED) {
        if (threadIdx.x == 0)
            for (int i = 0; i < 4; i++) __mbarrier_init(barriers + i, C::WARPS);
        __syncthreads(); // the barriers are ready
    }
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    int my_key = warp * C::KEYS;
    int q_row = warp / (C::D / C::Q_COLS) * C::Q_ROWS, q_col = warp % (C::D / C::Q_COLS) * C::Q_COLS;
    size_t head = blockIdx.y;
    int key0 = blockIdx.x * Bc;
    Q += head * p.N_q * p.d, dO += head * p.N_q * p.d, K += head * p.N_kv * p.d, V += head * p.N_kv * p.d;
    dK += head * p.N_kv * p.d, dV += head * p.N_kv * p.d;
    L2 += head * padded, D += head * padded, dQ_sum += head * padded * C::D;
    float factor = p.scale * LOG2_E;

    auto start_rows = [&](int row0, int stage) {
        copy_rows<Br, C::D, C::THREADS>(Q_smem + stage * Br * C::D, Q, row0, p.N_q, p.d);
        copy_rows<Br, C::D, C::THREADS>(dO_smem + stage * Br * C::D, dO, row0, p.N_q, p.d);
        int i = threadIdx.x * 4;
        if (i < Br)
            __pipeline_memcpy_async(L2_smem + stage * Br + i, L2 + row0 + i, 16);
        else if (i < 2 * Br)
            __pipeline_memcpy_async(D_smem + stage * Br + i - Br, D + row0 + i - Br, 16);
        __pipeline_commit();
    };
    auto finish_dQ = [&](int row0, const T *dS) {
        float dQ_reg[C::Q_ROWS / 16][C::Q_COLS / 8][4] = {};
        multiply_columns<true, Br, true, C::D, Bc>(dQ_reg, dS, q_row, K_smem, q_col);
        add_dQ<C::D>(dQ_sum, dQ_reg, row0 + q_row, q_col);
    };

    float dV_reg[MT][C::D / 8][4] = {}, dK_reg[MT][C::D / 8][4] = {};
    int first_row = first_attending_query(p, key0) / Br * Br; // rows before it attend to none of these keys
    int tiles = first_row < p.N_q ? (p.N_q - first_row + Br - 1) / Br : 0;
    int tile =
        C::ROTATE && tiles > 0 ? (int)((size_t)blockIdx.x * tiles / gridDim.x) : 0; // the first one of this block
    copy_rows<Bc, C::D, C::THREADS>(K_smem, K, key0, p.N_kv, p.d);
    copy_rows<Bc, C::D, C::THREADS>(V_smem, V, key0, p.N_kv, p.d);
    if (tiles > 0) start_rows(first_row + tile * Br, 0);
    uint32_t K_reg[KD][MT][4], V_reg[KD][MT][4];
    if constexpr (C::KV_REG > 0) {
        __pipeline_wait_prior(0);
        __syncthreads(); // K and V have arrived
        load_A<C::D>(K_reg, K_smem, my_key);
        if constexpr (C::KV_REG > 1) load_A<C::D>(V_reg, V_smem, my_key);
    }
    int stage = 0, last_row0 = 0;
    auto visit = [&]<bool MASKED>(int row0, int done) {
        const T *Q_tile = Q_smem + stage * Br * C::D, *dO_tile = dO_smem + stage * Br * C::D;
        const float *L2_tile = L2_smem + stage * Br, *D_tile = D_smem + stage * Br;
        T *dS_tile = dS_smem + (C::TWICE ? stage * Br * Bc : 0);
        if (C::DELAY == 1 && done > 0) finish_dQ(last_row0, dS_smem + (stage ^ 1) * Br * Bc);

#pragma unroll
        for (int chunk = 0; chunk < Br; chunk += C::CHUNK) {
            float S[MT][CT][4] = {};
            if constexpr (C::KV_REG > 0)
                multiply_registers<false, C::D>(S, K_reg, Q_tile, 0, chunk);
            else
                multiply_columns<false, C::D, false, C::D, C::D>(S, K_smem, my_key, Q_tile, chunk);
            float dP[MT][CT][4];
            auto second_product = [&]() {
#pragma unroll
                for (int i = 0; i < MT; i++)
#pragma unroll
                    for (int j = 0; j < CT; j++)
#pragma unroll
                        for (int e = 0; e < 4; e++) dP[i][j][e] = 0.0f;
                if constexpr (C::KV_REG > 1)
                    multiply_registers<false, C::D>(dP, V_reg, dO_tile, 0, chunk);
                else
                    multiply_columns<false, C::D, false, C::D, C::D>(dP, V_smem, my_key, dO_tile, chunk);
            };
            if constexpr (!C::TURN) second_product();
#pragma unroll
            for (int j = 0; j < CT; j++) {
                float2 row_L2 = *(const float2 *)(L2_tile + chunk + 8 * j + 2 * t);
#pragma unroll
                for (int i = 0; i < MT; i++)
#pragma unroll
                    for (int e = 0; e < 4; e++)
                        S[i][j][e] = exp2_approx(S[i][j][e] * factor - (e % 2 ? row_L2.y : row_L2.x));
            }
            if constexpr (MASKED) {
#pragma unroll
                for (int j = 0; j < CT; j++)
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        int attended =
                            attended_keys(p, row0 + chunk + 8 * j + 2 * t + e % 2) - key0 - my_key - g - e / 2 * 8;
#pragma unroll
                        for (int i = 0; i < MT; i++) S[i][j][e] = 16 * i < attended ? S[i][j][e] : 0.0f;
                    }
            }
            if constexpr (C::GATED)
                if (chunk == 0 && done > 0) dS_free.wait(done - 1);
            uint32_t P_A[CT / 2][MT][4], dS_A[CT / 2][MT][4];
#pragma unroll
            for (int j = 0; j < CT; j += 2)
#pragma unroll
                for (int i = 0; i < MT; i++) pack_A<T>(P_A[j / 2][i], S[i][j], S[i][j + 1]);
            if constexpr (C::TURN) {
                multiply_registers<true, C::D>(dV_reg, P_A, dO_tile, chunk, 0);
                second_product();
            }
#pragma unroll
            for (int j = 0; j < CT; j++) {
                float2 row_D = *(const float2 *)(D_tile + chunk + 8 * j + 2 * t);
#pragma unroll
                for (int i = 0; i < MT; i++)
#pragma unroll
                    for (int e = 0; e < 4; e += 2) {
                        float2 P = C::TURN ? unpack<T>(P_A[j / 2][i][j % 2 * 2 + e / 2])
                                           : make_float2(S[i][j][e], S[i][j][e + 1]);
                        dP[i][j][e] = P.x * (dP[i][j][e] - row_D.x);
                        dP[i][j][e + 1] = P.y * (dP[i][j][e + 1] - row_D.y);
                    }
            }
#pragma unroll
            for (int j = 0; j < CT; j += 2)
#pragma unroll
                for (int i = 0; i < MT; i++) {
                    uint32_t(&A)[4] = dS_A[j / 2][i];
                    pack_A<T>(A, dP[i][j], dP[i][j + 1]);
                    if constexpr (C::STM)
                        stmatrix_x4(dS_tile + lane_place<Br, false>(my_key + 16 * i, chunk + 8 * j), A);
                    else
#pragma unroll
                        for (int r = 0; r < 4; r++)
                            *(uint32_t *)(dS_tile + place<Br>(my_key + 16 * i + r % 2 * 8 + g,
                                                              chunk + 8 * (j + r / 2) + 2 * t)) = A[r];
                }
            if constexpr (C::GATED)
                if (chunk + C::CHUNK == Br) dS_stored.arrive();
            if constexpr (!C::TURN) multiply_registers<true, C::D>(dV_reg, P_A, dO_tile, chunk, 0);
            multiply_registers<true, C::D>(dK_reg, dS_A, Q_tile, chunk, 0);
            if constexpr (C::GATED)
                if (chunk == 0 && done + 1 < tiles) {
                    if (done > 0) read.wait(done - 1);
                    start_rows(first_row + tile * Br, stage ^ 1);
                }
        }
        if constexpr (C::GATED) {
            read.arrive();
            dS_stored.wait(done);
            float dQ_reg[C::Q_ROWS / 16][C::Q_COLS / 8][4] = {};
            multiply_columns<true, Br, true, C::D, Bc>(dQ_reg, dS_tile, q_row, K_smem, q_col);
            dS_free.arrive();
            add_dQ<C::D>(dQ_sum, dQ_reg, row0 + q_row, q_col);
            if (done + 1 < tiles) {
                __pipeline_wait_prior(0);
                loaded.arrive();
            }
        }
        if constexpr (C::DELAY == 0) {
            __syncthreads(); // dS is complete
            finish_dQ(row0, dS_tile);
        }
        if (C::DELAY == 2 && done > 0) finish_dQ(last_row0, dS_smem + (stage ^ 1) * Br * Bc);
        last_row0 = row0;
    };
    if (C::GATED && tiles > 0) {
        __pipeline_wait_prior(0);
        loaded.arrive();
    }
    for (int done = 0; done < tiles; done++, stage ^= 1) {
        int row0 = first_row + tile * Br;
        if (C::ROTATE && tile + 1 == tiles)
            tile = 0;
        else
            tile++;
        if constexpr (C::GATED) {
            loaded.wait(done);
        } else {
            __pipeline_wait_prior(0);
            // this stage has arrived; no thread still reads the other stage or this dS; the last tile's dS is complete
            __syncthreads();
            if (done + 1 < tiles) start_rows(first_row + tile * Br, stage ^ 1);
        }
        if (key0 + Bc > attended_keys(p, row0))
            visit.template operator()<true>(row0, done); // the first row attends to the fewest keys
        else
            visit.template operator()<false>(row0, done);
    }
    __pipeline_wait_prior(0); // no query attends to these keys: the copies of K and V are under way
    __syncthreads();          // the last dS is complete
    if (C::TWICE && tiles > 0) finish_dQ(last_row0, dS_smem + (stage ^ 1) * Br * Bc);
    if constexpr (C::STORE16) {
        __syncthreads(); // no thread still reads K
        fragments_to_tile<C::D>(K_smem, dK_reg, my_key, 0, p.scale);
        fragments_to_tile<C::D>(V_smem, dV_reg, my_key, 0, 1.0f);
        __syncthreads(); // dK and dV are complete
        store_tile<Bc, C::D, C::THREADS>(dK, K_smem, key0, p.N_kv, p.d);
        store_tile<Bc, C::D, C::THREADS>(dV, V_smem, key0, p.N_kv, p.d);
    } else {
        store_fragments(dK, dK_reg, p.scale, key0 + my_key, 0, p.N_kv, p.d);
        store_fragments(dV, dV_reg, 1.0f, key0 + my_key, 0, p.N_kv, p.d);
    }
}
