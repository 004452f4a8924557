// 09i_vector_reductions: one reduction of 16 bytes adds four elements of dQ.
//
// Idea      A thread's register tile of dQ has four neighbouring columns. From compute capability 9.0 on, one
//           instruction adds all four to global memory: a quarter of the requests.
// Costs     Nothing; older cards, and d that is no multiple of 4, add the four elements one by one.
// Limiter   Waiting. The largest recorded wait is for loads from shared memory, probably for their latency. For each
//           of a thread's two register tiles, dV and dK, 3 loads of 16 bytes feed 32 FMAs.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <cuda_pipeline.h>
#include <math.h>

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"
#include "ptx.cuh"

constexpr float LOG2_E = 1.44269504f;
constexpr int WARPS = 8, THREADS = WARPS * WARP; // per block

// D >= d columns, Br query rows and Bc keys per tile, and how the warps divide each product.
template <int D_, int Br_, int Bc_> struct tiling {
    static constexpr int D = D_, Br = Br_, Bc = Bc_;
    static constexpr int STRIDE = D + 4;    // of Q, K, V, dO: 8 rows, 16 bytes of each, lie in 32 banks
    static constexpr int P_STRIDE = Bc + 8; // of P and dS: 4 rows x 8 columns lie in 32 banks
    // S and dP: the warps as 4 x 2; SM x SN elements per thread.
    static constexpr int S_ROWS = Br / 4, S_KEYS = Bc / 2;
    static constexpr int SM = S_ROWS / LANE_ROWS, SN = S_KEYS / LANE_COLS;
    // dV and dK: K_COL_WARPS warps divide the columns, the others the keys; KN keys x KC columns per thread.
    static constexpr int K_COL_WARPS = 128 / Bc, K_COLS = D / K_COL_WARPS;
    static constexpr int K_KEYS = Bc / (WARPS / K_COL_WARPS);
    static constexpr int KN = K_KEYS / LANE_ROWS, KC = K_COLS / LANE_COLS;
    // dQ: Q_COL_WARPS warps divide the columns, the others the query rows; QM rows x 4 columns per thread.
    static constexpr int Q_COLS = 4 * LANE_COLS, Q_COL_WARPS = D / Q_COLS;
    static constexpr int Q_ROWS = Br / (WARPS / Q_COL_WARPS), QM = Q_ROWS / LANE_ROWS;
    static constexpr int S_UNROLL = 8, UNROLL = 16; // of S and dP; of dV, dK and dQ
    static_assert(SM > 0 && SN > 0 && KN > 0 && KC > 0 && QM > 0, "every lane has a part of every product");
    static constexpr size_t BYTES = (2 * Bc * STRIDE + 2 * Br * STRIDE + 2 * Br * P_STRIDE + 2 * Br) * sizeof(float);
};
using tiling_64 = tiling<64, 64, 128>;
using tiling_64_small = tiling<64, 16, 64>;
using tiling_128 = tiling<128, 64, 64>;
using tiling_128_small = tiling<128, 16, 32>;
static_assert(tiling_64_small::BYTES <= LEAST_SHARED_BYTES && tiling_128_small::BYTES <= LEAST_SHARED_BYTES,
              "every card has a tiling that fits into its shared memory");

// The tiles in dynamic shared memory.
template <class T> struct tiles {
    float *K, *V;  // (Bc, STRIDE)
    float *Q, *dO; // (Br, STRIDE)
    float *P, *dS; // (Br, P_STRIDE)
    float *L2, *D; // (Br)
    __device__ tiles() {
        extern __shared__ float4 smem[];
        K = (float *)smem;
        V = K + T::Bc * T::STRIDE;
        Q = V + T::Bc * T::STRIDE;
        dO = Q + T::Br * T::STRIDE;
        P = dO + T::Br * T::STRIDE;
        dS = P + T::Br * T::P_STRIDE;
        L2 = dS + T::Br * T::P_STRIDE;
        D = L2 + T::Br;
    }
};

