// 09_fa2_bwd_warps: FlashAttention-2's backward pass (Dao 2023, Algorithm 2), its five products split between warps.
//
// Idea      a block owns a tile of keys and walks over the queries, so that dK and dV stay in registers. Half of its warps
//           make S, P and dV, the other half dP, dS and dK: the same code on other operands, so that each thread keeps one
//           gradient and not two. dQ is made by all and added to global memory.
// Costs     O(N) memory: two floats a query row. S and P are computed again from Q, K and L.
// Limiter   the multiply-add units: fp32 on CUDA cores.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <cuda_pipeline.h>
#include <math.h>

#include "device.cuh"
#include "ptx.cuh"

constexpr float LOG2_E = 1.44269504f;
constexpr int HALF_WARPS = 4; // warps in each half of a block
constexpr int WARPS = 2 * HALF_WARPS;
constexpr int THREADS = WARPS * WARP;
constexpr int PREPROCESS_ROWS = 4; // rows, and warps, in a block of preprocess

// D >= d: width of the tiles. Br query rows and Bc keys in a tile. How the warps divide each product:
template <int D_, int Br_, int Bc_> struct tiling {
    static constexpr int D = D_, Br = Br_, Bc = Bc_;
    static constexpr int S_UNROLL = 8, UNROLL = 16;        // of S and dP; of dV, dK and dQ
    static constexpr int STRIDE = D + 4;                   // of Q, K, V, dO: 8 rows, 16 bytes of each, lie in 32 banks
    static constexpr int P_STRIDE = Bc + 8;                // of P and dS: 4 rows x 8 columns lie in 32 banks
    static constexpr int S_ROWS = Br / 2, S_KEYS = Bc / 2; // of a warp in S or dP: 2 x 2 warps of a half
    static constexpr int SM = S_ROWS / LANE_ROWS, SN = S_KEYS / LANE_COLS;
    static constexpr int K_COL_WARPS = D > 64 ? 2 : 1; // of a half in dV or dK: the others share the keys
    static constexpr int K_COLS = D / K_COL_WARPS, K_KEYS = Bc / (HALF_WARPS / K_COL_WARPS);
    static constexpr int KN = K_KEYS / 4 / LANE_ROWS, KC = K_COLS / 4 / LANE_COLS; // in fours
    static constexpr int Q_COLS = 4 * LANE_COLS, Q_COL_WARPS = D / Q_COLS; // in dQ: all warps, the others share rows
    static constexpr int Q_ROWS = Br / (WARPS / Q_COL_WARPS), QM = Q_ROWS / LANE_ROWS;
    static constexpr int FLOATS = 2 * Bc * STRIDE + 2 * Br * STRIDE + 2 * Br * P_STRIDE + 2 * Br;
    static_assert(SM > 0 && SN > 0 && KN > 0 && KC > 0 && QM > 0, "every lane has a part of every product");
};

// Where the tiles lie in shared memory.
template <class T> struct tiles {
    float *K, *V;  // (Bc, STRIDE)
    float *Q, *dO; // (Br, STRIDE)
    float *P, *dS; // (Br, P_STRIDE)
    float *L2, *D; // (Br)
    __device__ explicit tiles(float *smem) {
        K = smem;
        V = K + T::Bc * T::STRIDE;
        Q = V + T::Bc * T::STRIDE;
        dO = Q + T::Br * T::STRIDE;
        P = dO + T::Br * T::STRIDE;
        dS = P + T::Br * T::P_STRIDE;
        L2 = dS + T::Br * T::P_STRIDE;
        D = L2 + T::Br;
    }
};

// One head's part of the tensors, and the mask.
struct head_view {
    const float *Q, *K, *V, *dO, *L2, *D;
    int N_q, N_kv, d;
    int shift; // row `row` sees the keys before row + shift + 1
    float scale;
};

// D = rowsum(dO o O); L2 = L log2(e), +inf for a row that sees no key: 2^(S - inf) = 0 is its P. A warp a row. dQ becomes
// 0, to be added to.
static __global__ void preprocess(const float *O,  // (rows, d)
                                  const float *dO, // (rows, d)
                                  const float *L,  // (rows)
                                  float *L2,       // (rows)
                                  float *D,        // (rows)
                                  float *dQ,       // (rows, d)
                                  size_t rows, int d) {
    int lane = threadIdx.x;
    size_t row = (size_t)blockIdx.x * PREPROCESS_ROWS + threadIdx.y;
    if (row >= rows) return; // a warp as a whole
    float sum = 0.0f;
    for (int c = lane; c < d; c += WARP) {
        sum += dO[row * d + c] * O[row * d + c];
        dQ[row * d + c] = 0.0f;
    }
    sum = warp_reduce_sum(sum);
    if (lane != 0) return;
    D[row] = sum;
    L2[row] = L[row] > -INFINITY ? L[row] * LOG2_E : INFINITY;
}

