// The deterministic pass: dQ without atomics. One block owns a tile of query rows, recomputes S and dP once more, and keeps
// dQ in registers: seven products instead of five. tensor_core_bwd.cu includes this file after its own kernels.

// Bc keys in a tile, SUB of them at a time. One warp owns ROWS query rows; dS goes from the C fragments of S and dP straight
// to the A fragments of dS K, without shared memory.
template <int D_, int Br_, int Bc_, int SUB_, int WARPS_> struct query_tiling {
    static constexpr int D = D_, Br = Br_, Bc = Bc_, SUB = SUB_, WARPS = WARPS_, THREADS = WARPS * WARP;
    static constexpr int ROWS = Br / WARPS;
    static constexpr size_t BYTES = 2 * (2 * Br * D + 4 * Bc * D); // Q, dO (Br, D); K, V (Bc, D), two stages each
    static_assert(ROWS % 16 == 0 && SUB % 16 == 0 && Bc % SUB == 0, "fragments have 16 rows, pieces 16 columns");
    static_assert(ROW_PAD % Br == 0, "a tile of query rows lies inside the padded rows");
};

template <class T, class C>
static __global__ __launch_bounds__(C::THREADS) void backward_queries(
    const T *Q, const T *K, const T *V, const T *dO, // (heads, N_q, d), (heads, N_kv, d) twice, (heads, N_q, d)
    const float *L2, const float *D,                 // (heads, padded)
    T *dQ,                                           // (heads, N_q, d)
    int padded, problem p) {
    constexpr int MT = C::ROWS / 16, NT = C::SUB / 8, TILE = C::Bc * C::D;
    extern __shared__ uint4 smem[];
    T *Q_smem = (T *)smem, *dO_smem = Q_smem + C::Br * C::D;         // (Br, D)
    T *K_smem = dO_smem + C::Br * C::D, *V_smem = K_smem + 2 * TILE; // (2, Bc, D)
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    size_t head = blockIdx.y;
    int row0 = (gridDim.x - 1 - blockIdx.x) * C::Br; // under a causal mask, the longest blocks start first
    int my_row = warp * C::ROWS;
    Q += head * p.N_q * p.d, dO += head * p.N_q * p.d, K += head * p.N_kv * p.d, V += head * p.N_kv * p.d;
    dQ += head * p.N_q * p.d, L2 += head * padded, D += head * padded;
    float factor = p.scale * LOG2_E;

    auto start_keys = [&](int key0, int stage) {
        copy_rows<C::Bc, C::D, C::THREADS>(K_smem + stage * TILE, K, key0, p.N_kv, p.d);
        copy_rows<C::Bc, C::D, C::THREADS>(V_smem + stage * TILE, V, key0, p.N_kv, p.d);
        __pipeline_commit();
    };

    float row_L2[2 * MT], row_D[2 * MT]; // of rows g and g + 8 of each fragment
#pragma unroll
    for (int i = 0; i < 2 * MT; i++) {
        int row = row0 + my_row + 8 * i + g;
        row_L2[i] = L2[row], row_D[i] = D[row];
    }
    float dQ_reg[MT][C::D / 8][4] = {};
    int end = attended_keys(p, row0 + C::Br - 1); // the tile's last row attends to the most keys
    copy_rows<C::Br, C::D, C::THREADS>(Q_smem, Q, row0, p.N_q, p.d);
    copy_rows<C::Br, C::D, C::THREADS>(dO_smem, dO, row0, p.N_q, p.d);
    start_keys(0, 0);
    int stage = 0;
    for (int key0 = 0; key0 < end; key0 += C::Bc, stage ^= 1) {
        __pipeline_wait_prior(0);
        __syncthreads(); // this stage (at first Q and dO too) has arrived; no thread still reads the other stage
        if (key0 + C::Bc < end) start_keys(key0 + C::Bc, stage ^ 1);
        bool masked = key0 + C::Bc > attended_keys(p, row0);
#pragma unroll
        for (int sub = 0; sub < C::Bc; sub += C::SUB) {
            const T *K_tile = K_smem + stage * TILE + sub * C::D, *V_tile = V_smem + stage * TILE + sub * C::D;
            float S[MT][NT][4] = {}, dP[MT][NT][4] = {};
            uint32_t dS_reg[MT][NT / 2][4];
            multiply<false, C::D, false, C::D, C::D>(S, Q_smem, my_row, K_tile, 0);
            multiply<false, C::D, false, C::D, C::D>(dP, dO_smem, my_row, V_tile, 0);
#pragma unroll
            for (int i = 0; i < 2 * MT; i++) {
                int attended = masked ? attended_keys(p, row0 + my_row + 8 * i + g) - key0 - sub : C::SUB;
#pragma unroll
                for (int j = 0; j < NT; j++) {
                    const float *s = &S[i / 2][j][i % 2 * 2], *dp = &dP[i / 2][j][i % 2 * 2];
                    int key = 8 * j + 2 * t;
                    float P0 = exp2_approx(s[0] * factor - row_L2[i]), P1 = exp2_approx(s[1] * factor - row_L2[i]);
                    if (masked) {
                        P0 = key < attended ? P0 : 0.0f;
                        P1 = key + 1 < attended ? P1 : 0.0f;
                    }
                    dS_reg[i / 2][j / 2][j % 2 * 2 + i % 2] = pack<T>(P0 * (dp[0] - row_D[i]), P1 * (dp[1] - row_D[i]));
                }
            }
            // dQ += dS K: rows of K are the k of this product.
            int K_at = lane_place<C::D, false>(0, 0);
#pragma unroll
            for (int k = 0; k < C::SUB / 16; k++)
#pragma unroll
                for (int j = 0; j < C::D / 8; j += 2) {
                    uint32_t K_reg[4];
                    ldmatrix_x4_trans(K_reg, K_tile + (K_at ^ 8 * j) + 16 * k * C::D);
#pragma unroll
                    for (int i = 0; i < MT; i++) {
                        mma_m16n8k16<T>(dQ_reg[i][j], dS_reg[i][k], K_reg[0], K_reg[1]);
                        mma_m16n8k16<T>(dQ_reg[i][j + 1], dS_reg[i][k], K_reg[2], K_reg[3]);
                    }
                }
        }
    }
    __pipeline_wait_prior(0); // these rows attend to no key: copies are under way

#pragma unroll
    for (int i = 0; i < 2 * MT; i++) {
        int row = row0 + my_row + 8 * i + g;
#pragma unroll
        for (int j = 0; j < C::D / 8; j++) {
            int col = 8 * j + 2 * t;
            const float *x = &dQ_reg[i / 2][j][i % 2 * 2];
            if (row < p.N_q && col < p.d)
                *(uint32_t *)(dQ + (size_t)row * p.d + col) = pack<T>(x[0] * p.scale, x[1] * p.scale);
        }
    }
}