// D = rowsum(dO o O), and L2 = L log2(e): P is then one FMA and one power of 2. A query row that attends to no key
// gets L2 = inf, so that its P = 2^(S - inf) = 0. dQ becomes 0, to be added to. One warp per query row.
static __global__ void preprocess(tensors t,
                                  float *L2, // (heads, N_q)
                                  float *D,  // (heads, N_q)
                                  problem p) {
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    int row_in_head = blockIdx.x * WARPS + warp;
    if (row_in_head >= p.N_q) return; // the whole warp returns, so the shuffles below find all 32 lanes
    size_t row = (size_t)blockIdx.y * p.N_q + row_in_head;
    float sum = 0.0f;
    for (int c = lane; c < p.d; c += WARP) {
        sum += t.dO[row * p.d + c] * t.O[row * p.d + c];
        t.dQ[row * p.d + c] = 0.0f;
    }
    sum = warp_reduce_sum(sum);
    if (lane != 0) return;
    D[row] = sum;
    L2[row] = t.L[row] != -INFINITY ? t.L[row] * LOG2_E : INFINITY;
}

// Start to copy a key tile.
template <class T>
__device__ __forceinline__ void copy_keys(tiles<T> tile, const tensors &t, const problem &p, int key0) {
    copy_tile_checked<T::Bc, T::D, T::STRIDE, THREADS>(tile.K, t.K, key0, p.N_kv, p.d);
    copy_tile_checked<T::Bc, T::D, T::STRIDE, THREADS>(tile.V, t.V, key0, p.N_kv, p.d);
    __pipeline_commit();
}

// Start to copy a query tile. Rows past the end get Q = dO = 0 and L2 = inf, so that P = dS = 0.
template <class T>
__device__ __forceinline__ void copy_rows(tiles<T> tile, const tensors &t, const float *L2, const float *D,
                                          const problem &p, int row0) {
    copy_tile_checked<T::Br, T::D, T::STRIDE, THREADS>(tile.Q, t.Q, row0, p.N_q, p.d);
    copy_tile_checked<T::Br, T::D, T::STRIDE, THREADS>(tile.dO, t.dO, row0, p.N_q, p.d);
    __pipeline_commit();
    for (int i = threadIdx.x; i < T::Br; i += THREADS) {
        tile.L2[i] = row0 + i < p.N_q ? L2[row0 + i] : INFINITY;
        tile.D[i] = row0 + i < p.N_q ? D[row0 + i] : 0.0f;
    }
}

// P and dS = scale P o (dP - D) of one tile, in shared memory. Ends with a barrier: every thread may read all of
// them.
template <class T>
__device__ __forceinline__ void make_P_and_dS(tiles<T> tile, const problem &p, int warp, int lane, int row0, int key0) {
    int my_row = warp / 2 * T::S_ROWS + lane_row(lane), my_key = warp % 2 * T::S_KEYS + lane_col(lane);
    float S_reg[T::SM][T::SN] = {}, dP_reg[T::SM][T::SN] = {}; // S_reg then holds P
    multiply_rows<T::D, T::S_UNROLL>(S_reg, tile.Q + my_row * T::STRIDE, tile.K + my_key * T::STRIDE, T::STRIDE);
    bool masked = key0 + T::Bc > attended_keys(p, row0);
    float factor = p.scale * LOG2_E;
#pragma unroll
    for (int i = 0; i < T::SM; i++) {
        int row = my_row + LANE_ROWS * i, attended = attended_keys(p, row0 + row);
        float L2 = tile.L2[row];
#pragma unroll
        for (int j = 0; j < T::SN; j++) {
            int key = my_key + LANE_COLS * j;
            float weight = exp2_approx(S_reg[i][j] * factor - L2);
            S_reg[i][j] = masked && key0 + key >= attended ? 0.0f : weight;
            tile.P[row * T::P_STRIDE + key] = S_reg[i][j];
        }
    }
    multiply_rows<T::D, T::S_UNROLL>(dP_reg, tile.dO + my_row * T::STRIDE, tile.V + my_key * T::STRIDE, T::STRIDE);
#pragma unroll
    for (int i = 0; i < T::SM; i++) {
        int row = my_row + LANE_ROWS * i;
        float D = tile.D[row];
#pragma unroll
        for (int j = 0; j < T::SN; j++)
            tile.dS[row * T::P_STRIDE + my_key + LANE_COLS * j] = p.scale * S_reg[i][j] * (dP_reg[i][j] - D);
    }
    __syncthreads(); // the products below read the P and dS of all threads
}

// dQ += dS K, in global memory: other blocks add to the same rows.
template <class T>
__device__ __forceinline__ void add_dQ(tiles<T> tile, float *dQ, const problem &p, int q_row, int q_col, int row0) {
    float dQ_reg[T::QM][4] = {};
    multiply_columns<T::Bc, T::UNROLL>(dQ_reg, tile.dS + q_row * T::P_STRIDE, T::P_STRIDE, tile.K + q_col, T::STRIDE);
#pragma unroll
    for (int i = 0; i < T::QM; i++) {
        int row = row0 + q_row + LANE_ROWS * i;
        if (row < p.N_q) add_columns(dQ + (size_t)row * p.d, q_col, p.d, dQ_reg[i]);
    }
}

