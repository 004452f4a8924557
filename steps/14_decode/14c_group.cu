// 14c_group: the query heads that share K and V are rows of one tile.
//
// Idea      Q of the heads of a group is one matrix: its rows lie one after the other. A block reads a tile of K and V
//           once for up to 64 of these rows, so that a key costs its bytes once per group and not once per head.
// Costs     O(N) memory; a part of O and L per split.
// Limiter   The bytes of K and V.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"
#include "tensor.cuh"

#include "splits.cuh"
#include "tiles.cuh"

constexpr int WARPS = 4, THREADS = WARPS * WARP; // per block
constexpr int TILE = 16;  // rows of the row tile of one mma; rows past the last one are computed and not stored
constexpr int Bc = 64;    // keys per tile
constexpr int STAGES = 3; // tiles of K and of V in shared memory

template <int D> constexpr int BLOCKS = D == 64 ? 4 : 2; // per multiprocessor

// Shared memory: K and V (STAGES, Bc, D), 2 bytes per element. At the end O (WARPS, TILE, PITCH) lies there, m and l
// (WARPS, TILE), in fp32; a row of O is padded so that four rows of eight bytes per lane meet no bank twice.
template <int D> constexpr size_t BYTES = 2 * 2 * STAGES *Bc *D;
template <int D> constexpr int PITCH = D + 8;
static_assert(BYTES<128> <= LEAST_SHARED_BYTES_8_0, "the tiles fit into the shared memory of every card since 8.0");
static_assert(4 * WARPS * TILE * (PITCH<64> + 2) <= BYTES<64>,
              "what the warps merge fits into the memory of the tiles");

