// All variants of the forward pass: rungs 15a to 15f together.
// Template switches where an idea costs instructions in the inner loop, or registers in it: changed scores (15b), dropout (15e), and one
// for windows (15a), grouped heads (15c) and packed sequences (15d), told apart when the program runs. Rotary embedding turns Q and K
// once, in a kernel of its own: 15f, which turns a tile of K whenever a block loads it, does that N_q / 128 times.
#ifndef FORWARD_ALL_CUH
#define FORWARD_ALL_CUH

#include "attention.h"

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"
#include "rotary.cuh"
#include "tensor.cuh"
#include "variants.cuh"

namespace fwd {

// MORE below: softcap or ALiBi; dropout; windows, grouped heads or packed sequences.
enum { SCORES = 1, DROPS = 2, PLACES = 4, ALL = SCORES | DROPS | PLACES };

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

// Scores become those of softcap and ALiBi, in units of log 2. slope: per key, in these units. distance: from my_key to my_row's
// position.
template <int NS>
__device__ __forceinline__ void change_scores(float (&S)[TILES][NS][4], const problem &p, float slope, int distance) {
    float factor = p.scale * LOG2_E, cap = largest_score(p), from = distance;
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int n = 0; n < NS; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                float &s = S[t][n][e];
                if (p.softcap > 0.0f)
                    s = cap * LOG2_E * capped_at_1(s * (p.scale / cap));
                else
                    s *= factor;
                s -= slope * fabsf(from + (float)(16 * t + e / 2 * 8 - 8 * n - e % 2));
            }
}

// Of the tile's 16 keys from `key` on, weights that are dropped become 0: left and right are the two fragments of row tile t.
template <int NS>
__device__ __forceinline__ void drop(float (&S)[NS][4], int n, const problem &p, uint32_t threshold, int row, int key,
                                     int head, int sequence) {
#pragma unroll
    for (int e = 0; e < 2; e++) {
        uint4 words = dropout_words(p, row, key + e, head, sequence);
        float *left = S[n] + e, *right = S[n + 1] + e; // and 8 rows below
        if (words.x < threshold) left[0] = 0.0f;
        if (words.y < threshold) right[0] = 0.0f;
        if (words.z < threshold) left[2] = 0.0f;
        if (words.w < threshold) right[2] = 0.0f;
    }
}

// The online softmax without its last step: masks scores, and brings m, l and O up to date where a maximum grows.
// Returns the factor of the scores in the exponent: P = 2^(factor s - m), m at most SLACK below the maximum. The
// largest s belongs to the largest factor s, because `factor` is positive where it is not applied here. Arguments as
// for online_softmax(). With PLACES a mask is a window (as_window()); with SCORES the scores are in units of log 2 already.
template <int MORE, int NS, int NO>
__device__ __forceinline__ float lazy_softmax(float (&S)[TILES][NS][4], float (&O)[TILES][NO][4], float (&m)[TILES][2],
                                              float (&l)[TILES][2], const problem &p, bool masked, int my_key,
                                              int my_row) {
    float factor = MORE & SCORES ? 1.0f : p.scale * LOG2_E, left = masked ? 1.0f : factor, high[TILES][2];
    // attended_keys() in fewer registers: row my_row + r attends to the keys before my_key + min(limit + r, all).
    int limit = my_row + 1 + (p.causal ? p.N_kv - p.N_q : p.N_kv) - my_key, all = p.N_kv - my_key;
    // The same with a window: to at most `width` keys from my_key + low + r on, and to none from my_key + all on. A negative
    // difference is a large one without sign.
    int low = my_row + p.N_kv - p.N_q - p.left - my_key, width = p.left + p.right + 1;
    bool grows = false;
    if (MORE & PLACES && masked) // before the maxima: within their loop nvcc spills registers at d 64
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int n = 0; n < NS; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    int first = low + 16 * t + e / 2 * 8;
                    bool attends = (unsigned)(8 * n + e % 2 - first) < (unsigned)max(min(width, all - first), 0);
                    S[t][n][e] = attends ? S[t][n][e] * factor : NONE;
                }
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
                    if (!(MORE & PLACES) && masked)
                        s = 8 * n + e % 2 < min(limit + 16 * t + 8 * i, all) ? s * factor : NONE;
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

