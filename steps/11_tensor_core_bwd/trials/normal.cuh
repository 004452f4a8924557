// The form of rung 11e: queries are rows of S, P and dS pass through shared memory.
#pragma once
#include "common.cuh"

// How a block goes on from tile to tile of queries:
// PLAIN      as rung 11e
// DELAYED    dV, dK and dQ of the last tile are computed beside S and dP of this one: three stages, P and dS twice, one barrier
// MIXED      as DELAYED; between the exponentials stand the products of the last tile, 16 query rows at a time
// MIXED_GATED as MIXED; barriers in two halves
// OUT_OF_STEP as DELAYED; half of the warps computes the products of the last tile first
// IN_TURN    S becomes P before dP is computed, so registers suffice for 128 queries at d 128; Q has two stages, dO one
// GATED      as IN_TURN; barriers in two halves (gates), so that warps may be up to a product apart
// SKEWED     as GATED; dK and dQ of the last tile stand between S and dP of this one, the exponentials between the pieces
//            of dK, dS between the pieces of dV
enum mode { PLAIN, DELAYED, MIXED, MIXED_GATED, OUT_OF_STEP, IN_TURN, GATED, SKEWED };
template <int D_, int Br_, int Bc_, int WARPS_, int S_WARPS, int K_WARPS, int Q_WARPS, mode MODE_, int ROTATE_,
          int STORE16_, int REREAD_ = 0, int STM_ = 0>
struct n_tiling {
    static constexpr int D = D_, Br = Br_, Bc = Bc_, WARPS = WARPS_, THREADS = WARPS * WARP;
    static constexpr mode MODE = MODE_;
    static constexpr int ROTATE = ROTATE_, STORE16 = STORE16_, REREAD = REREAD_, STM = STM_;
    static constexpr bool DELAY = MODE == DELAYED || MODE == MIXED || MODE == MIXED_GATED || MODE == OUT_OF_STEP,
                          TURN = MODE == IN_TURN || MODE == GATED || MODE == SKEWED,
                          GATES = MODE == GATED || MODE == SKEWED || MODE == MIXED_GATED;
    static constexpr int STAGES = DELAY ? 3 : 2, dO_STAGES = TURN ? 1 : STAGES,
                         PAIRS = DELAY ? 2 : 1;                                  // of Q; of dO; of P and dS
    static constexpr int S_ROWS = Br / S_WARPS, S_KEYS = Bc / (WARPS / S_WARPS); // of one warp in S and dP
    static constexpr int K_KEYS = Bc / K_WARPS, K_COLS = D / (WARPS / K_WARPS);  // of one warp in dV and dK
    static constexpr int Q_ROWS = Br / Q_WARPS, Q_COLS = D / (WARPS / Q_WARPS);  // of one warp in dQ
    static constexpr size_t BYTES =
        2 * (2 * Bc * D + (STAGES + dO_STAGES) * Br * D + PAIRS * 2 * Br * Bc) + STAGES * 2 * 4 * Br + 64;
    static_assert(WARPS % S_WARPS == 0 && WARPS % K_WARPS == 0 && WARPS % Q_WARPS == 0, "rows of warps are whole");
    static_assert(S_ROWS % 16 == 0 && K_KEYS % 16 == 0 && Q_ROWS % 16 == 0, "a fragment has 16 rows");
    static_assert(S_KEYS % 16 == 0 && K_COLS % 16 == 0 && Q_COLS % 16 == 0, "one piece fills two fragments of B");
    static_assert(ROW_PAD % Br == 0 && 2 * Br / 4 <= THREADS, "threads copy L2 and D in fours");
};

