// 04_fa1_fwd: FlashAttention (Dao et al. 2022, Algorithm 1): the online softmax, a tile of keys at a time.
//
// Idea      One block per head. The block loads each tile of K and V into shared memory once and combines it with every
//           query tile. O, m and l of a query tile are kept in global memory until the next tile of keys (docs/math.md,
//           eq. 15).
// Costs     O(N) memory: m and l. O is read and written once per tile of keys.
// Limiter   Parallelism: a card with more SMs than heads is partly idle.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <math.h>

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"

constexpr int Br = 32;   // query rows per tile
constexpr int Bc = 32;   // keys per tile
constexpr int WARPS = 8; // per block
constexpr int PAD = 1;   // floats after each row of Q and K, so that 32 rows lie in 32 banks
static_assert(Br == WARP && Bc == WARP, "one lane per query row for S, one lane per key for the softmax");
static_assert(Br % WARPS == 0 && Bc % WARPS == 0, "warps share rows and keys evenly");

// Dynamic shared memory, divided by hand: Q (Br, d + PAD), K (Bc, d + PAD), V (Bc, d), S (Br, Bc + PAD).
constexpr size_t shared_bytes(int d) { return sizeof(float) * ((Br + Bc) * (d + PAD) + Bc * d + Br * (Bc + PAD)); }
static_assert(shared_bytes(MAX_HEAD_DIM) <= LEAST_SHARED_BYTES, "the tiles fit into the shared memory of every card");

static __global__ void fa1_forward(const float *Q, // (heads, N_q, d)
                                   const float *K, // (heads, N_kv, d)
                                   const float *V, // (heads, N_kv, d)
                                   float *O,       // (heads, N_q, d)
                                   float *L,       // (heads, N_q)
                                   float *m,       // (heads, N_q): maximum of each row of S so far
                                   float *l,       // (heads, N_q): sum of exp(S - m) of each row so far
                                   problem p) {
    extern __shared__ float smem[];
    float *Q_smem = smem;                      // (Br, d + PAD)
    float *K_smem = Q_smem + Br * (p.d + PAD); // (Bc, d + PAD)
    float *V_smem = K_smem + Bc * (p.d + PAD); // (Bc, d)
    float *S_smem = V_smem + Bc * p.d;         // (Br, Bc + PAD): S, then P
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    size_t head = blockIdx.x;
    Q += head * p.N_q * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;
    O += head * p.N_q * p.d;
    L += head * p.N_q;
    m += head * p.N_q;
    l += head * p.N_q;

    for (int key0 = 0; key0 < p.N_kv; key0 += Bc) {
        bool is_first = key0 == 0, is_last = key0 + Bc >= p.N_kv;
        for (int row0 = 0; row0 < p.N_q; row0 += Br) {
            if (row0 == 0) {
                load_tile<WARPS>(K_smem, p.d + PAD, K, key0, Bc, p.N_kv, p.d);
                load_tile<WARPS>(V_smem, p.d, V, key0, Bc, p.N_kv, p.d);
            }
            load_tile<WARPS>(Q_smem, p.d + PAD, Q, row0, Br, p.N_q, p.d);
            __syncthreads(); // every thread's part of Q, K and V has arrived

            // S = scale Q K^T: one lane per query row, Bc / WARPS keys per warp.
            for (int key = warp; key < Bc; key += WARPS) {
                float sum = 0.0f;
                for (int c = 0; c < p.d; c++) sum += Q_smem[lane * (p.d + PAD) + c] * K_smem[key * (p.d + PAD) + c];
                int row = row0 + lane, col = key0 + key;
                bool attends = col < attended_keys(p, row);
                S_smem[lane * (Bc + PAD) + key] = attends ? p.scale * sum : -INFINITY;
            }
            __syncthreads(); // every warp's part of S is written: a row's keys come from all warps

            // Softmax and O: Br / WARPS rows per warp. One lane per key, then one lane per column of O.
            for (int r = warp; r < Br && row0 + r < p.N_q; r += WARPS) {
                int row = row0 + r;
                float m_old = is_first ? -INFINITY : m[row], l_old = is_first ? 0.0f : l[row];
                float s = S_smem[r * (Bc + PAD) + lane];
                float m_new = fmaxf(m_old, warp_reduce_max(s));
                float base = m_new > -INFINITY ? m_new : 0.0f; // no key yet: exp(-inf - -inf) would be NaN
                float weight = expf(s - base), rescale = expf(m_old - base);
                float l_new = l_old * rescale + warp_reduce_sum(weight);
                bool any = l_new != 0.0f; // the row attends to a key; NaN stays NaN
                S_smem[r * (Bc + PAD) + lane] = weight;
                __syncwarp(); // every lane's element of the row of P is written

                float P_reg[Bc]; // the row of P, loaded once for all columns of O
#pragma unroll
                for (int key = 0; key < Bc; key++) P_reg[key] = S_smem[r * (Bc + PAD) + key];
                for (int c = lane; c < p.d; c += WARP) {
                    float sum = 0.0f;
#pragma unroll
                    for (int key = 0; key < Bc; key++) sum += P_reg[key] * V_smem[key * p.d + c];
                    float O_old = is_first || !any ? 0.0f : O[(size_t)row * p.d + c];
                    O[(size_t)row * p.d + c] = any ? (l_old * rescale * O_old + sum) / l_new : 0.0f;
                }
                if (lane == 0) {
                    m[row] = m_new;
                    l[row] = l_new;
                    if (is_last) L[row] = any ? m_new + logf(l_new) : -INFINITY;
                }
            }
            __syncthreads(); // no warp still reads the tiles or S, so they may be overwritten
        }
    }
}

// m, then l.
static size_t workspace_bytes(const problem *p) { return 2 * sizeof(float) * p->batch * p->heads * p->N_q; }

static cudaError_t forward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    float *m = (float *)workspace, *l = m + workspace_bytes(p) / sizeof(float) / 2;
    return launch(fa1_forward, p->batch * p->heads, WARPS * WARP, shared_bytes(p->d), stream, t->Q, t->K, t->V, t->O,
                  t->L, m, l, *p);
}

extern "C" const step step_04_fa1_fwd = {
    .name = "04_fa1_fwd",
    .idea = "FlashAttention-1: tiles of K and V, one block per head",
    .forward = forward,
    .workspace_bytes = workspace_bytes,
};
