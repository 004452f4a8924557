// 15e_dropout_fwd: chapter 10 with dropout.
//
// Idea      Whether a weight is dropped follows from its place and a seed, by a generator without state: Philox. The backward
//           pass computes the same words again, so no mask is stored. One call serves the four weights of a lane in rows r and
//           r + 8 and columns c and c + 8. l is the sum of all weights; only P V has the kept ones.
// Costs     10 rounds of Philox for four weights.
// Limiter   The integer instructions of Philox: about half of all.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"
#include "tensor.cuh"
#include "variants.cuh"

constexpr int WARPS = 4, THREADS = WARPS * WARP; // per block
constexpr int TILES = 2;                         // row tiles per warp: 16 rows, the rows of one mma
constexpr int ROWS = TILES * 16;                 // query rows per warp
constexpr int Br = WARPS * ROWS;                 // query rows per block
constexpr int BLOCKS = 2;                        // per multiprocessor: a thread may have 255 registers
constexpr int STAGES = 2;                        // tiles of K and of V in shared memory

constexpr float SLACK = 8.0f; // in units of log 2: a weight may grow to 2^8 before its row gets a new maximum

// Keys per tile: what registers and shared memory allow.
template <int D> constexpr int KEYS = D == 64 ? 128 : 64;

// Shared memory: Q (Br, D), K and V (STAGES, Bc, D), 2 bytes per element.
template <int D> constexpr size_t BYTES = 2 * (Br + 2 * STAGES * KEYS<D>)*D;
static_assert(BYTES<128> <= LEAST_SHARED_BYTES_8_0, "the tiles fit into the shared memory of every card since 8.0");

// The index of (row, col) in a tile: the XOR exchanges the row's groups of 8 columns.
template <int D> __device__ inline int place(int row, int col) {
    static_assert(D % 64 == 0, "a row has whole sets of 8 groups");
    return row * D + (col ^ row % 8 * 8);
}

// Start to copy rows [first, first + COUNT) of a (rows, d) matrix to a (COUNT, D) tile, 8 elements per cp.async. With
// FILL, elements past the last row or the last column become zeros; without, all rows exist, and columns past d stay
// as they are. No commit, no wait.
template <int D, int COUNT, bool FILL, class T>
__device__ __forceinline__ void copy_rows(T *tile, const T *matrix, int first, int rows, int d) {
    constexpr int STEP = 8 * THREADS / D; // rows that all threads copy together
    static_assert(STEP % 8 == 0 && COUNT % STEP == 0,
                  "a thread's groups lie STEP rows apart, at one place in their rows");
    int row = threadIdx.x / (D / 8), col = threadIdx.x % (D / 8) * 8;
    T *to = tile + place<D>(row, col);
    const T *from = matrix + (size_t)first * d + (row * d + col);
    if (!FILL && col >= d) return;
#pragma unroll
    for (int r = 0; r < COUNT; r += STEP, from += STEP * d) {
        bool inside = !FILL || (first + row + r < rows && col < d);
        __pipeline_memcpy_async(to + r * D, inside ? from : matrix, 16, inside ? 0 : 16);
    }
}

// The online softmax without its last step: masks scores, and brings m, l and O up to date where a maximum grows.
// Returns the factor of the scores in the exponent: P = 2^(factor s - m), m at most SLACK below the maximum. The
// largest s belongs to the largest factor s, because `factor` is positive where it is not applied here. Arguments as
// for online_softmax().
template <int NS, int NO>
__device__ __forceinline__ float lazy_softmax(float (&S)[TILES][NS][4], float (&O)[TILES][NO][4], float (&m)[TILES][2],
                                              float (&l)[TILES][2], const problem &p, bool masked, int my_key,
                                              int my_row) {
    float factor = p.scale * LOG2_E, left = masked ? 1.0f : factor, high[TILES][2];
    // attended_keys() in fewer registers: row my_row + r attends to the keys before my_key + min(limit + r, all).
    int limit = my_row + 1 + (p.causal ? p.N_kv - p.N_q : p.N_kv) - my_key, all = p.N_kv - my_key;
    bool grows = false;
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            high[t][i] = NONE;
#pragma unroll
            for (int n = 0; n < NS; n++)
#pragma unroll
                for (int e = 2 * i; e < 2 * i + 2; e++) {
                    float &s = S[t][n][e];
                    if (masked) s = 8 * n + e % 2 < min(limit + 16 * t + 8 * i, all) ? s * factor : NONE;
                    high[t][i] = fmaxf(high[t][i], s);
                }
            grows |= high[t][i] * left - m[t][i] > SLACK;
        }
    if (__any_sync(FULL_WARP, grows)) // all lanes of the warp take one path: the quads' shuffles find their lanes
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float m_new = fmaxf(m[t][i], quad_max(high[t][i]) * left);
                float rescale = exp2_approx(m[t][i] - m_new);
                m[t][i] = m_new;
                l[t][i] *= rescale;