// TILES row tiles per block, 1, 2 or 4: that many warps read the same keys, and the tile's keys are divided by the rest.
template <int D, int TILES, class T>
static __global__ __launch_bounds__(THREADS, BLOCKS<D>) void decode_kernel(const T *Q,    // (heads, N_q, d)
                                                                           const T *K,    // (heads_kv, N_kv, d)
                                                                           const T *V,    // (heads_kv, N_kv, d)
                                                                           T *O,          // (heads, N_q, d)
                                                                           float *L,      // (heads, N_q)
                                                                           float *O_part, // (splits, heads, N_q, d)
                                                                           float *L_part, // (splits, heads, N_q)
                                                                           problem p,
                                                                           int group,    // heads per head of K and V
                                                                           int chunks) { // blocks for a group's rows
    constexpr int ROWS = TILES * TILE, PARTS = WARPS / TILES, KEYS = Bc / PARTS; // per block; of the keys; per warp
    extern __shared__ uint4 smem[];
    T *K_smem = (T *)smem;                // (STAGES, Bc, D)
    T *V_smem = K_smem + STAGES * Bc * D; // (STAGES, Bc, D)
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    size_t head_kv = blockIdx.y;
    int split = blockIdx.x / chunks, splits = gridDim.x / chunks, of_group = blockIdx.x % chunks * ROWS;
    int rows = min(ROWS, group * p.N_q - of_group), my_row = warp % TILES * TILE + lane / 4; // and 8 rows below
    size_t row0 = head_kv * group * p.N_q + of_group;
    Q += row0 * p.d;
    K += head_kv * p.N_kv * p.d;
    V += head_kv * p.N_kv * p.d;
    int tiles = ceil_div(p.N_kv, Bc), share = ceil_div(tiles, splits);
    int first = min(tiles, split * share), end = min(tiles, first + share); // tiles of this block, maybe none

    auto copy = [&](int tile) {
        if (tile < end) {
            int stage = tile % STAGES * Bc * D;
            copy_rows<D, Bc, THREADS>(K_smem + stage, K, tile * Bc, p.N_kv, p.d);
            copy_rows<D, Bc, THREADS>(V_smem + stage, V, tile * Bc, p.N_kv, p.d);
        }
        __pipeline_commit(); // an empty one past the last tile, so that the count of the waits below holds
    };
    for (int i = 0; i < STAGES - 1; i++) copy(first + i);

    uint32_t Q_reg[D / 16][4];
    load_A<D>(Q_reg, Q + warp % TILES * TILE * p.d, rows - warp % TILES * TILE, p.d);
    int limit[2];
    for (int i = 0; i < 2; i++) limit[i] = attended_keys(p, (of_group + my_row + 8 * i) % p.N_q);
    // Lane l names row l % 8 of the quadrant for register l / 8 (tensor.cuh).
    int K_lane = place<D>(warp / TILES * KEYS + lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8);
    int V_lane = place<D>(warp / TILES * KEYS + lane % 16, lane / 16 * 8);
    float O_reg[D / 8][4] = {}, m_reg[2] = {NONE, NONE}, l_reg[2] = {};
    for (int tile = first; tile < end; tile++) {
        int stage = tile % STAGES * Bc * D;
        __pipeline_wait_prior(STAGES - 2); // this thread's part of this tile has arrived
        __syncthreads();                   // every thread's part has; no warp still reads the stage that is filled next
        copy(tile + STAGES - 1);

        float S_reg[KEYS / 8][4] = {};
#pragma unroll
        for (int k = 0; k < D / 16; k++)
#pragma unroll
            for (int n = 0; n < KEYS / 16; n++) {
                uint32_t K_reg[4];
                ldmatrix_x4(K_reg, K_smem + ((stage + K_lane) ^ 16 * k) + 16 * n * D);
                mma_m16n8k16<T>(S_reg[2 * n], Q_reg[k], K_reg[0], K_reg[1]);
                mma_m16n8k16<T>(S_reg[2 * n + 1], Q_reg[k], K_reg[2], K_reg[3]);
            }
        softmax(S_reg, O_reg, m_reg, l_reg, p.scale * LOG2_E, limit, tile * Bc + warp / TILES * KEYS + lane % 4 * 2);
#pragma unroll
        for (int k = 0; k < KEYS / 16; k++) {
            uint32_t P_reg[4];
            pack_A<T>(P_reg, S_reg[2 * k], S_reg[2 * k + 1]);
#pragma unroll
            for (int n = 0; n < D / 16; n++) {
                uint32_t V_reg[4];
                ldmatrix_x4_trans(V_reg, V_smem + ((stage + V_lane) ^ 16 * n) + 16 * k * D);
                mma_m16n8k16<T>(O_reg[2 * n], P_reg, V_reg[0], V_reg[1]);
                mma_m16n8k16<T>(O_reg[2 * n + 1], P_reg, V_reg[2], V_reg[3]);
            }
        }
    }

    // Merge the warps' keys: O = sum of 2^(m_w - m) O_w over sum of 2^(m_w - m) l_w, with m the largest m_w.
    float *O_smem = (float *)smem;                    // (PARTS, ROWS, PITCH)
    float *m_smem = O_smem + WARPS * TILE * PITCH<D>; // (PARTS, ROWS)
    float *l_smem = m_smem + WARPS * TILE;            // (PARTS, ROWS)
    __syncthreads();                                  // no warp still reads a tile
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int row = warp / TILES * ROWS + my_row + 8 * i;
        float sum = quad_sum(l_reg[i]);
        if (lane % 4 == 0) m_smem[row] = m_reg[i], l_smem[row] = sum;
#pragma unroll
        for (int n = 0; n < D / 8; n++)
            *(float2 *)(O_smem + row * PITCH<D> + 8 * n + lane % 4 * 2) =
                make_float2(O_reg[n][2 * i], O_reg[n][2 * i + 1]);
    }
    __syncthreads(); // every warp's part is there
    for (int i = threadIdx.x; i < rows * D / 4; i += THREADS) {
        int row = i / (D / 4), col = i % (D / 4) * 4;
        float m = NONE, l = 0.0f, sum[4] = {};
        for (int w = 0; w < PARTS; w++) m = fmaxf(m, m_smem[w * ROWS + row]);
        for (int w = 0; w < PARTS; w++) {
            float weight = exp2_approx(m_smem[w * ROWS + row] - m), part[4];
            l += weight * l_smem[w * ROWS + row];
            load4(part, O_smem + (w * ROWS + row) * PITCH<D> + col);
            for (int c = 0; c < 4; c++) sum[c] += weight * part[c];
        }
        bool any = m > NONE || isnan(l); // the row attends to at least one key
        float inverse = any ? 1.0f / l : 0.0f;
        size_t to = row0 + row;
        if (splits > 1) {
            to += (size_t)split * gridDim.y * group * p.N_q;
            if (col < p.d)
                *(float4 *)(O_part + to * p.d + col) =
                    make_float4(sum[0] * inverse, sum[1] * inverse, sum[2] * inverse, sum[3] * inverse);
            if (col == 0) L_part[to] = any ? m + log2f(l) : -INFINITY; // in units of log 2
            continue;
        }
        if (col < p.d)
            *(uint2 *)(O + to * p.d + col) =
                make_uint2(pack<T>(sum[0] * inverse, sum[1] * inverse), pack<T>(sum[2] * inverse, sum[3] * inverse));
        if (col == 0) L[to] = any ? (m + log2f(l)) * LN_2 : -INFINITY;
    }
}