template <class T, class C>
static __global__ __launch_bounds__(C::THREADS, C::WARPS <= 4 ? 2 : 1) void backward_normal(
    const T *Q, const T *K, const T *V, const T *dO, // (heads, N_q, d), (heads, N_kv, d) twice, (heads, N_q, d)
    const float *L2, const float *D,                 // (heads, padded)
    float *dQ_sum,                                   // (heads, padded, C::D) in the order of fragments
    T *dK, T *dV,                                    // (heads, N_kv, d)
    int padded, problem p) {
    constexpr int Br = C::Br, Bc = C::Bc, MT = C::S_ROWS / 16, NT = C::S_KEYS / 8, TILE = Br * C::D;
    extern __shared__ uint4 smem[];
    T *K_smem = (T *)smem, *V_smem = K_smem + Bc * C::D;                  // (Bc, D)
    T *Q_smem = V_smem + Bc * C::D, *dO_smem = Q_smem + C::STAGES * TILE; // (STAGES, Br, D), (dO_STAGES, Br, D)
    T *P_smem = dO_smem + C::dO_STAGES * TILE, *dS_smem = P_smem + C::PAIRS * Br * Bc;            // (PAIRS, Br, Bc)
    float *L2_smem = (float *)(dS_smem + C::PAIRS * Br * Bc), *D_smem = L2_smem + C::STAGES * Br; // (STAGES, Br)
    __mbarrier_t *barriers = (__mbarrier_t *)(D_smem + C::STAGES * Br);
    [[maybe_unused]] gate loaded{barriers}, P_stored{barriers + 1}, P_free{barriers + 2}, dS_stored{barriers + 3},
        dS_free{barriers + 4};
    [[maybe_unused]] gate dO_loaded{barriers + 5}, Q_free{barriers + 6};
    if constexpr (C::GATES) {
        if (threadIdx.x == 0)
            for (int i = 0; i < 7; i++) __mbarrier_init(barriers + i, C::WARPS);
        __syncthreads(); // the barriers are ready
    }
    int done = 0; // tiles
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
    float factor = p.scale * LOG2_E;

    auto start_dO = [&](int row0, int stage) {
        copy_rows<Br, C::D, C::THREADS>(dO_smem + (C::TURN ? 0 : stage * TILE), dO, row0, p.N_q, p.d);
        __pipeline_commit();
    };
    auto start_Q = [&](int row0, int stage) {
        copy_rows<Br, C::D, C::THREADS>(Q_smem + stage * TILE, Q, row0, p.N_q, p.d);
        int i = threadIdx.x * 4;
        if (i < Br)
            __pipeline_memcpy_async(L2_smem + stage * Br + i, L2 + row0 + i, 16);
        else if (i < 2 * Br)
            __pipeline_memcpy_async(D_smem + stage * Br + i - Br, D + row0 + i - Br, 16);
        if constexpr (C::TURN)
            __pipeline_commit();
        else
            start_dO(row0, stage);
    };

    float dV_reg[C::K_KEYS / 16][C::K_COLS / 8][4] = {}, dK_reg[C::K_KEYS / 16][C::K_COLS / 8][4] = {};
    auto finish_dQ = [&](int row0, const T *dS_tile) {
        float dQ_reg[C::Q_ROWS / 16][C::Q_COLS / 8][4] = {};
        multiply_columns<false, Bc, true, C::D, Bc>(dQ_reg, dS_tile, q_row, K_smem, q_col);
        add_dQ<C::D>(dQ_sum, dQ_reg, row0 + q_row, q_col);
    };
    auto add_dV = [&](int stage, const T *P_tile, int k0 = 0, int k1 = C::Br) {
        multiply_columns<true, Bc, true, C::D, Br>(dV_reg, P_tile, k_key, dO_smem + (C::TURN ? 0 : stage * TILE), k_col,
                                                   k0, k1);
    };
    auto add_dK = [&](int stage, const T *dS_tile, int k0 = 0, int k1 = C::Br) {
        multiply_columns<true, Bc, true, C::D, Br>(dK_reg, dS_tile, k_key, Q_smem + stage * TILE, k_col, k0, k1);
    };
    // S and dP of one tile, and from them P and dS. before(): called before anything is stored; between(i): called MT NT times.
    auto scores = [&]<bool MASKED>(int row0, int stage, T *P_tile, T *dS_tile, auto between, auto before) {
        const T *Q_tile = Q_smem + stage * TILE, *dO_tile = dO_smem + (C::TURN ? 0 : stage * TILE);
        const float *L2_tile = L2_smem + stage * Br + s_row + g, *D_tile = D_smem + stage * Br + s_row + g;
        float S[MT][NT][4] = {}, row_L2[2 * MT], row_D[2 * MT];
        uint32_t P_reg[MT][NT][2];
#pragma unroll
        for (int i = 0; i < 2 * MT; i++) row_L2[i] = L2_tile[8 * i], row_D[i] = D_tile[8 * i];
        auto exponentials = [&](int i, int j) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float *s = &S[i][j][2 * half];
                s[0] = exp2_approx(s[0] * factor - row_L2[2 * i + half]),
                s[1] = exp2_approx(s[1] * factor - row_L2[2 * i + half]);
                if constexpr (MASKED) {
                    int attended = attended_keys(p, row0 + s_row + 16 * i + 8 * half + g) - key0 - s_key - 2 * t;
                    s[0] = 8 * j < attended ? s[0] : 0.0f;
                    s[1] = 8 * j + 1 < attended ? s[1] : 0.0f;
                }
                P_reg[i][j][half] = pack<T>(s[0], s[1]);
                if constexpr (!C::STM)
                    *(uint32_t *)(P_tile + place<Bc>(s_row + 16 * i + 8 * half + g, s_key + 8 * j + 2 * t)) =
                        P_reg[i][j][half];
            }
        };
        multiply_columns<false, C::D, false, C::D, C::D>(S, Q_tile, s_row, K_smem, s_key);
        if constexpr (C::TURN) {
            if constexpr (C::MODE == GATED)
                if (done > 0) P_free.wait(done - 1);
#pragma unroll
            for (int i = 0; i < MT; i++)
#pragma unroll
                for (int j = 0; j < NT; j++) exponentials(i, j);
            if constexpr (C::MODE == GATED) P_stored.arrive();
        }
        float dP[MT][NT][4] = {};
        uint32_t dS_reg[2][2];
        multiply_columns<false, C::D, false, C::D, C::D>(dP, dO_tile, s_row, V_smem, s_key);
        if constexpr (C::MODE == GATED)
            if (done > 0) dS_free.wait(done - 1);
        before();
