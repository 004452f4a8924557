// 05x_split_k: an idea that failed. Chapter 05 with the keys of a tile split over the warps of a block, as in
// FlashAttention-1's kernels; FlashAttention-2 argues against it ("split-K": Dao 2023, section 3.3).
//
// Idea      All warps own the same query rows, and each warp owns 8 of the 32 keys of a tile.
// Costs     The warps combine their results once per tile: the maxima, and a partial O from each warp, pass through
//           shared memory, with one barrier for each.
// Limiter   Shared memory, as in chapter 05: it serves more loads and stores for the same number of FMAs.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <math.h>

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"

constexpr int WARPS = 4;              // per block
constexpr int Br = 32;                // query rows per block, as in chapter 05
constexpr int Bc = WARPS * LANE_COLS; // keys per tile: 8 per warp
constexpr int ROWS = Br / LANE_ROWS;  // rows of S per lane: lane / 8 + 4 r. Its key is lane % 8.
constexpr int OWN = Br / WARPS;       // rows of O per warp
constexpr int MAX_D = 64;             // a partial O of each warp must fit beside the tiles

// Dynamic shared memory, where width is d rounded up to an even number: Q (Br, width + 2), V (Bc, d), in one place K
// (Bc, width + 1) and later a partial O of each warp (WARPS, Br, d), then m or l of each warp (WARPS, Br), then one
// number per row (Br).
constexpr size_t shared_bytes(int d) {
    int K = Bc * (d + d % 2 + 1), partial_O = WARPS * Br * d;
    return sizeof(float) * (Br * (d + d % 2 + 2) + Bc * d + (partial_O > K ? partial_O : K) + (WARPS + 1) * Br);
}
static_assert(shared_bytes(MAX_D) <= LEAST_SHARED_BYTES, "the tiles fit into the shared memory of every card");
static_assert(Br <= WARPS * WARP && Bc <= WARPS * WARP, "one thread per row pads the last pair of an odd d");
static_assert(Br % LANE_ROWS == 0 && OWN % LANE_ROWS == 0, "lanes share rows evenly, and so do warps");