// ---- on the host -------------------------------------------------------------------------------------------------------

// After backward_keys, which leaves dQ_sum alone; L2 and D lie behind it in the workspace.
template <class T, class C>
static cudaError_t run_queries(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    int heads = p->batch * p->heads, padded = padded_rows(p);
    float *L2 = (float *)workspace + (size_t)heads * padded * C::D, *D = L2 + (size_t)heads * padded;
    return launch(backward_queries<T, C>, dim3(ceil_div(p->N_q, C::Br), heads), C::THREADS, C::BYTES, stream,
                  (const T *)t->Q, (const T *)t->K, (const T *)t->V, (const T *)t->dO, L2, D, (T *)t->dQ, padded, *p);
}

template <int D, class T> static attention_pass *fitting_queries() {
    using large = std::conditional_t<D == 64, query_tiling<64, 128, 64, 32, 4>, query_tiling<128, 128, 64, 32, 8>>;
    using small = std::conditional_t<D == 64, query_tiling<64, 64, 64, 32, 4>, query_tiling<128, 64, 32, 32, 4>>;
    static_assert(small::BYTES <= LEAST_SHARED_BYTES_8_0, "fits on every card since 8.0");
    return shared_memory_fits(large::BYTES) ? run_queries<T, large> : run_queries<T, small>;
}

static cudaError_t backward_deterministic(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    return dispatch(p, [&]<int D, class T>() {
        cudaError_t error = tilings<D, T>::template fitting<false>()(p, t, workspace, stream);
        return error == cudaSuccess ? fitting_queries<D, T>()(p, t, workspace, stream) : error;
    });
}
