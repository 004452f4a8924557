// 15a_window_fwd: chapter 10 with a sliding window.
//
// Idea      A query attends to the keys at most `left` before and `right` after its position. A block visits only the tiles with
//           keys that one of its rows attends to, and applies the mask only to tiles with a key that one of its rows does not
//           attend to: some at the end of the window, some at its start. All other tiles run chapter 10's instructions.
// Costs     The mask has two ends.
// Limiter   As in chapter 10; narrow windows have no tile without mask.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include "device.cuh"
#include "launch.h"
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
    bool grows = false;
    if (masked) {
        // first_key() and end_key() in fewer registers: row my_row + r attends to at most `width` keys from my_key + low + r on, and
        // to none from my_key + all on. A negative difference is a large one without sign.
        int low = my_row + p.N_kv - p.N_q - p.left - my_key, width = p.left + p.right + 1, all = p.N_kv - my_key;
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int n = 0; n < NS; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    int first = low + 16 * t + 8 * (e / 2);
                    bool attends = (unsigned)(8 * n + e % 2 - first) < (unsigned)max(min(width, all - first), 0);
                    S[t][n][e] = attends ? S[t][n][e] * factor : NONE;
                }
    }
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            high[t][i] = NONE;
#pragma unroll
            for (int n = 0; n < NS; n++)
#pragma unroll
                for (int e = 2 * i; e < 2 * i + 2; e++) high[t][i] = fmaxf(high[t][i], S[t][n][e]);
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

template <int D, class T>
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
    // Tiles `first` to `tiles` - 1 have keys that a row of the block attends to: its first row has the first of these keys, its
    // last row the last one. Of tiles `inner` to `unmasked` - 1 all rows attend to all keys.
    rows_of all = {0, p.N_q, p.N_kv};
    int last_row = min(row0 + Br, p.N_q) - 1;
    int first = first_key(p, all, row0) / Bc, tiles = (end_key(p, all, last_row) + Bc - 1) / Bc;
    int inner = (first_key(p, all, last_row) + Bc - 1) / Bc, unmasked = end_key(p, all, row0) / Bc;
    if (p.scale <= 0.0f) unmasked = 0; // lazy_softmax() then applies the factor to all scores

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
    auto visit = [&](int tile, bool masked) {
        int stage = tile % STAGES * Bc * D, next = Bc * D - stage;
        __pipeline_wait_prior(0); // this thread's part of this stage has arrived
        __syncthreads();          // every thread's part has arrived; no warp still reads the other stage
        if (tile > first) {
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
    // One loop, not one per kind of tile: with more copies of visit() nvcc spills registers.
    for (int tile = tiles - 1; tile >= first; tile--) visit(tile, tile >= unmasked || tile < inner);

#pragma unroll
    for (int t = 0; t < TILES; t++)
        store_rows(O + head * p.N_q * p.d, L + head * p.N_q, O_reg[t], m_reg[t], l_reg[t], my_row + 16 * t, p.N_q, p.d);
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    dim3 blocks(ceil_div(p->N_q, Br), p->batch * p->heads);
    return dispatch(p, [&]<int D, class T>() {
        return launch(forward_kernel<D, T>, blocks, THREADS, BYTES<D>, stream, (const T *)t->Q, (const T *)t->K,
                      (const T *)t->V, (T *)t->O, t->L, as_window(*p));
    });
}

extern "C" const step step_15a_window_fwd = {
    .name = "15a_window_fwd",
    .idea = "sliding window",
    .beside = "one variant of chapter 10",
    .forward = forward,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .variants = WINDOW,
    .compute_capability = 80,
};
