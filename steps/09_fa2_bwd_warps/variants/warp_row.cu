// 09_warp_row: chapter 09 at its plainest: FlashAttention-2's backward pass (Dao 2023, Algorithm 2) with a warp a row.
//
// Idea      a block owns a tile of keys and walks over the queries. While P and dS are made a warp has rows of its own, lane =
//           key; while dV and dK are added up, in registers, it has keys of its own, lane = column; dQ is made by rows again,
//           lane = column, and added to global memory by atomicAdd.
// Costs     O(N) memory: a float a query row. dK and dV are written once, dQ is added to once for every tile of keys.
// Limiter   shared memory, as in chapter 08: nearly every multiply-add needs two numbers from it.
// Measured  README.md of the chapter has the numbers.

#include "attention.h"

#include <math.h>

#include "device.cuh"

constexpr int WARPS = 8;                  // of a block
constexpr int ROWS = 2;                   // query rows of a warp
constexpr int Br = WARPS * ROWS;          // query rows in a tile
constexpr int Bc = WARP;                  // keys of a block
constexpr int KEYS = Bc / WARPS;          // keys of a warp
constexpr int COLS = MAX_HEAD_DIM / WARP; // columns of a lane, at most
constexpr int PAD = 1;                    // floats after each row of K and V, so that 32 rows lie in 32 banks

// Dynamic shared memory: Q and dO (Br, d), K and V (Bc, d + PAD), P and dS (Br, Bc).
constexpr int shared_floats(int d) { return 2 * Br * d + 2 * Bc * (d + PAD) + 2 * Br * Bc; }
static_assert(shared_floats(MAX_HEAD_DIM) * sizeof(float) <= 64 * 1024, "the least that cards since 7.5 give a block");

// D = rowsum(dO o O), a warp a row. dQ becomes 0, to be added to.
static __global__ void preprocess(const float *O,  // (rows, d)
                                  const float *dO, // (rows, d)
                                  float *D,        // (rows)
                                  float *dQ,       // (rows, d)
                                  size_t rows, int d) {
    int lane = threadIdx.x;
    size_t row = (size_t)blockIdx.x * WARPS + threadIdx.y;
    if (row >= rows) return; // a warp as a whole
    float sum = 0.0f;
    for (int c = lane; c < d; c += WARP) {
        sum += dO[row * d + c] * O[row * d + c];
        dQ[row * d + c] = 0.0f;
    }
    sum = warp_reduce_sum(sum);
    if (lane == 0) D[row] = sum;
}