// Start to copy a tile of keys or of query rows. Rows past the end get Q = dO = 0 and L2 = inf, so that P = dS = 0.
template <class T> __device__ __forceinline__ void copy_keys(tiles<T> tile, const head_view &h, int key0) {
    copy_tile<T::Bc, T::D, T::STRIDE, THREADS>(tile.K, h.K, key0, h.N_kv, h.d);
    copy_tile<T::Bc, T::D, T::STRIDE, THREADS>(tile.V, h.V, key0, h.N_kv, h.d);
    __pipeline_commit();
}

template <class T> __device__ __forceinline__ void copy_rows(tiles<T> tile, const head_view &h, int row0) {
    copy_tile<T::Br, T::D, T::STRIDE, THREADS>(tile.Q, h.Q, row0, h.N_q, h.d);
    copy_tile<T::Br, T::D, T::STRIDE, THREADS>(tile.dO, h.dO, row0, h.N_q, h.d);
    __pipeline_commit();
    for (int i = threadIdx.x; i < T::Br; i += THREADS) {
        tile.L2[i] = row0 + i < h.N_q ? h.L2[row0 + i] : INFINITY;
        tile.D[i] = row0 + i < h.N_q ? h.D[row0 + i] : 0.0f;
    }
}

// P and dS of a tile, in shared memory, complete for all at return. The first half computes S and from it P, the second dP
// and from both dS = scale P (dP - D) (docs/math.md, eq. 45, 46).
template <class T>
__device__ __forceinline__ void make_P_and_dS(tiles<T> tile, const head_view &h, int half, int warp, int lane, int row0,
                                              int key0) {
    int my_row = warp / 2 * T::S_ROWS + lane_row(lane), my_key = warp % 2 * T::S_KEYS + lane_col(lane);
    float S_reg[T::SM][T::SN] = {}; // or dP
    multiply_rows<T::SM, T::SN, T::D, T::S_UNROLL>(S_reg, (half == 0 ? tile.Q : tile.dO) + my_row * T::STRIDE,
                                                   (half == 0 ? tile.K : tile.V) + my_key * T::STRIDE, T::STRIDE);
    if (half == 0) {
        bool masked = key0 + T::Bc > min(h.N_kv, row0 + h.shift + 1);
        float factor = h.scale * LOG2_E;
#pragma unroll
        for (int i = 0; i < T::SM; i++) {
            int row = my_row + LANE_ROWS * i, visible = min(h.N_kv, row0 + row + h.shift + 1);
            float L2 = tile.L2[row];
#pragma unroll
            for (int j = 0; j < T::SN; j++) {
                int key = my_key + LANE_COLS * j;
                float weight = exp2_approx(S_reg[i][j] * factor - L2);
                tile.P[row * T::P_STRIDE + key] = masked && key0 + key >= visible ? 0.0f : weight;
            }
        }
    }
    __syncthreads(); // P is there for the other half
    if (half == 1) {
#pragma unroll
        for (int i = 0; i < T::SM; i++) {
            int row = my_row + LANE_ROWS * i;
            float D = tile.D[row];
#pragma unroll
            for (int j = 0; j < T::SN; j++) {
                int at = row * T::P_STRIDE + my_key + LANE_COLS * j;
                tile.dS[at] = h.scale * tile.P[at] * (S_reg[i][j] - D);
            }
        }
    }
    __syncthreads(); // P and dS are there for all
}

__device__ inline head_view view(const tensors &t, const float *L2, const float *D, const problem &p, size_t head) {
    size_t rows = head * p.N_q, keys = head * p.N_kv;
    return {t.Q + rows * p.d,
            t.K + keys * p.d,
            t.V + keys * p.d,
            t.dO + rows * p.d,
            L2 + rows,
            D + rows,
            p.N_q,
            p.N_kv,
            p.d,
            p.causal ? p.N_kv - p.N_q : p.N_kv,
            p.scale};
}

// dQ += dS K in global memory.
template <class T>
__device__ __forceinline__ void add_dQ(tiles<T> tile, float *dQ, const head_view &h, int q_row, int q_col, int row0) {
    float dQ_reg[T::QM][4] = {};
    multiply_columns<T::QM, 1, T::Bc, T::UNROLL>(dQ_reg, tile.dS + q_row * T::P_STRIDE, T::P_STRIDE, tile.K + q_col,
                                                 T::STRIDE);
#pragma unroll
    for (int i = 0; i < T::QM; i++) {
        int row = row0 + q_row + LANE_ROWS * i;
        if (row < h.N_q) add_columns(dQ + (size_t)row * h.d, q_col, h.d, dQ_reg[i]);
    }
}