#pragma unroll
        for (int i = 0; i < MT; i++)
#pragma unroll
            for (int j = 0; j < NT; j++) {
                if constexpr (!C::TURN) exponentials(i, j);
                uint32_t(&dS_now)[2] = dS_reg[j % 2];
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const float *dp = &dP[i][j][2 * half];
                    int at = place<Bc>(s_row + 16 * i + 8 * half + g, s_key + 8 * j + 2 * t);
                    float2 P = C::REREAD ? unpack<T>(*(const uint32_t *)(P_tile + at)) // this thread has stored it
                               : C::TURN ? unpack<T>(P_reg[i][j][half])
                                         : make_float2(S[i][j][2 * half], S[i][j][2 * half + 1]);
                    dS_now[half] = pack<T>(P.x * (dp[0] - row_D[2 * i + half]), P.y * (dp[1] - row_D[2 * i + half]));
                    if constexpr (!C::STM) *(uint32_t *)(dS_tile + at) = dS_now[half];
                }
                if (C::STM && j % 2 == 1) { // 16 x 16 elements
                    int at = lane_place<Bc, false>(s_row + 16 * i, s_key + 8 * (j - 1));
                    stmatrix_x4(P_tile + at, {P_reg[i][j - 1][0], P_reg[i][j - 1][1], P_reg[i][j][0], P_reg[i][j][1]});
                    stmatrix_x4(dS_tile + at, {dS_reg[0][0], dS_reg[0][1], dS_reg[1][0], dS_reg[1][1]});
                }
                between(i * NT + j);
            }
        if constexpr (C::MODE == GATED) dS_stored.arrive();
    };
    auto nothing = [](int) {};
    auto nothing_before = []() {};
    auto any_scores = [&](int row0, int stage, T *P_tile, T *dS_tile, auto between, auto before) {
        if (key0 + Bc > attended_keys(p, row0)) // the tile's first row attends to the fewest keys
            scores.template operator()<true>(row0, stage, P_tile, dS_tile, between, before);
        else
            scores.template operator()<false>(row0, stage, P_tile, dS_tile, between, before);
    };

    int first_row = first_attending_query(p, key0) / Br * Br; // rows before it attend to none of these keys
    int tiles = first_row < p.N_q ? (p.N_q - first_row + Br - 1) / Br : 0;
    int tile =
        C::ROTATE && tiles > 0 ? (int)((size_t)blockIdx.x * tiles / gridDim.x) : 0; // the first one of this block
    copy_rows<Bc, C::D, C::THREADS>(K_smem, K, key0, p.N_kv, p.d);
    copy_rows<Bc, C::D, C::THREADS>(V_smem, V, key0, p.N_kv, p.d);
    if (tiles > 0) {
        start_Q(first_row + tile * Br, 0);
        if constexpr (C::TURN) start_dO(first_row + tile * Br, 0);
    }
    int stage = 0, row0 = first_row + tile * Br;
    [[maybe_unused]] int last_row0 = 0;
    if constexpr (C::DELAY) {
        int last_stage = 0;
        // From the last tile's P and dS, beside S and dP of this one. The first call has no last tile, the last call no other.
        auto visit = [&]<bool SCORES, bool PRODUCTS>() {
            int next_stage = stage == 2 ? 0 : stage + 1;
            tile = tile + 1 == tiles ? 0 : tile + 1;
            if constexpr (!C::GATES) {
                __pipeline_wait_prior(0);
                // This stage has arrived; P and dS of the last tile are complete; no thread still reads the next stage, or the
                // P and dS before the last.
                __syncthreads();
                if (done + 1 < tiles) start_Q(first_row + tile * Br, next_stage);
            }
            int now = done % 2 * Br * Bc, last = Br * Bc - now;
            auto products = [&]() {
                add_dV(last_stage, P_smem + last);
                add_dK(last_stage, dS_smem + last);
            };
            if constexpr (C::MODE == OUT_OF_STEP) {
#pragma unroll 1
                for (int half = 0; half < 2; half++)
                    if (half == warp / (C::WARPS / 2)) {
                        if constexpr (SCORES)
                            any_scores(row0, stage, P_smem + now, dS_smem + now, nothing, nothing_before);
                    } else if constexpr (PRODUCTS) {
                        products();
                        finish_dQ(last_row0, dS_smem + last);
                    }
            } else if constexpr (C::GATES && !(SCORES && PRODUCTS)) {
                if constexpr (SCORES) {
                    loaded.wait(0);
                    any_scores(row0, stage, P_smem, dS_smem, nothing, nothing_before);
                    P_stored.arrive();
                    if (tiles > 1) {
                        start_Q(first_row + tile * Br, next_stage);
                        __pipeline_wait_prior(0);
                        loaded.arrive();
                    }
                } else {
                    P_stored.wait(done - 1);
                    products();
                    finish_dQ(last_row0, dS_smem + last);
                }
            } else if constexpr ((C::MODE == MIXED || C::GATES) && SCORES && PRODUCTS) {
                if constexpr (C::GATES) loaded.wait(done);
                auto before = [&]() {
                    if constexpr (C::GATES) {
                        if (done > 1)
                            P_free.wait(done -
                                        2); // no thread still reads the next stage, or the P and dS before the last
                        if (done + 1 < tiles) start_Q(first_row + tile * Br, next_stage);
                        P_stored.wait(done - 1);
                    }
                };
                any_scores(
                    row0, stage, P_smem + now, dS_smem + now,
                    [&](int i) {
                        constexpr int EACH =
                            2 * Br / 16 / (MT * NT) > 0 ? 2 * Br / 16 / (MT * NT) : 1; // steps of 16 rows per call
#pragma unroll
                        for (int step = i * EACH; step < (i + 1) * EACH && step < Br / 8; step++)
                            if (step < Br / 16)
                                add_dV(last_stage, P_smem + last, 16 * step, 16 * step + 16);
                            else
                                add_dK(last_stage, dS_smem + last, 16 * step - Br, 16 * step - Br + 16);
                    },
                    before);
                if constexpr (C::GATES) {
                    P_stored.arrive();
                    if (done + 1 < tiles) {
                        __pipeline_wait_prior(0);
                        loaded.arrive();
                    }
                }
                float dQ_reg[C::Q_ROWS / 16][C::Q_COLS / 8][4] = {};
                multiply_columns<false, Bc, true, C::D, Bc>(dQ_reg, dS_smem + last, q_row, K_smem, q_col);
                if constexpr (C::GATES) P_free.arrive();
                add_dQ<C::D>(dQ_sum, dQ_reg, last_row0 + q_row, q_col);
            } else {
                if constexpr (SCORES) any_scores(row0, stage, P_smem + now, dS_smem + now, nothing, nothing_before);
                if constexpr (PRODUCTS) {
                    products();
                    finish_dQ(last_row0, dS_smem + last);
                }
            }
            last_stage = stage, last_row0 = row0;
            stage = next_stage, row0 = first_row + tile * Br;
        };
        if (C::GATES && tiles > 0) {
            __pipeline_wait_prior(0);
            loaded.arrive();
        }
        if (tiles > 0) {
            visit.template operator()<true, false>();
            for (done = 1; done < tiles; done++) visit.template operator()<true, true>();
            visit.template operator()<false, true>();
        }
    } else if constexpr (C::MODE == SKEWED) {
        auto visit = [&]<bool MASKED, bool FIRST>() {
            const float *L2_tile = L2_smem + stage * Br + s_row + g, *D_tile = D_smem + stage * Br + s_row + g;
            int next_row0 = first_row + tile * Br;
            bool more = done + 1 < tiles;
            loaded.wait(done);
            float S[MT][NT][4] = {};
            multiply_columns<false, C::D, false, C::D, C::D>(S, Q_smem + stage * TILE, s_row, K_smem, s_key);
            if constexpr (!FIRST) {
                P_free.wait(done - 1); // all warps are done with dO, too
                start_dO(row0, 0);
                dS_stored.wait(done - 1);
            }
#pragma unroll
            for (int i = 0; i < MT; i++) {
                float row_L2[2] = {L2_tile[16 * i], L2_tile[16 * i + 8]};
#pragma unroll
                for (int j = 0; j < NT; j++) {
#pragma unroll
                    for (int half = 0; half < 2; half++) {
                        float P0 = exp2_approx(S[i][j][2 * half] * factor - row_L2[half]);
                        float P1 = exp2_approx(S[i][j][2 * half + 1] * factor - row_L2[half]);
                        if constexpr (MASKED) {
                            int attended =
                                attended_keys(p, row0 + s_row + 16 * i + 8 * half + g) - key0 - s_key - 2 * t;
                            P0 = 8 * j < attended ? P0 : 0.0f;
                            P1 = 8 * j + 1 < attended ? P1 : 0.0f;
                        }
                        *(uint32_t *)(P_smem + place<Bc>(s_row + 16 * i + 8 * half + g, s_key + 8 * j + 2 * t)) =
                            pack<T>(P0, P1);
                    }
                    constexpr int CALLS = MT * NT, STEPS = Br / 16;
                    int call = i * NT + j;
                    if constexpr (!FIRST)
                        add_dK(stage ^ 1, dS_smem, call * STEPS / CALLS * 16, (call + 1) * STEPS / CALLS * 16);
                }
            }
            P_stored.arrive();
            if constexpr (!FIRST) {
                Q_free.arrive();
                __pipeline_wait_prior(0);
                dO_loaded.arrive();
                float dQ_reg[C::Q_ROWS / 16][C::Q_COLS / 8][4] = {};
                multiply_columns<false, Bc, true, C::D, Bc>(dQ_reg, dS_smem, q_row, K_smem, q_col);
                dS_free.arrive();
                add_dQ<C::D>(dQ_sum, dQ_reg, last_row0 + q_row, q_col);
                Q_free.wait(done - 1);
            }
            if (more) start_Q(next_row0, stage ^ 1);
            dO_loaded.wait(done);
            float dP[MT][NT][4] = {};
            multiply_columns<false, C::D, false, C::D, C::D>(dP, dO_smem, s_row, V_smem, s_key);
            if (more) {
                __pipeline_wait_prior(0);
                loaded.arrive();
            }
            P_stored.wait(done);
            if constexpr (!FIRST) dS_free.wait(done - 1);
#pragma unroll
            for (int i = 0; i < MT; i++) {
                float row_D[2] = {D_tile[16 * i], D_tile[16 * i + 8]};
#pragma unroll
                for (int j = 0; j < NT; j++) {
#pragma unroll
                    for (int half = 0; half < 2; half++) {
                        int at = place<Bc>(s_row + 16 * i + 8 * half + g, s_key + 8 * j + 2 * t);
                        float2 P = unpack<T>(*(const uint32_t *)(P_smem + at)); // this thread has stored it
                        *(uint32_t *)(dS_smem + at) = pack<T>(P.x * (dP[i][j][2 * half] - row_D[half]),
                                                              P.y * (dP[i][j][2 * half + 1] - row_D[half]));
                    }
                    constexpr int CALLS = MT * NT, STEPS = Br / 16;
                    int call = i * NT + j;
                    add_dV(0, P_smem, call * STEPS / CALLS * 16, (call + 1) * STEPS / CALLS * 16);
                }
            }
            dS_stored.arrive();
            P_free.arrive();
        };
        if (tiles > 0) {
            __pipeline_wait_prior(0);
            loaded.arrive();
            dO_loaded.arrive();
            for (; done < tiles; done++, stage ^= 1) {
                tile = tile + 1 == tiles ? 0 : tile + 1;
                bool masked = key0 + Bc > attended_keys(p, row0); // the tile's first row attends to the fewest keys
                if (done == 0) {
                    if (masked)
                        visit.template operator()<true, true>();
                    else
                        visit.template operator()<false, true>();
                } else if (masked)
                    visit.template operator()<true, false>();
                else
                    visit.template operator()<false, false>();
                last_row0 = row0, row0 = first_row + tile * Br;
            }
            dS_stored.wait(tiles - 1);
            add_dK(stage ^ 1, dS_smem);
            finish_dQ(last_row0, dS_smem);
        }
    } else if constexpr (C::MODE == GATED) {
        if (tiles > 0) {
            __pipeline_wait_prior(0);
            loaded.arrive();
        }
        for (; done < tiles; done++, stage ^= 1) {
            tile = tile + 1 == tiles ? 0 : tile + 1;
            int next_row0 = first_row + tile * Br;
            bool more = done + 1 < tiles;
            loaded.wait(done);
            any_scores(row0, stage, P_smem, dS_smem, nothing, nothing_before);
            if (more) start_Q(next_row0, stage ^ 1); // all warps are done with the last dQ, so with the last Q too
            P_stored.wait(done);
            add_dV(stage, P_smem);
            P_free.arrive();
            dS_stored.wait(done);
            add_dK(stage, dS_smem);
            if (more) {
                P_free.wait(done); // all warps are done with dO
                start_dO(next_row0, 0);
            }
            float dQ_reg[C::Q_ROWS / 16][C::Q_COLS / 8][4] = {};
            multiply_columns<false, Bc, true, C::D, Bc>(dQ_reg, dS_smem, q_row, K_smem, q_col);
            dS_free.arrive();
            add_dQ<C::D>(dQ_sum, dQ_reg, row0 + q_row, q_col);
            if (more) {
                __pipeline_wait_prior(0);
                loaded.arrive();
            }
            row0 = next_row0;
        }
    } else {
        for (; done < tiles; done++, stage ^= 1) {
            tile = tile + 1 == tiles ? 0 : tile + 1;
            int next_row0 = first_row + tile * Br;
            bool more = done + 1 < tiles;
            __pipeline_wait_prior(0);
            __syncthreads(); // every thread's part of this stage has arrived; no thread still reads the other stage, P or dS
            if (more) start_Q(next_row0, stage ^ 1);
            any_scores(row0, stage, P_smem, dS_smem, nothing, nothing_before);
            __syncthreads(); // P and dS are complete
            add_dV(stage, P_smem);
            add_dK(stage, dS_smem);
            if constexpr (C::MODE == IN_TURN) {
                __syncthreads(); // no thread still reads dO
                if (more) start_dO(next_row0, 0);
            }
            finish_dQ(row0, dS_smem);
            row0 = next_row0;
        }
    }
    __pipeline_wait_prior(0); // no query attends to these keys: the copies of K and V are under way
    if constexpr (C::STORE16) {
        __syncthreads(); // no thread still reads K
        fragments_to_tile<C::D>(K_smem, dK_reg, k_key, k_col, p.scale);
        fragments_to_tile<C::D>(V_smem, dV_reg, k_key, k_col, 1.0f);
        __syncthreads(); // dK and dV are complete
        store_tile<Bc, C::D, C::THREADS>(dK, K_smem, key0, p.N_kv, p.d);
        store_tile<Bc, C::D, C::THREADS>(dV, V_smem, key0, p.N_kv, p.d);
    } else {
        store_fragments(dK, dK_reg, p.scale, key0 + k_key, k_col, p.N_kv, p.d);
        store_fragments(dV, dV_reg, 1.0f, key0 + k_key, k_col, p.N_kv, p.d);
    }
}