// How a problem is divided: rows of a group per block, blocks for a group's rows, splits.
struct division {
    int rows, chunks, splits;
};

static cudaError_t divide(const problem *p, division *by) {
    int device = 0, multiprocessors = 0, rows = p->heads / kv_heads(p) * p->N_q;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return error;
    int per = p->d <= 64 ? BLOCKS<64> : BLOCKS<128>; // blocks per multiprocessor
    by->rows = rows <= TILE ? TILE : rows <= 2 * TILE ? 2 * TILE : WARPS * TILE;
    by->chunks = ceil_div(rows, by->rows);
    by->splits =
        best_splits(p->batch * kv_heads(p) * by->chunks, min(rows, by->rows), p->N_kv, Bc, multiprocessors, per);
    return cudaSuccess;
}

static size_t rows_of(const problem *p) { return (size_t)p->batch * p->heads * p->N_q; }

static size_t workspace_bytes(const problem *p) {
    division by;
    return divide(p, &by) == cudaSuccess && by.splits > 1 ? by.splits * rows_of(p) * (p->d + 1) * sizeof(float) : 0;
}

static cudaError_t forward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    division by;
    cudaError_t error = divide(p, &by);
    if (error != cudaSuccess) return error;
    float *O_part = (float *)workspace, *L_part = O_part + by.splits * rows_of(p) * p->d;
    dim3 blocks(by.splits * by.chunks, p->batch * kv_heads(p));
    return dispatch(p, [&]<int D, class T>() {
        auto kernel = by.rows == TILE       ? decode_kernel<D, 1, T>
                      : by.rows == 2 * TILE ? decode_kernel<D, 2, T>
                                            : decode_kernel<D, WARPS, T>;
        error = launch(kernel, blocks, THREADS, BYTES<D>, stream, (const T *)t->Q, (const T *)t->K, (const T *)t->V,
                       (T *)t->O, t->L, O_part, L_part, *p, p->heads / kv_heads(p), by.chunks);
        if (by.splits == 1 || error != cudaSuccess) return error;
        return launch(combine_kernel<WARPS, T>, (unsigned)rows_of(p), THREADS, 0, stream, O_part, L_part, (T *)t->O,
                      t->L, by.splits, p->d);
    });
}

extern "C" const step step_14c_group = {
    .name = "14c_group",
    .idea = "split-KV, with the heads of a group as rows of one tile",
    .forward = forward,
    .workspace_bytes = workspace_bytes,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .grouped_heads = true,
    .most_queries = 8,
    .compute_capability = 80,
};