// dK and dV of one block's keys, and the block's part of dQ.
template <class T>
static __global__ __launch_bounds__(THREADS) void backward_keys(tensors t,
                                                                const float *L2, // (heads, N_q)
                                                                const float *D,  // (heads, N_q)
                                                                problem p) {
    tiles<T> tile;
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    int key0 = blockIdx.x * T::Bc;
    select_head(t, L2, D, p, blockIdx.y);
    // This thread's first key and column of dV and dK, its first query row and its column of dQ.
    int k_key = warp / T::K_COL_WARPS * T::K_KEYS + 4 * lane_row(lane);
    int k_col = warp % T::K_COL_WARPS * T::K_COLS + 4 * lane_col(lane);
    int q_row = warp / T::Q_COL_WARPS * T::Q_ROWS + lane_row(lane);
    int q_col = warp % T::Q_COL_WARPS * T::Q_COLS + 4 * lane_col(lane);
    float dV_reg[T::KN][T::KC] = {}, dK_reg[T::KN][T::KC] = {};

    int first_row = first_attending_query(p, key0) / T::Br * T::Br; // of the first query tile that attends to a key
    copy_keys(tile, t, p, key0);
    copy_rows(tile, t, L2, D, p, first_row);
    for (int row0 = first_row; row0 < p.N_q; row0 += T::Br) {
        __pipeline_wait_prior(0);
        __syncthreads(); // all threads' copies have arrived; no thread still reads the last tile's dS in add_dQ
        make_P_and_dS(tile, p, warp, lane, row0, key0);

        // dV += P^T dO, dK += dS^T Q
        multiply_transposed<T::Br, T::UNROLL>(dV_reg, tile.P + k_key, T::P_STRIDE, tile.dO + k_col, T::STRIDE);
        multiply_transposed<T::Br, T::UNROLL>(dK_reg, tile.dS + k_key, T::P_STRIDE, tile.Q + k_col, T::STRIDE);
        __syncthreads(); // no thread still reads Q, dO, L2 and D, so the next tile may overwrite them
        if (row0 + T::Br < p.N_q) copy_rows(tile, t, L2, D, p, row0 + T::Br);
        add_dQ(tile, t.dQ, p, q_row, q_col, row0);
    }

#pragma unroll
    for (int i = 0; i < T::KN; i++) {
        int key = key0 + k_key + i / 4 * 4 * LANE_ROWS + i % 4;
        if (key >= p.N_kv) continue;
#pragma unroll
        for (int c = 0; c < T::KC; c += 4) {
            int col = k_col + LANE_COLS * c;
            store_columns(t.dV + (size_t)key * p.d, col, p.d, dV_reg[i] + c);
            store_columns(t.dK + (size_t)key * p.d, col, p.d, dK_reg[i] + c);
        }
    }
}

// ---- on the host

static size_t query_rows(const problem *p) { return (size_t)p->batch * p->heads * p->N_q; }
static size_t workspace_bytes(const problem *p) { return 2 * query_rows(p) * sizeof(float); } // L2 and D

template <class T> static cudaError_t run(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    float *L2 = (float *)workspace, *D = L2 + query_rows(p);
    unsigned heads = p->batch * p->heads;
    cudaError_t error = launch(preprocess, dim3(ceil_div(p->N_q, WARPS), heads), THREADS, 0, stream, *t, L2, D, *p);
    if (error != cudaSuccess) return error;
    dim3 blocks(ceil_div(p->N_kv, T::Bc), heads);
    return launch(backward_keys<T>, blocks, THREADS, T::BYTES, stream, *t, L2, D, *p);
}

template <class Large, class Small> static attention_pass *fitting() {
    return shared_memory_fits(Large::BYTES) ? run<Large> : run<Small>;
}

static cudaError_t backward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    attention_pass *pass = p->d <= 64 ? fitting<tiling_64, tiling_64_small>() : fitting<tiling_128, tiling_128_small>();
    return pass(p, t, workspace, stream);
}

extern "C" const step step_09i_vector_reductions = {
    .name = "09i_vector_reductions",
    .idea = "one reduction of 16 bytes adds four elements of dQ",
    .backward = backward,
    .workspace_bytes = workspace_bytes,
};
