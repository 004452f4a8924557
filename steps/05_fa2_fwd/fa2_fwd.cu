// 05_fa2_fwd: FlashAttention-2 (Dao 2023, Algorithm 1): the loops of chapter 04 exchanged.
//
// Idea      One block per query tile. The block loops over the tiles of keys, so that O, m and l stay in registers from
//           the first key to the last. Each warp owns rows of its own, so that a row's softmax needs shuffles and no
//           barrier.
// Costs     O(N) memory, none beyond the outputs. A block reads all keys that its rows attend to. Tiles of keys that no
//           row attends to are skipped, and only tiles on the diagonal are masked.
// Limiter   Waiting for the tiles of K and V: while one is on its way, its block computes nothing.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <math.h>

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"

constexpr int WARPS = 4;         // per block
constexpr int ROWS = 8;          // query rows per warp
constexpr int Br = WARPS * ROWS; // query rows per block
constexpr int Bc = WARP;         // keys per tile, one lane per key
constexpr int PAD = 1;           // floats after each row of K, so that 32 rows lie in 32 banks
static_assert(Br <= WARPS * WARP && Bc <= WARPS * WARP, "one thread per row pads the last pair of an odd d");

// Dynamic shared memory: Q (Br, width), K (Bc, width + PAD), V (Bc, d), where width is d rounded up to an even number.
constexpr size_t shared_bytes(int d) { return sizeof(float) * (Br * (d + d % 2) + Bc * (d + d % 2 + PAD) + Bc * d); }
static_assert(shared_bytes(MAX_HEAD_DIM) <= LEAST_SHARED_BYTES, "the tiles fit into the shared memory of every card");

// D_MAX >= d, a multiple of WARP. A lane owns D_MAX / WARP columns of O in each of its warp's rows.
template <int D_MAX>
static __global__ void fa2_forward(const float *Q, // (heads, N_q, d)
                                   const float *K, // (heads, N_kv, d)
                                   const float *V, // (heads, N_kv, d)
                                   float *O,       // (heads, N_q, d)
                                   float *L,       // (heads, N_q)
                                   problem p) {
    extern __shared__ float2 smem[];
    int width = p.d + p.d % 2;                   // of Q and K: their columns are loaded in pairs
    float *Q_smem = (float *)smem;               // (Br, width)
    float *K_smem = Q_smem + Br * width;         // (Bc, width + PAD)
    float *V_smem = K_smem + Bc * (width + PAD); // (Bc, d)
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    size_t head = blockIdx.y;
    int row0 = blockIdx.x * Br, warp_row0 = row0 + warp * ROWS;
    Q += head * p.N_q * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;

    int end = attended_keys(p, row0 + Br - 1); // keys that the block's last row attends to
    int first_masked = attended_keys(p, row0); // all rows of the block attend to the keys before this one

    constexpr int COLS = D_MAX / WARP;
    float O_reg[ROWS][COLS] = {}, m_reg[ROWS], l_reg[ROWS]; // l: of this lane's keys only, until the epilogue
    for (int r = 0; r < ROWS; r++) {
        m_reg[r] = -INFINITY;
        l_reg[r] = 0.0f;
    }
    load_tile<WARPS>(Q_smem, width, Q, row0, Br, p.N_q, p.d);
    if (width > p.d && threadIdx.x < Br) // the second column of an odd d's last pair is 0
        Q_smem[threadIdx.x * width + p.d] = K_smem[threadIdx.x * (width + PAD) + p.d] = 0.0f;

    for (int key0 = 0; key0 < end; key0 += Bc) {
        __syncthreads(); // no warp still reads K or V, so they may be overwritten
        load_tile<WARPS>(K_smem, width + PAD, K, key0, Bc, p.N_kv, p.d);
        load_tile<WARPS>(V_smem, p.d, V, key0, Bc, p.N_kv, p.d);
        __syncthreads(); // every thread's part of K, V and (in the first round) Q has arrived

        // S = Q K^T: one lane per key, for all rows of the warp, two columns at a time. An element of K feeds ROWS
        // FMAs; two elements of Q arrive with one load of 8 bytes.
        float S_reg[ROWS] = {};
        for (int c = 0; c < width; c += 2) {
            float k0 = K_smem[lane * (width + PAD) + c], k1 = K_smem[lane * (width + PAD) + c + 1];
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                float2 q = *(float2 *)&Q_smem[(warp * ROWS + r) * width + c];
                S_reg[r] += q.x * k0;
                S_reg[r] += q.y * k1;
            }
        }
        bool masked = key0 + Bc > first_masked;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            float s = p.scale * S_reg[r];
            if (masked && key0 + lane >= attended_keys(p, warp_row0 + r)) s = -INFINITY;
            float m_new = fmaxf(m_reg[r], warp_reduce_max(s));
            float base = m_new > -INFINITY ? m_new : 0.0f; // no key yet: exp(-inf - -inf) would be NaN
            float weight = expf(s - base), rescale = expf(m_reg[r] - base);
            l_reg[r] = l_reg[r] * rescale + weight;
            m_reg[r] = m_new;
            S_reg[r] = weight; // now P
#pragma unroll
            for (int t = 0; t < COLS; t++) O_reg[r][t] *= rescale;
        }
        // O += P V: a shuffle broadcasts P of a key from the lane that owns the key; each lane owns columns of O.
        for (int key = 0; key < Bc; key++) {
            float V_reg[COLS];
#pragma unroll
            for (int t = 0; t < COLS; t++)
                V_reg[t] = lane + t * WARP < p.d ? V_smem[key * p.d + lane + t * WARP] : 0.0f;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                float P = __shfl_sync(FULL_WARP, S_reg[r], key);
#pragma unroll
                for (int t = 0; t < COLS; t++) O_reg[r][t] += P * V_reg[t];
            }
        }
    }

#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        float l = warp_reduce_sum(l_reg[r]);
        int row = warp_row0 + r;
        if (row >= p.N_q) continue;
        bool any = l != 0.0f; // the row attends to a key; NaN stays NaN
        float *O_row = O + (head * p.N_q + row) * p.d;
#pragma unroll
        for (int t = 0; t < COLS; t++)
            if (lane + t * WARP < p.d) O_row[lane + t * WARP] = any ? O_reg[r][t] / l : 0.0f;
        if (lane == 0) L[head * p.N_q + row] = any ? m_reg[r] + logf(l) : -INFINITY;
    }
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    dim3 blocks(ceil_div(p->N_q, Br), p->batch * p->heads);
    auto kernel = p->d <= 32 ? fa2_forward<32> : p->d <= 64 ? fa2_forward<64> : fa2_forward<128>;
    return launch(kernel, blocks, WARPS * WARP, shared_bytes(p->d), stream, t->Q, t->K, t->V, t->O, t->L, *p);
}

extern "C" const step step_05_fa2_fwd = {
    .name = "05_fa2_fwd",
    .idea = "FlashAttention-2: one block per query tile, rows split over warps",
    .forward = forward,
};