// dK and dV of a block's keys; dQ is added to when ADD_DQ.
template <class T, bool ADD_DQ>
static __global__ __launch_bounds__(THREADS) void backward_keys(tensors t, const float *L2, const float *D, problem p) {
    extern __shared__ float4 smem[];
    tiles<T> tile((float *)smem);
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    int half = warp / HALF_WARPS, half_warp = warp % HALF_WARPS;
    int lane_m = lane_row(lane), lane_n = lane_col(lane);
    size_t head = blockIdx.y;
    head_view h = view(t, L2, D, p, head);
    int key0 = blockIdx.x * T::Bc;
    // This thread's first key and column of dV or dK, its first row and its column of dQ.
    int k_key = half_warp / T::K_COL_WARPS * T::K_KEYS + 4 * lane_m;
    int k_col = half_warp % T::K_COL_WARPS * T::K_COLS + 4 * lane_n;
    int q_row = warp / T::Q_COL_WARPS * T::Q_ROWS + lane_m, q_col = warp % T::Q_COL_WARPS * T::Q_COLS + 4 * lane_n;
    float sum_reg[4 * T::KN][4 * T::KC] = {}; // dV of the first half, dK of the second

    int first_row = max(0, key0 - h.shift) / T::Br * T::Br; // rows before this one see none of the keys
    copy_keys(tile, h, key0);
    copy_rows(tile, h, first_row);
    for (int row0 = first_row; row0 < h.N_q; row0 += T::Br) {
        __pipeline_wait_prior(0);
        __syncthreads(); // Q, dO, L2, D (at first K and V) are there for all; all are done with dS
        make_P_and_dS(tile, h, half, half_warp, lane, row0, key0);

        // dV += P^T dO, dK += dS^T Q
        multiply_transposed<T::KN, T::KC, T::Br, T::UNROLL>(sum_reg, (half == 0 ? tile.P : tile.dS) + k_key,
                                                            T::P_STRIDE, (half == 0 ? tile.dO : tile.Q) + k_col,
                                                            T::STRIDE);
        __syncthreads(); // all are done with Q, dO, L2 and D, and may see them overwritten
        if (row0 + T::Br < h.N_q) copy_rows(tile, h, row0 + T::Br);
        if constexpr (ADD_DQ) add_dQ(tile, t.dQ + head * h.N_q * h.d, h, q_row, q_col, row0);
    }

    float *out = half == 0 ? t.dV : t.dK;
#pragma unroll
    for (int i = 0; i < 4 * T::KN; i++) {
        int key = key0 + k_key + i / 4 * 4 * LANE_ROWS + i % 4;
        if (key >= h.N_kv) continue;
#pragma unroll
        for (int c = 0; c < T::KC; c++)
            store_columns(out + (head * h.N_kv + key) * h.d, k_col + 4 * LANE_COLS * c, h.d, sum_reg[i] + 4 * c);
    }
}

// dQ of a block's query rows, the same in every run: nobody else adds to it. S and dP are computed once more for this.
template <class T>
static __global__ __launch_bounds__(THREADS) void backward_queries(tensors t, const float *L2, const float *D,
                                                                   problem p) {
    extern __shared__ float4 smem[];
    tiles<T> tile((float *)smem);
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    int half = warp / HALF_WARPS, half_warp = warp % HALF_WARPS;
    size_t head = blockIdx.y;
    head_view h = view(t, L2, D, p, head);
    int row0 = (gridDim.x - 1 - blockIdx.x) * T::Br; // under a causal mask, the longest blocks start first
    int q_row = warp / T::Q_COL_WARPS * T::Q_ROWS + lane_row(lane);
    int q_col = warp % T::Q_COL_WARPS * T::Q_COLS + 4 * lane_col(lane);
    float dQ_reg[T::QM][4] = {};

    int end = max(0, min(h.N_kv, row0 + T::Br + h.shift)); // keys that the block's last row sees
    copy_rows(tile, h, row0);
    for (int key0 = 0; key0 < end; key0 += T::Bc) {
        copy_keys(tile, h, key0);
        __pipeline_wait_prior(0);
        __syncthreads(); // K and V (at first Q, dO, L2 and D) are there for all
        make_P_and_dS(tile, h, half, half_warp, lane, row0, key0);
        multiply_columns<T::QM, 1, T::Bc, T::UNROLL>(dQ_reg, tile.dS + q_row * T::P_STRIDE, T::P_STRIDE, tile.K + q_col,
                                                     T::STRIDE);
        __syncthreads(); // all are done with K, V and dS, and may see them overwritten
    }
    __pipeline_wait_prior(0); // a block that saw no key has copies under way
#pragma unroll
    for (int i = 0; i < T::QM; i++) {
        int row = row0 + q_row + LANE_ROWS * i;
        if (row < h.N_q) store_columns(t.dQ + (head * h.N_q + row) * h.d, q_col, h.d, dQ_reg[i]);
    }
}

