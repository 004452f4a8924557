// 09d_tile_of_dQ: a register tile for dQ, too, so that every number loaded feeds several FMAs in all five products.
//
// Idea      A thread owns QM x 4 elements of the block's part of dQ: for each key it loads QM elements of dS and 4 of
//           K, and performs 4 QM FMAs: 8 loads feed 16 FMAs. In 09c two loads fed one FMA.
// Costs     16 accumulators per thread while dQ is computed.
// Limiter   Waiting. The largest recorded wait is a fixed latency: a warp waits for its instruction before.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

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
    static constexpr int STRIDE = D + 1;    // of Q, K, V, dO: neighbouring rows begin in neighbouring banks
    static constexpr int P_STRIDE = Bc + 1; // of P and dS, likewise
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
        extern __shared__ float smem[];
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

// Copy a key tile.
template <class T>
__device__ __forceinline__ void copy_keys(tiles<T> tile, const tensors &t, const problem &p, int key0) {
    copy_tile_scalar<T::Bc, T::D, T::STRIDE, THREADS>(tile.K, t.K, key0, p.N_kv, p.d);
    copy_tile_scalar<T::Bc, T::D, T::STRIDE, THREADS>(tile.V, t.V, key0, p.N_kv, p.d);
}

// Copy a query tile. Rows past the end get Q = dO = 0 and L2 = inf, so that P = dS = 0.
template <class T>
__device__ __forceinline__ void copy_rows(tiles<T> tile, const tensors &t, const float *L2, const float *D,
                                          const problem &p, int row0) {
    copy_tile_scalar<T::Br, T::D, T::STRIDE, THREADS>(tile.Q, t.Q, row0, p.N_q, p.d);
    copy_tile_scalar<T::Br, T::D, T::STRIDE, THREADS>(tile.dO, t.dO, row0, p.N_q, p.d);
    for (int i = threadIdx.x; i < T::Br; i += THREADS) {
        tile.L2[i] = row0 + i < p.N_q ? L2[row0 + i] : INFINITY;
        tile.D[i] = row0 + i < p.N_q ? D[row0 + i] : 0.0f;
    }
}

// P and dS = scale P o (dP - D) of one tile, in shared memory. Ends with a barrier: every thread may read all of
// them.
template <class T>
__device__ __forceinline__ void make_P_and_dS(tiles<T> tile, const problem &p, int warp, int lane, int row0, int key0) {
    int my_row = warp / 2 * T::S_ROWS + lane / LANE_COLS, my_key = warp % 2 * T::S_KEYS + lane % LANE_COLS;
    float S_reg[T::SM][T::SN] = {}, dP_reg[T::SM][T::SN] = {}; // S_reg then holds P
#pragma unroll 1 // to be sure that the compiler merges no four loads into one of 16 bytes: see 09f
    for (int c = 0; c < T::D; c++) {
        float Q_reg[T::SM], dO_reg[T::SM];
#pragma unroll
        for (int i = 0; i < T::SM; i++) {
            Q_reg[i] = tile.Q[(my_row + LANE_ROWS * i) * T::STRIDE + c];
            dO_reg[i] = tile.dO[(my_row + LANE_ROWS * i) * T::STRIDE + c];
        }
#pragma unroll
        for (int j = 0; j < T::SN; j++) {
            float K_reg = tile.K[(my_key + LANE_COLS * j) * T::STRIDE + c];
            float V_reg = tile.V[(my_key + LANE_COLS * j) * T::STRIDE + c];
#pragma unroll
            for (int i = 0; i < T::SM; i++) {
                S_reg[i][j] += Q_reg[i] * K_reg;
                dP_reg[i][j] += dO_reg[i] * V_reg;
            }
        }
    }
    bool masked = key0 + T::Bc > attended_keys(p, row0);
    float factor = p.scale * LOG2_E;
#pragma unroll
    for (int i = 0; i < T::SM; i++) {
        int row = my_row + LANE_ROWS * i, attended = attended_keys(p, row0 + row);
        float L2 = tile.L2[row];
        float D = tile.D[row];
#pragma unroll
        for (int j = 0; j < T::SN; j++) {
            int key = my_key + LANE_COLS * j;
            float weight = exp2_approx(S_reg[i][j] * factor - L2);
            S_reg[i][j] = masked && key0 + key >= attended ? 0.0f : weight;
            tile.P[row * T::P_STRIDE + key] = S_reg[i][j];
            tile.dS[row * T::P_STRIDE + key] = p.scale * S_reg[i][j] * (dP_reg[i][j] - D);
        }
    }
    __syncthreads(); // the products below read the P and dS of all threads
}