// 4 blocks per SM, as many as the shared memory of a large card allows.
static __global__ __launch_bounds__(WARPS *WARP, 4) void split_k(const float *Q, // (heads, N_q, d)
                                                                 const float *K, // (heads, N_kv, d)
                                                                 const float *V, // (heads, N_kv, d)
                                                                 float *O,       // (heads, N_q, d)
                                                                 float *L,       // (heads, N_q)
                                                                 problem p) {
    extern __shared__ float2 smem[];
    int width = p.d + p.d % 2, Q_stride = width + 2, K_stride = width + 1;
    float *Q_smem = (float *)smem;                                    // (Br, Q_stride)
    float *V_smem = Q_smem + Br * Q_stride;                           // (Bc, d)
    float *K_smem = V_smem + Bc * p.d;                                // (Bc, K_stride)
    float *O_smem = K_smem;                                           // (WARPS, Br, d), after S is computed
    float *warp_smem = K_smem + max(WARPS * Br * p.d, Bc * K_stride); // (WARPS, Br): maxima, at the end sums
    float *row_smem = warp_smem + WARPS * Br;                         // (Br): rescale of O, at the end m
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    int lane_m = lane / LANE_COLS, my_key = warp * LANE_COLS + lane % LANE_COLS;
    size_t head = blockIdx.y;
    int row0 = blockIdx.x * Br;
    Q += head * p.N_q * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;

    int end = attended_keys(p, row0 + Br - 1); // keys that the block's last row attends to

    constexpr int COLS = MAX_D / WARP;
    float O_reg[OWN][COLS] = {}, m_reg[ROWS], l_reg[ROWS]; // l: of this lane's keys only, until the epilogue
    for (int r = 0; r < ROWS; r++) {
        m_reg[r] = -INFINITY;
        l_reg[r] = 0.0f;
    }
    load_tile<WARPS>(Q_smem, Q_stride, Q, row0, Br, p.N_q, p.d);
    if (width > p.d && threadIdx.x < Br) Q_smem[threadIdx.x * Q_stride + p.d] = 0.0f; // the last pair of an odd d

    for (int key0 = 0; key0 < end; key0 += Bc) {
        __syncthreads(); // no warp still reads V or the partial O, so V and K may be overwritten
        if (width > p.d && threadIdx.x < Bc) K_smem[threadIdx.x * K_stride + p.d] = 0.0f;
        load_tile<WARPS>(K_smem, K_stride, K, key0, Bc, p.N_kv, p.d);
        load_tile<WARPS>(V_smem, p.d, V, key0, Bc, p.N_kv, p.d);
        __syncthreads(); // every thread's part of K, V and (in the first round) Q has arrived

        float S_reg[ROWS] = {};
        for (int c = 0; c < width; c += 2) {
            float k0 = K_smem[my_key * K_stride + c], k1 = K_smem[my_key * K_stride + c + 1];
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                float2 q = *(float2 *)&Q_smem[(lane_m + LANE_ROWS * r) * Q_stride + c];
                S_reg[r] += q.x * k0;
                S_reg[r] += q.y * k1;
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            int row = lane_m + LANE_ROWS * r;
            bool attends = key0 + my_key < attended_keys(p, row0 + row);
            S_reg[r] = attends ? p.scale * S_reg[r] : -INFINITY;
            float m = S_reg[r];
            for (int bit = 1; bit < LANE_COLS; bit *= 2) m = fmaxf(m, __shfl_xor_sync(FULL_WARP, m, bit));
            if (lane % LANE_COLS == 0) warp_smem[warp * Br + row] = m;
        }
        __syncthreads(); // every warp's maxima are written; no warp still reads K, so partial O may overwrite it
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            int row = lane_m + LANE_ROWS * r;
            float m_new = m_reg[r];
            for (int w = 0; w < WARPS; w++) m_new = fmaxf(m_new, warp_smem[w * Br + row]);
            float base = m_new > -INFINITY ? m_new : 0.0f; // no key yet: exp(-inf - -inf) would be NaN
            float weight = expf(S_reg[r] - base), rescale = expf(m_reg[r] - base);
            l_reg[r] = l_reg[r] * rescale + weight;
            m_reg[r] = m_new;
            S_reg[r] = weight; // now P
            if (warp == 0 && lane % LANE_COLS == 0) row_smem[row] = rescale;
        }
        // P V over this warp's keys is a partial O of all rows. It is stored to shared memory, OWN rows at a time.
#pragma unroll
        for (int owner = 0; owner < WARPS; owner++) {
            float partial[OWN][COLS] = {};
            for (int key = 0; key < LANE_COLS; key++) {
                float V_reg[COLS];
#pragma unroll
                for (int t = 0; t < COLS; t++)
                    V_reg[t] = lane + t * WARP < p.d ? V_smem[(warp * LANE_COLS + key) * p.d + lane + t * WARP] : 0.0f;
#pragma unroll
                for (int i = 0; i < OWN; i++) { // row OWN * owner + i: the shuffle's lane owns its P
                    float P =
                        __shfl_sync(FULL_WARP, S_reg[(OWN * owner + i) / LANE_ROWS], i % LANE_ROWS * LANE_COLS + key);
#pragma unroll
                    for (int t = 0; t < COLS; t++) partial[i][t] += P * V_reg[t];
                }
            }
#pragma unroll
            for (int i = 0; i < OWN; i++)
#pragma unroll
                for (int t = 0; t < COLS; t++)
                    if (lane + t * WARP < p.d)
                        O_smem[(warp * Br + OWN * owner + i) * p.d + lane + t * WARP] = partial[i][t];
        }
        __syncthreads(); // every warp's partial O and row_smem are written
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            int row = OWN * warp + i;
            float rescale = row_smem[row];
#pragma unroll
            for (int t = 0; t < COLS; t++) {
                O_reg[i][t] *= rescale;
                for (int w = 0; w < WARPS; w++)
                    if (lane + t * WARP < p.d) O_reg[i][t] += O_smem[(w * Br + row) * p.d + lane + t * WARP];
            }
        }
    }

    __syncthreads(); // no warp still reads row_smem, so m may overwrite it
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        int row = lane_m + LANE_ROWS * r;
        float l = l_reg[r];
        for (int bit = 1; bit < LANE_COLS; bit *= 2) l += __shfl_xor_sync(FULL_WARP, l, bit);
        if (lane % LANE_COLS == 0) warp_smem[warp * Br + row] = l;
        if (warp == 0 && lane % LANE_COLS == 0) row_smem[row] = m_reg[r];
    }
    __syncthreads(); // every warp's l, and m, are written
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        int row = OWN * warp + i;
        if (row0 + row >= p.N_q) continue;
        float l = 0.0f, m = row_smem[row];
        for (int w = 0; w < WARPS; w++) l += warp_smem[w * Br + row];
        bool any = l != 0.0f; // the row attends to a key; NaN stays NaN
        float *O_row = O + (head * p.N_q + row0 + row) * p.d;
#pragma unroll
        for (int t = 0; t < COLS; t++)
            if (lane + t * WARP < p.d) O_row[lane + t * WARP] = any ? O_reg[i][t] / l : 0.0f;
        if (lane == 0) L[head * p.N_q + row0 + row] = any ? m + logf(l) : -INFINITY;
    }
}

static_assert(MAX_D == 64, "the number that refuses() names");
static const char *refuses(const problem *p) { return p->d > MAX_D ? "takes a head dimension of at most 64" : nullptr; }

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    dim3 blocks(ceil_div(p->N_q, Br), p->batch * p->heads);
    return launch(split_k, blocks, WARPS * WARP, shared_bytes(p->d), stream, t->Q, t->K, t->V, t->O, t->L, *p);
}

extern "C" const step step_05x_split_k = {
    .name = "05x_split_k",
    .idea = "split-K: keys split over the warps of a block",
    .beside = "failed: partial O of each warp passes through shared memory",
    .forward = forward,
    .refuses = refuses,
};