template <int D, class T, int MORE>
static __global__ __launch_bounds__(THREADS, BLOCKS) void forward_kernel(const T *Q, // (heads, N_q, d)
                                                                         const T *K, // (heads_kv, N_kv, d)
                                                                         const T *V, // (heads_kv, N_kv, d)
                                                                         T *O,       // (heads, N_q, d)
                                                                         float *L,   // (heads, N_q)
                                                                         problem p,
                                                                         int group) { // heads per head of K and V
    constexpr int Bc = KEYS<D>;
    extern __shared__ uint4 smem[];
    T *Q_smem = (T *)smem;                // (Br, D)
    T *K_smem = Q_smem + Br * D;          // (STAGES, Bc, D)
    T *V_smem = K_smem + STAGES * Bc * D; // (STAGES, Bc, D)
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    size_t head = blockIdx.y, head_kv = MORE & PLACES ? head / group : head;
    // Under a causal mask the last rows attend to the most keys: the longest blocks start first.
    int row0 = (gridDim.x - 1 - blockIdx.x) * Br;
    int my_row = row0 + warp * ROWS + lane / 4;             // and 8, 16 and 24 rows below
    size_t row_q = head * p.N_q, row_kv = head_kv * p.N_kv; // rows before those of this block's sequence
    // A row attends to keys of tiles `first` to `tiles` - 1. All rows attend to all keys of tiles `inner` to `unmasked` - 1.
    int first = 0, inner = 0, tiles, unmasked;
    if constexpr (MORE & PLACES) {
        rows_of own = sequence_rows(p, blockIdx.z);
        if (row0 >= own.N_q) return;
        row_q += own.first, row_kv += own.first;
        p.N_q = own.N_q, p.N_kv = own.N_kv; // from here on the sequence is all that there is
        own.first = 0;
        int last_row = min(row0 + Br, p.N_q) - 1;
        first = first_key(p, own, row0) / Bc, tiles = (end_key(p, own, last_row) + Bc - 1) / Bc;
        inner = (first_key(p, own, last_row) + Bc - 1) / Bc, unmasked = end_key(p, own, row0) / Bc;
    } else {
        tiles = (attended_keys(p, row0 + Br - 1) + Bc - 1) / Bc;
        unmasked = attended_keys(p, row0) / Bc;
    }
    if (!(MORE & SCORES) && p.scale <= 0.0f) unmasked = 0; // lazy_softmax() then applies the factor to all scores
    Q += row_q * p.d, K += row_kv * p.d, V += row_kv * p.d;
    float slope = MORE & SCORES ? alibi_slope(p, blockIdx.y % p.heads) * LOG2_E : 0.0f;
    uint32_t threshold = MORE & DROPS ? dropout_threshold(p) : 0;

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

        int my_key = tile * Bc + lane % 4 * 2;
        if constexpr (MORE & SCORES) change_scores(S_reg, p, slope, my_row + p.N_kv - p.N_q - my_key);
        float factor = lazy_softmax<MORE>(S_reg, O_reg, m_reg, l_reg, p, masked, my_key, my_row);

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
                if constexpr (MORE & DROPS)
                    drop(S_reg[t], 2 * k, p, threshold, my_row + 16 * t, my_key + 16 * k, blockIdx.y, blockIdx.z);
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
    if constexpr (MORE) { // one loop: with more copies of visit() nvcc spills registers
        for (; tile >= first; tile--) visit(tile, tile >= unmasked || tile < inner);
    } else {
        for (; tile >= unmasked; tile--) visit(tile, true);
        for (; tile >= 0; tile--) visit(tile, false);
    }
    if constexpr (MORE & DROPS) {
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int n = 0; n < D / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) O_reg[t][n][e] *= 1.0f / (1.0f - p.dropout); // what is kept stands for all
    }