// sum += A^T B over Br rows. A and B point at the thread's first columns, LANE_ROWS apart in A and LANE_COLS in B.
template <class T>
__device__ __forceinline__ void multiply_transposed(float (&sum)[T::KN][T::KC], const float *A, const float *B) {
#pragma unroll 4
    for (int r = 0; r < T::Br; r++) {
        float A_reg[T::KN];
#pragma unroll
        for (int n = 0; n < T::KN; n++) A_reg[n] = A[r * T::P_STRIDE + LANE_ROWS * n];
#pragma unroll
        for (int c = 0; c < T::KC; c++) {
            float B_reg = B[r * T::STRIDE + LANE_COLS * c];
#pragma unroll
            for (int n = 0; n < T::KN; n++) sum[n][c] += A_reg[n] * B_reg;
        }
    }
}

// dQ += dS K, in global memory: other blocks add to the same rows.
template <class T>
__device__ __forceinline__ void add_dQ(tiles<T> tile, float *dQ, const problem &p, int q_row, int q_col, int row0) {
    float dQ_reg[T::QM][4] = {};
#pragma unroll 1 // as above
    for (int key = 0; key < T::Bc; key++) {
        float K_reg[4];
#pragma unroll
        for (int c = 0; c < 4; c++) K_reg[c] = tile.K[key * T::STRIDE + q_col + LANE_COLS * c];
#pragma unroll
        for (int i = 0; i < T::QM; i++) {
            float dS_reg = tile.dS[(q_row + LANE_ROWS * i) * T::P_STRIDE + key];
#pragma unroll
            for (int c = 0; c < 4; c++) dQ_reg[i][c] += dS_reg * K_reg[c];
        }
    }
#pragma unroll
    for (int i = 0; i < T::QM; i++) {
        int row = row0 + q_row + LANE_ROWS * i;
        if (row >= p.N_q) continue;
#pragma unroll
        for (int c = 0; c < 4; c++)
            if (q_col + LANE_COLS * c < p.d) atomicAdd(dQ + (size_t)row * p.d + q_col + LANE_COLS * c, dQ_reg[i][c]);
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
    int k_key = warp / T::K_COL_WARPS * T::K_KEYS + lane / LANE_COLS;
    int k_col = warp % T::K_COL_WARPS * T::K_COLS + lane % LANE_COLS;
    int q_row = warp / T::Q_COL_WARPS * T::Q_ROWS + lane / LANE_COLS;
    int q_col = warp % T::Q_COL_WARPS * T::Q_COLS + lane % LANE_COLS;
    float dV_reg[T::KN][T::KC] = {}, dK_reg[T::KN][T::KC] = {};

    int first_row = first_attending_query(p, key0) / T::Br * T::Br; // of the first query tile that attends to a key
    copy_keys(tile, t, p, key0);
    for (int row0 = first_row; row0 < p.N_q; row0 += T::Br) {
        copy_rows(tile, t, L2, D, p, row0);
        __syncthreads(); // the tiles are complete before any thread reads them
        make_P_and_dS(tile, p, warp, lane, row0, key0);

        // dV += P^T dO, dK += dS^T Q
        multiply_transposed<T>(dV_reg, tile.P + k_key, tile.dO + k_col);
        multiply_transposed<T>(dK_reg, tile.dS + k_key, tile.Q + k_col);
        add_dQ(tile, t.dQ, p, q_row, q_col, row0);
        __syncthreads(); // no thread still reads Q, dO, P and dS, so the next tile may overwrite them
    }

#pragma unroll
    for (int i = 0; i < T::KN; i++) {
        int key = key0 + k_key + LANE_ROWS * i;
        if (key >= p.N_kv) continue;
#pragma unroll
        for (int c = 0; c < T::KC; c++) {
            int col = k_col + LANE_COLS * c;
            if (col >= p.d) continue;
            t.dV[(size_t)key * p.d + col] = dV_reg[i][c];
            t.dK[(size_t)key * p.d + col] = dK_reg[i][c];
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

extern "C" const step step_09d_tile_of_dQ = {
    .name = "09d_tile_of_dQ",
    .idea = "register tiles for dQ: all five products",
    .backward = backward,
    .workspace_bytes = workspace_bytes,
};