#pragma unroll
                for (int n = 0; n < NO; n++)
#pragma unroll
                    for (int e = 2 * i; e < 2 * i + 2; e++) O[t][n][e] *= rescale;
            }
    return left;
}

template <int D, class T, bool DROPS>
static __global__ __launch_bounds__(THREADS, BLOCKS) void forward_kernel(const T *Q, // (heads, N_q, d)
                                                                         const T *K, // (heads, N_kv, d)
                                                                         const T *V, // (heads, N_kv, d)
                                                                         T *O,       // (heads, N_q, d)
                                                                         float *L,   // (heads, N_q)
                                                                         problem p) {
    constexpr int Bc = KEYS<D>;
    extern __shared__ uint4 smem[];
    T *Q_smem = (T *)smem;                // (Br, D)
    T *K_smem = Q_smem + Br * D;          // (STAGES, Bc, D)
    T *V_smem = K_smem + STAGES * Bc * D; // (STAGES, Bc, D)
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    size_t head = blockIdx.y;
    // Under a causal mask the last rows attend to the most keys: the longest blocks start first.
    int row0 = (gridDim.x - 1 - blockIdx.x) * Br;
    int my_row = row0 + warp * ROWS + lane / 4; // and 8, 16 and 24 rows below
    Q += head * p.N_q * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;
    int tiles = (attended_keys(p, row0 + Br - 1) + Bc - 1) / Bc; // with keys that the block's last row attends to
    int unmasked = attended_keys(p, row0) / Bc; // tiles of which all rows of the block attend to all keys
    if (p.scale <= 0.0f) unmasked = 0;          // lazy_softmax() then applies the factor to all scores

    int last = max(tiles - 1, 0), stage0 = last % STAGES * Bc * D, stage1 = Bc * D - stage0;
    copy_rows<D, Br, true>(Q_smem, Q, row0, p.N_q, p.d);
    copy_rows<D, Bc, true>(K_smem + stage0, K, last * Bc, p.N_kv, p.d);
    copy_rows<D, Bc, true>(V_smem + stage0, V, last * Bc, p.N_kv, p.d);
    if (p.d < D) { // zeros in the columns past d of the other stage: unchecked copies leave them alone
        copy_rows<D, Bc, true>(K_smem + stage1, K, 0, 0, p.d);
        copy_rows<D, Bc, true>(V_smem + stage1, V, 0, 0, p.d);
    }
    __pipeline_commit();

    // Lane l names row l % 8 of the quadrant for register l / 8 (tensor.cuh). For the first piece of a tile this is
    // the following element; 16 columns further is one XOR, 16 rows further one constant.
    int Q_lane = place<D>(warp * ROWS + lane % 16, lane / 16 * 8);
    int K_lane = place<D>(lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8);
    int V_lane = place<D>(lane % 16, lane / 16 * 8);
    // m in units of log 2; l of this lane's keys only, until the epilogue.
    float O_reg[TILES][D / 8][4] = {}, m_reg[TILES][2], l_reg[TILES][2] = {};
    for (int i = 0; i < 2 * TILES; i++) m_reg[i / 2][i % 2] = NONE;
    uint32_t threshold = dropout_threshold(p);
    auto visit = [&](int tile, bool masked) {
        int stage = tile % STAGES * Bc * D, next = Bc * D - stage;
        __pipeline_wait_prior(0); // this thread's part of this stage has arrived
        __syncthreads();          // every thread's part has arrived; no warp still reads the other stage
        if (tile > 0) {
            copy_rows<D, Bc, false>(K_smem + next, K, (tile - 1) * Bc, p.N_kv, p.d);
            copy_rows<D, Bc, false>(V_smem + next, V, (tile - 1) * Bc, p.N_kv, p.d);
            __pipeline_commit();
        }

        float S_reg[TILES][Bc / 8][4] = {};
#pragma unroll
        for (int k = 0; k < D / 16; k++) {
            uint32_t Q_reg[TILES][4];
#pragma unroll
            for (int t = 0; t < TILES; t++) ldmatrix_x4(Q_reg[t], Q_smem + (Q_lane ^ 16 * k) + 16 * t * D);
#pragma unroll
            for (int n = 0; n < Bc / 16; n++) {
                uint32_t K_reg[4];
                ldmatrix_x4(K_reg, K_smem + ((stage + K_lane) ^ 16 * k) + 16 * n * D);
#pragma unroll
                for (int t = 0; t < TILES; t++) {
                    mma_m16n8k16<T>(S_reg[t][2 * n], Q_reg[t], K_reg[0], K_reg[1]);
                    mma_m16n8k16<T>(S_reg[t][2 * n + 1], Q_reg[t], K_reg[2], K_reg[3]);
                }
            }
        }

        float factor = lazy_softmax(S_reg, O_reg, m_reg, l_reg, p, masked, tile * Bc + lane % 4 * 2, my_row);

#pragma unroll
        for (int k = 0; k < Bc / 16; k++) {
            uint32_t P_reg[TILES][4];
#pragma unroll
            for (int t = 0; t < TILES; t++) {
#pragma unroll
                for (int n = 2 * k; n < 2 * k + 2; n++)
#pragma unroll
                    for (int i = 0; i < 2; i++) {
                        float *s = S_reg[t][n] + 2 * i;
                        s[0] = exp2_approx(s[0] * factor - m_reg[t][i]);
                        s[1] = exp2_approx(s[1] * factor - m_reg[t][i]);
                        l_reg[t][i] += s[0] + s[1];
                    }
                if constexpr (DROPS) {
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        uint4 words =
                            dropout_words(p, my_row + 16 * t, tile * Bc + 16 * k + lane % 4 * 2 + e, blockIdx.y, 0);
                        float *left = S_reg[t][2 * k] + e, *right = S_reg[t][2 * k + 1] + e; // and 8 rows below
                        if (words.x < threshold) left[0] = 0.0f;
                        if (words.y < threshold) right[0] = 0.0f;
                        if (words.z < threshold) left[2] = 0.0f;
                        if (words.w < threshold) right[2] = 0.0f;
                    }
                }
                pack_A<T>(P_reg[t], S_reg[t][2 * k], S_reg[t][2 * k + 1]);
            }
#pragma unroll
            for (int n = 0; n < D / 16; n++) {
                uint32_t V_reg[4];
                ldmatrix_x4_trans(V_reg, V_smem + ((stage + V_lane) ^ 16 * n) + 16 * k * D);
#pragma unroll
                for (int t = 0; t < TILES; t++) {
                    mma_m16n8k16<T>(O_reg[t][2 * n], P_reg[t], V_reg[0], V_reg[1]);
                    mma_m16n8k16<T>(O_reg[t][2 * n + 1], P_reg[t], V_reg[2], V_reg[3]);
                }
            }
        }
    };
    int tile = tiles - 1;
    for (; tile >= unmasked; tile--) visit(tile, true);
    for (; tile >= 0; tile--) visit(tile, false);

    if constexpr (DROPS) {
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int n = 0; n < D / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) O_reg[t][n][e] *= 1.0f / (1.0f - p.dropout); // what is kept stands for all
    }
#pragma unroll
    for (int t = 0; t < TILES; t++)
        store_rows(O + head * p.N_q * p.d, L + head * p.N_q, O_reg[t], m_reg[t], l_reg[t], my_row + 16 * t, p.N_q, p.d);
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    dim3 blocks(ceil_div(p->N_q, Br), p->batch * p->heads);
    return dispatch(p, [&]<int D, class T>() {
        auto kernel = p->dropout > 0.0f ? forward_kernel<D, T, true> : forward_kernel<D, T, false>;
        return launch(kernel, blocks, THREADS, BYTES<D>, stream, (const T *)t->Q, (const T *)t->K, (const T *)t->V,
                      (T *)t->O, t->L, *p);
    });
}

extern "C" const step step_15e_dropout_fwd = {
    .name = "15e_dropout_fwd",
    .idea = "dropout",
    .beside = "one variant of chapter 10",
    .forward = forward,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .variants = DROPOUT,
    .compute_capability = 80,
};
