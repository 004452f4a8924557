// 09a_warp_row: FlashAttention-2's backward pass (Dao 2023, Algorithm 2), one warp per query row.
//
// Idea      One block per key tile loops over the query tiles: dK and dV of its keys stay in registers from the first
//           query to the last, and only dQ is added up in global memory. For P and dS a warp has query rows, one lane
//           per key; for dV and dK a warp has keys, one lane per column; for dQ again query rows, one lane per
//           column.
// Costs     O(N) memory: L2 and D, two floats per query row. dK and dV are written once. dQ takes one atomic addition
//           per element and key tile. P is recomputed from Q, K and L.
// Limiter   Shared memory: in S, dP and dQ two loads feed one FMA.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <math.h>

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"
#include "ptx.cuh"

constexpr float LOG2_E = 1.44269504f;
constexpr int WARPS = 8, THREADS = WARPS * WARP; // per block

// D >= d columns, Br query rows and Bc keys per tile.
template <int D_, int Br_, int Bc_> struct tiling {
    static constexpr int D = D_, Br = Br_, Bc = Bc_;
    static constexpr int STRIDE = D + 1;    // of Q, K, V, dO: neighbouring rows begin in neighbouring banks
    static constexpr int P_STRIDE = Bc + 1; // of P and dS, likewise
    // dV and dK: KEYS keys per warp, COLS columns per lane.
    static constexpr int KEYS = Bc / WARPS, COLS = D / WARP;
    static_assert(Bc % WARPS == 0 && D % WARP == 0, "warps share the keys evenly, lanes the columns");
    static constexpr size_t BYTES = (2 * Bc * STRIDE + 2 * Br * STRIDE + 2 * Br * P_STRIDE + 2 * Br) * sizeof(float);
};
using tiling_64 = tiling<64, 16, 32>;
using tiling_128 = tiling<128, 16, 32>;
static_assert(tiling_64::BYTES <= LEAST_SHARED_BYTES && tiling_128::BYTES <= LEAST_SHARED_BYTES,
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

// P and dS = scale P o (dP - D) of one tile, in shared memory: one warp per query row, one lane per key. Ends
// with a barrier: every thread may read all of them.
template <class T>
__device__ __forceinline__ void make_P_and_dS(tiles<T> tile, const problem &p, int warp, int lane, int row0, int key0) {
    for (int row = warp; row < T::Br; row += WARPS)
        for (int key = lane; key < T::Bc; key += WARP) {
            float S = 0.0f, dP = 0.0f;
            for (int c = 0; c < T::D; c++) {
                S += tile.Q[row * T::STRIDE + c] * tile.K[key * T::STRIDE + c];
                dP += tile.dO[row * T::STRIDE + c] * tile.V[key * T::STRIDE + c];
            }
            bool attends = key0 + key < attended_keys(p, row0 + row);
            float P = attends ? exp2_approx(S * (p.scale * LOG2_E) - tile.L2[row]) : 0.0f;
            tile.P[row * T::P_STRIDE + key] = P;
            tile.dS[row * T::P_STRIDE + key] = p.scale * P * (dP - tile.D[row]);
        }
    __syncthreads(); // the products below read the P and dS of all threads
}

// dQ += dS K, in global memory: other blocks add to the same rows. One warp per query row, one lane per column.
template <class T>
__device__ __forceinline__ void add_dQ(tiles<T> tile, float *dQ, const problem &p, int warp, int lane, int row0) {
    for (int row = warp; row < T::Br && row0 + row < p.N_q; row += WARPS)
        for (int col = lane; col < p.d; col += WARP) {
            float sum = 0.0f;
            for (int key = 0; key < T::Bc; key++)
                sum += tile.dS[row * T::P_STRIDE + key] * tile.K[key * T::STRIDE + col];
            atomicAdd(dQ + (size_t)(row0 + row) * p.d + col, sum);
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
    float dV_reg[T::KEYS][T::COLS] = {}, dK_reg[T::KEYS][T::COLS] = {}; // keys of this warp, columns of this lane

    int first_row = first_attending_query(p, key0) / T::Br * T::Br; // of the first query tile that attends to a key
    copy_keys(tile, t, p, key0);
    for (int row0 = first_row; row0 < p.N_q; row0 += T::Br) {
        copy_rows(tile, t, L2, D, p, row0);
        __syncthreads(); // the tiles are complete before any thread reads them
        make_P_and_dS(tile, p, warp, lane, row0, key0);

        // dV += P^T dO, dK += dS^T Q
        for (int r = 0; r < T::Br; r++)
#pragma unroll
            for (int c = 0; c < T::COLS; c++) {
                float dO_reg = tile.dO[r * T::STRIDE + lane + WARP * c],
                      Q_reg = tile.Q[r * T::STRIDE + lane + WARP * c];
#pragma unroll
                for (int k = 0; k < T::KEYS; k++) {
                    dV_reg[k][c] += tile.P[r * T::P_STRIDE + warp * T::KEYS + k] * dO_reg;
                    dK_reg[k][c] += tile.dS[r * T::P_STRIDE + warp * T::KEYS + k] * Q_reg;
                }
            }
        add_dQ(tile, t.dQ, p, warp, lane, row0);
        __syncthreads(); // no thread still reads Q, dO, P and dS, so the next tile may overwrite them
    }

#pragma unroll
    for (int k = 0; k < T::KEYS; k++) {
        int key = key0 + warp * T::KEYS + k;
        if (key >= p.N_kv) continue;
#pragma unroll
        for (int c = 0; c < T::COLS; c++) {
            int col = lane + WARP * c;
            if (col >= p.d) continue;
            t.dV[(size_t)key * p.d + col] = dV_reg[k][c];
            t.dK[(size_t)key * p.d + col] = dK_reg[k][c];
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

static cudaError_t backward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    return p->d <= 64 ? run<tiling_64>(p, t, workspace, stream) : run<tiling_128>(p, t, workspace, stream);
}

extern "C" const step step_09a_warp_row = {
    .name = "09a_warp_row",
    .idea = "one warp per query row, one lane per key or per column",
    .backward = backward,
    .workspace_bytes = workspace_bytes,
};