#pragma unroll
    for (int t = 0; t < TILES; t++)
        store_rows(O + row_q * p.d, L + row_q, O_reg[t], m_reg[t], l_reg[t], my_row + 16 * t, p.N_q, p.d);
}

// Q or K (heads, N, d), each row turned by its position. d / 8 threads in x per row, a head's blocks in x.
template <class T>
static __global__ void rotate_kernel(const T *rows, T *rotated, const float2 *table, int N, int shift, problem p) {
    int row = blockIdx.x * blockDim.y + threadIdx.y, col = threadIdx.x * 8;
    if (row >= N) return;
    int position = row + shift;
    if (p.starts)
        for (int s = 0, i = position; i >= p.starts[s]; s++) position = i - p.starts[s];
    size_t at = ((size_t)blockIdx.y * N + row) * p.d;
    *(uint4 *)(rotated + at + col) = rotated_chunk(rows + at, col, turns_at(table, p, position), p);
}

static size_t workspace_bytes(const problem *p) { // the table, Q and K rotated
    size_t rows = (size_t)p->batch * ((size_t)p->heads * p->N_q + (size_t)kv_heads(p) * p->N_kv);
    return p->rotary ? rotary_bytes(*p) + 2 * rows * p->d : 0;
}

template <int D, class T> static auto kernel_for(const problem *p) {
    if (p->softcap > 0.0f || p->alibi)
        return p->dropout > 0.0f ? forward_kernel<D, T, ALL> : forward_kernel<D, T, SCORES | PLACES>;
    if (p->dropout > 0.0f) return forward_kernel<D, T, DROPS | PLACES>;
    return p->windowed || p->starts || kv_heads(p) < p->heads ? forward_kernel<D, T, PLACES> : forward_kernel<D, T, 0>;
}

static cudaError_t forward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    int heads = p->batch * p->heads, heads_kv = p->batch * kv_heads(p);
    dim3 blocks(ceil_div(p->starts ? p->longest : p->N_q, Br), heads, p->starts ? p->sequences : 1);
    bool plain = !(p->windowed || p->starts || p->softcap > 0.0f || p->alibi || p->dropout > 0.0f || heads_kv < heads);
    return dispatch(p, [&]<int D, class T>() {
        const T *Q = (const T *)t->Q, *K = (const T *)t->K;
        cudaError_t error = cudaSuccess;
        if (p->rotary) {
            float2 *table = (float2 *)workspace;
            T *turned = (T *)((char *)workspace + rotary_bytes(*p)), *turned_K = turned + (size_t)heads * p->N_q * p->d;
            dim3 threads(p->d / 8, 256 / 16);
            error =
                launch(fill_rotary_table, ceil_div(rotary_bytes(*p) / sizeof *table, 256), 256, 0, stream, table, *p);
            if (error == cudaSuccess)
                error = launch(rotate_kernel<T>, dim3(ceil_div(p->N_q, 16), heads), threads, 0, stream, Q, turned,
                               table, p->N_q, p->N_kv - p->N_q, *p);
            if (error == cudaSuccess)
                error = launch(rotate_kernel<T>, dim3(ceil_div(p->N_kv, 16), heads_kv), threads, 0, stream, K, turned_K,
                               table, p->N_kv, 0, *p);
            Q = turned, K = turned_K;
        }
        if (error != cudaSuccess) return error;
        return launch(kernel_for<D, T>(p), blocks, THREADS, BYTES<D>, stream, Q, K, (const T *)t->V, (T *)t->O, t->L,
                      plain ? *p : as_window(*p), p->heads / kv_heads(p));
    });
}

} // namespace fwd

#endif