static __global__ void warp_row(const float *Q,  // (heads, N_q, d)
                                const float *K,  // (heads, N_kv, d)
                                const float *V,  // (heads, N_kv, d)
                                const float *L,  // (heads, N_q)
                                const float *dO, // (heads, N_q, d)
                                const float *D,  // (heads, N_q)
                                float *dQ,       // (heads, N_q, d), 0 at first
                                float *dK,       // (heads, N_kv, d)
                                float *dV,       // (heads, N_kv, d)
                                problem p) {
    extern __shared__ float smem[];
    float *Q_smem = smem;                      // (Br, d)
    float *dO_smem = Q_smem + Br * p.d;        // (Br, d)
    float *K_smem = dO_smem + Br * p.d;        // (Bc, d + PAD)
    float *V_smem = K_smem + Bc * (p.d + PAD); // (Bc, d + PAD)
    float *P_smem = V_smem + Bc * (p.d + PAD); // (Br, Bc)
    float *dS_smem = P_smem + Br * Bc;         // (Br, Bc)
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    size_t head = blockIdx.y;
    int key0 = blockIdx.x * Bc;
    Q += head * p.N_q * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;
    L += head * p.N_q;
    D += head * p.N_q;
    dO += head * p.N_q * p.d;
    dQ += head * p.N_q * p.d;
    dK += head * p.N_kv * p.d;
    dV += head * p.N_kv * p.d;
    load_tile<WARPS>(K_smem, p.d + PAD, K, key0, Bc, p.N_kv, p.d);
    load_tile<WARPS>(V_smem, p.d + PAD, V, key0, Bc, p.N_kv, p.d);

    float dK_reg[KEYS][COLS] = {}, dV_reg[KEYS][COLS] = {};
    int shift = p.causal ? p.N_kv - p.N_q : p.N_kv; // row `row` sees the keys before row + shift + 1
    int first_row = max(0, key0 - shift) / Br * Br; // rows before this one see none of the keys
    for (int row0 = first_row; row0 < p.N_q; row0 += Br) {
        load_tile<WARPS>(Q_smem, p.d, Q, row0, Br, p.N_q, p.d);
        load_tile<WARPS>(dO_smem, p.d, dO, row0, Br, p.N_q, p.d);
        __syncthreads(); // Q and dO, at first K and V too, are complete before anyone reads them

        for (int r = warp; r < Br; r += WARPS) { // lane = key
            int row = row0 + r;
            float S = 0.0f, dP = 0.0f;
            for (int c = 0; c < p.d; c++) {
                S += Q_smem[r * p.d + c] * K_smem[lane * (p.d + PAD) + c];
                dP += dO_smem[r * p.d + c] * V_smem[lane * (p.d + PAD) + c];
            }
            bool visible = row < p.N_q && key0 + lane < min(p.N_kv, row + shift + 1);
            float P = visible ? expf(p.scale * S - L[row]) : 0.0f;
            P_smem[r * Bc + lane] = P;
            dS_smem[r * Bc + lane] = visible ? p.scale * P * (dP - D[row]) : 0.0f;
        }
        __syncthreads(); // P and dS are complete before other warps read them

        // dV += P^T dO and dK += dS^T Q of the warp's keys, then dQ += dS K of its rows; lane = column.
#pragma unroll
        for (int t = 0; t < COLS; t++) {
            int c = lane + t * WARP;
            if (c >= p.d) continue;
            for (int r = 0; r < Br; r++)
#pragma unroll
                for (int k = 0; k < KEYS; k++) {
                    dV_reg[k][t] += P_smem[r * Bc + warp * KEYS + k] * dO_smem[r * p.d + c];
                    dK_reg[k][t] += dS_smem[r * Bc + warp * KEYS + k] * Q_smem[r * p.d + c];
                }
            for (int r = warp; r < Br && row0 + r < p.N_q; r += WARPS) {
                float sum = 0.0f;
                for (int key = 0; key < Bc; key++) sum += dS_smem[r * Bc + key] * K_smem[key * (p.d + PAD) + c];
                atomicAdd(&dQ[(size_t)(row0 + r) * p.d + c], sum);
            }
        }
        __syncthreads(); // everyone is done with Q, dO, P and dS before they are overwritten
    }
#pragma unroll
    for (int k = 0; k < KEYS; k++)
#pragma unroll
        for (int t = 0; t < COLS; t++) {
            int key = key0 + warp * KEYS + k, c = lane + t * WARP;
            if (key >= p.N_kv || c >= p.d) continue;
            dV[(size_t)key * p.d + c] = dV_reg[k][t];
            dK[(size_t)key * p.d + c] = dK_reg[k][t];
        }
}

static size_t query_rows(const problem *p) { return (size_t)p->batch * p->heads * p->N_q; }
static size_t workspace_bytes(const problem *p) { return query_rows(p) * sizeof(float); }

static cudaError_t backward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    float *D = (float *)workspace;
    dim3 row_blocks((unsigned)((query_rows(p) + WARPS - 1) / WARPS)), block(WARP, WARPS);
    preprocess<<<row_blocks, block, 0, stream>>>(t->O, t->dO, D, t->dQ, query_rows(p), p->d);

    int shared_bytes = shared_floats(p->d) * sizeof(float);
    cudaError_t error = cudaFuncSetAttribute(warp_row, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess) return error;
    dim3 key_blocks(ceil_div(p->N_kv, Bc), p->batch * p->heads);
    warp_row<<<key_blocks, WARPS * WARP, shared_bytes, stream>>>(t->Q, t->K, t->V, t->L, t->dO, D, t->dQ, t->dK, t->dV,
                                                                 *p);
    return cudaGetLastError();
}

extern "C" const step step_09_warp_row = {
    .name = "09_warp_row",
    .idea = "a warp a row, a lane a key or a column, scalar loads",
    .backward = backward,
    .workspace_bytes = workspace_bytes,
};