// ---- on the host -------------------------------------------------------------------------------------------------------

// D, then L2.
static size_t query_rows(const problem *p) { return (size_t)p->batch * p->heads * p->N_q; }
static size_t workspace_bytes(const problem *p) { return 2 * query_rows(p) * sizeof(float); }

template <class T, class Kernel> static cudaError_t allow_shared(Kernel *kernel) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, T::FLOATS * sizeof(float));
}

// TK is the tiling of a block that owns keys, TQ of one that owns query rows.
template <class TK, class TQ>
static cudaError_t launch(const problem *p, const tensors *t, float *D, bool deterministic, cudaStream_t stream) {
    float *L2 = D + query_rows(p);
    dim3 row_blocks((unsigned)((query_rows(p) + PREPROCESS_ROWS - 1) / PREPROCESS_ROWS)), block(WARP, PREPROCESS_ROWS);
    preprocess<<<row_blocks, block, 0, stream>>>(t->O, t->dO, t->L, L2, D, t->dQ, query_rows(p), p->d);

    constexpr int KEY_BYTES = TK::FLOATS * sizeof(float), QUERY_BYTES = TQ::FLOATS * sizeof(float);
    dim3 key_blocks(ceil_div(p->N_kv, TK::Bc), p->batch * p->heads);
    cudaError_t error = allow_shared<TK>(backward_keys<TK, true>);
    if (error == cudaSuccess) error = allow_shared<TK>(backward_keys<TK, false>);
    if (error == cudaSuccess) error = allow_shared<TQ>(backward_queries<TQ>);
    if (error != cudaSuccess) return error;
    if (deterministic) {
        dim3 query_blocks(ceil_div(p->N_q, TQ::Br), p->batch * p->heads);
        backward_keys<TK, false><<<key_blocks, THREADS, KEY_BYTES, stream>>>(*t, L2, D, *p);
        backward_queries<TQ><<<query_blocks, THREADS, QUERY_BYTES, stream>>>(*t, L2, D, *p);
    } else {
        backward_keys<TK, true><<<key_blocks, THREADS, KEY_BYTES, stream>>>(*t, L2, D, *p);
    }
    return cudaGetLastError();
}

// The larger tilings where the card's blocks may have that much shared memory.
template <class LargeK, class LargeQ, class SmallK, class SmallQ>
static cudaError_t launch_fitting(const problem *p, const tensors *t, float *D, bool deterministic,
                                  cudaStream_t stream) {
    static_assert(SmallK::FLOATS * sizeof(float) <= 64 * 1024, "the least that cards since 7.5 give a block");
    static_assert(SmallQ::FLOATS * sizeof(float) <= 64 * 1024, "the least that cards since 7.5 give a block");
    int device = 0, shared_bytes = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error != cudaSuccess) return error;
    constexpr size_t needed = (LargeK::FLOATS > LargeQ::FLOATS ? LargeK::FLOATS : LargeQ::FLOATS) * sizeof(float);
    return needed <= (size_t)shared_bytes ? launch<LargeK, LargeQ>(p, t, D, deterministic, stream)
                                          : launch<SmallK, SmallQ>(p, t, D, deterministic, stream);
}

static cudaError_t run(const problem *p, const tensors *t, float *D, bool deterministic, cudaStream_t stream) {
    if (p->d <= 32)
        return launch_fitting<tiling<32, 64, 128>, tiling<32, 128, 64>, tiling<32, 32, 64>, tiling<32, 32, 64>>(
            p, t, D, deterministic, stream);
    if (p->d <= 64)
        return launch_fitting<tiling<64, 64, 128>, tiling<64, 128, 64>, tiling<64, 16, 64>, tiling<64, 16, 64>>(
            p, t, D, deterministic, stream);
    return launch_fitting<tiling<128, 64, 64>, tiling<128, 64, 64>, tiling<128, 16, 32>, tiling<128, 16, 32>>(
        p, t, D, deterministic, stream);
}

static cudaError_t backward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    return run(p, t, (float *)workspace, false, stream);
}

static cudaError_t backward_deterministic(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    return run(p, t, (float *)workspace, true, stream);
}

extern "C" const step step_09_fa2_bwd_warps = {
    .name = "09_fa2_bwd_warps",
    .idea = "FlashAttention-2 backward: a block a key tile, products to warps",
    .backward = backward,
    .backward_deterministic = backward_deterministic,
    .workspace_bytes = workspace_bytes,
};
