// 08x_scattered: an idea that failed. Each query row adds to dK and dV in global memory on its own.
//
// Idea      The fused backward pass of this chapter, without the sums over the rows of a block: a lane adds each
//           product P dO and dS Q to global memory as soon as it is computed.
// Costs     One atomicAdd per element of dK and dV and query row, 16 times as many as with the sums.
// Limiter   Atomics: the L2 cache performs one per product.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <math.h>

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"

constexpr int WARPS = 8;                  // per block
constexpr int ROWS = 2;                   // query rows per warp
constexpr int Br = WARPS * ROWS;          // query rows per block
constexpr int Bc = WARP;                  // keys per tile, one lane per key for P and dS
constexpr int COLS = MAX_HEAD_DIM / WARP; // columns of dQ per lane, at most
constexpr int PAD = 1;                    // floats after each row of K and V, so that 32 rows lie in 32 banks
static_assert(Bc % WARPS == 0 && MAX_HEAD_DIM % WARP == 0, "warps share keys evenly, and lanes columns");

// Dynamic shared memory: Q and dO (Br, d), K and V (Bc, d + PAD), P and dS (Br, Bc).
constexpr size_t shared_bytes(int d) { return sizeof(float) * (2 * Br * d + 2 * Bc * (d + PAD) + 2 * Br * Bc); }
static_assert(shared_bytes(MAX_HEAD_DIM) <= LEAST_SHARED_BYTES, "the tiles fit into the shared memory of every card");

static __global__ void fused_backward(const float *Q,  // (heads, N_q, d)
                                      const float *K,  // (heads, N_kv, d)
                                      const float *V,  // (heads, N_kv, d)
                                      const float *O,  // (heads, N_q, d)
                                      const float *L,  // (heads, N_q)
                                      const float *dO, // (heads, N_q, d)
                                      float *dQ,       // (heads, N_q, d)
                                      float *dK,       // (heads, N_kv, d), 0 at first
                                      float *dV,       // (heads, N_kv, d), 0 at first
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
    int row0 = blockIdx.x * Br;
    Q += head * p.N_q * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;
    O += head * p.N_q * p.d;
    L += head * p.N_q;
    dO += head * p.N_q * p.d;
    dQ += head * p.N_q * p.d;
    dK += head * p.N_kv * p.d;
    dV += head * p.N_kv * p.d;
    load_tile<WARPS>(Q_smem, p.d, Q, row0, Br, p.N_q, p.d);
    load_tile<WARPS>(dO_smem, p.d, dO, row0, Br, p.N_q, p.d);

    // The warp owns rows warp, warp + WARPS, ... of the tile: their L, D = rowsum(dO o O) and dQ. A lane owns columns
    // lane, lane + 32, ... of dQ.
    float L_reg[ROWS], D_reg[ROWS], dQ_reg[ROWS][COLS] = {};
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        int row = row0 + warp + r * WARPS;
        float sum = 0.0f;
        for (int c = lane; c < p.d && row < p.N_q; c += WARP)
            sum += dO[(size_t)row * p.d + c] * O[(size_t)row * p.d + c];
        D_reg[r] = warp_reduce_sum(sum);
        L_reg[r] = row < p.N_q ? L[row] : 0.0f;
    }

    int end = attended_keys(p, row0 + Br - 1); // keys that the block's last row attends to
    for (int key0 = 0; key0 < end; key0 += Bc) {
        load_tile<WARPS>(K_smem, p.d + PAD, K, key0, Bc, p.N_kv, p.d);
        load_tile<WARPS>(V_smem, p.d + PAD, V, key0, Bc, p.N_kv, p.d);
        __syncthreads(); // every thread's part of K, V and (in the first round) Q and dO has arrived

        // P and dS of the warp's rows, one lane per key.
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            int r_tile = warp + r * WARPS, row = row0 + r_tile, at = r_tile * p.d;
            float S = 0.0f, dP = 0.0f;
            for (int c = 0; c < p.d; c++) {
                S += Q_smem[at + c] * K_smem[lane * (p.d + PAD) + c];
                dP += dO_smem[at + c] * V_smem[lane * (p.d + PAD) + c];
            }
            bool attends = row < p.N_q && key0 + lane < attended_keys(p, row);
            float P = attends ? expf(p.scale * S - L_reg[r]) : 0.0f;
            P_smem[r_tile * Bc + lane] = P;
            dS_smem[r_tile * Bc + lane] = P * (dP - D_reg[r]);
        }
        __syncthreads(); // every warp's rows of P and dS are written

        // dQ += dS K for the warp's rows, one lane per column.
        for (int key = 0; key < Bc; key++) {
            float row_dS[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; r++) row_dS[r] = dS_smem[(warp + r * WARPS) * Bc + key];
#pragma unroll
            for (int t = 0; t < COLS; t++) {
                if (lane + t * WARP >= p.d) continue;
                float k = K_smem[key * (p.d + PAD) + lane + t * WARP];
#pragma unroll
                for (int r = 0; r < ROWS; r++) dQ_reg[r][t] += row_dS[r] * k;
            }
        }

        // dV += P^T dO and dK += dS^T Q: Bc / WARPS keys per warp, one lane per column. A lane adds to global memory
        // once per row of the block.
        for (int key = warp; key < Bc && key0 + key < p.N_kv; key += WARPS) {
            float P_reg[Br], dS_reg[Br]; // the key's column of P and dS, loaded once for all columns of dV and dK
#pragma unroll
            for (int r = 0; r < Br; r++) {
                P_reg[r] = P_smem[r * Bc + key];
                dS_reg[r] = dS_smem[r * Bc + key];
            }
            for (int c = lane; c < p.d; c += WARP) {
#pragma unroll
                for (int r = 0; r < Br; r++) {
                    atomicAdd(&dV[(size_t)(key0 + key) * p.d + c], P_reg[r] * dO_smem[r * p.d + c]);
                    atomicAdd(&dK[(size_t)(key0 + key) * p.d + c], p.scale * dS_reg[r] * Q_smem[r * p.d + c]);
                }
            }
        }
        __syncthreads(); // no warp still reads K, V, P or dS, so they may be overwritten
    }

#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        int row = row0 + warp + r * WARPS;
#pragma unroll
        for (int t = 0; t < COLS; t++)
            if (row < p.N_q && lane + t * WARP < p.d) dQ[(size_t)row * p.d + lane + t * WARP] = p.scale * dQ_reg[r][t];
    }
}

static cudaError_t backward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    size_t key_bytes = (size_t)p->batch * p->heads * p->N_kv * p->d * sizeof(float);
    cudaError_t error = cudaMemsetAsync(t->dK, 0, key_bytes, stream);
    if (error == cudaSuccess) error = cudaMemsetAsync(t->dV, 0, key_bytes, stream);
    if (error != cudaSuccess) return error;
    dim3 blocks(ceil_div(p->N_q, Br), p->batch * p->heads);
    return launch(fused_backward, blocks, WARPS * WARP, shared_bytes(p->d), stream, t->Q, t->K, t->V, t->O, t->L, t->dO,
                  t->dQ, t->dK, t->dV, *p);
}

extern "C" const step step_08x_scattered = {
    .name = "08x_scattered",
    .idea = "one atomicAdd per query row for each element of dK and dV",
    .beside = "failed: 16 times as many atomics",
    .backward = backward,
};
