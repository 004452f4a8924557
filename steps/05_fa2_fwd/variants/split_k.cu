// 05_split_k: chapter 05 with the keys split between the warps of a block, as FlashAttention-1's kernels did and as
// FlashAttention-2 argues against ("split-K": Dao 2023, section 3.3).
//
// Idea      all warps have the same query rows; each has 8 of the 32 keys of a tile.
// Costs     what the warps have found must be put together for each tile: the maxima, and a piece of O from each warp, go
//           through shared memory, with a barrier each.
// Limiter   as in chapter 05, shared memory: it has more to do here, for the same multiply-adds.
// Measured  README.md of the chapter has the numbers.

#include "attention.h"

#include <math.h>

#include "device.cuh"

constexpr int WARPS = 4;              // of a block
constexpr int Br = 32;                // query rows of a block, as in chapter 05
constexpr int Bc = WARPS * LANE_COLS; // keys in a tile: 8 of each warp
constexpr int ROWS = Br / LANE_ROWS;  // rows of a lane in S: lane / 8 + 4 r. Its key is lane % 8.
constexpr int OWN = Br / WARPS;       // rows of O that a warp adds up
constexpr int MAX_D = 64;             // a piece of O from each warp must fit beside the tiles

// Dynamic shared memory, where width is d rounded up to an even number: Q (Br, width + 2), V (Bc, d), in one place K
// (Bc, width + 1) and later a piece of O from each warp (WARPS, Br, d), then m or l from each warp (WARPS, Br), and a number
// a row (Br).
constexpr int shared_floats(int d) {
    int K = Bc * (d + d % 2 + 1), pieces = WARPS * Br * d;
    return Br * (d + d % 2 + 2) + Bc * d + (pieces > K ? pieces : K) + (WARPS + 1) * Br;
}
static_assert(shared_floats(MAX_D) * sizeof(float) <= 64 * 1024, "the least that cards since 7.5 give a block");

// 4 blocks on a multiprocessor, as many as the shared memory of a large card allows.
static __global__ __launch_bounds__(WARPS * WARP, 4) void split_k(const float *Q, // (heads, N_q, d)
                                                                 const float *K, // (heads, N_kv, d)
                                                                 const float *V, // (heads, N_kv, d)
                                                                 float *O,       // (heads, N_q, d)
                                                                 float *L,       // (heads, N_q)
                                                                 problem p) {
    extern __shared__ float2 smem[];
    int width = p.d + p.d % 2, Q_stride = width + 2, K_stride = width + 1;
    float *Q_smem = (float *)smem;          // (Br, Q_stride)
    float *V_smem = Q_smem + Br * Q_stride; // (Bc, d)
    float *K_smem = V_smem + Bc * p.d;      // (Bc, K_stride)
    float *O_smem = K_smem;                 // (WARPS, Br, d), when S is made
    float *warp_smem = K_smem + max(WARPS * Br * p.d, Bc * K_stride); // (WARPS, Br): maxima, at the end sums
    float *row_smem = warp_smem + WARPS * Br;                         // (Br): what to rescale O by, at the end m
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    int lane_m = lane / LANE_COLS, my_key = warp * LANE_COLS + lane % LANE_COLS;
    size_t head = blockIdx.y;
    int row0 = blockIdx.x * Br;
    Q += head * p.N_q * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;

    int shift = p.causal ? p.N_kv - p.N_q : p.N_kv; // row `row` sees the keys before row + shift + 1
    int end = max(0, min(p.N_kv, row0 + Br + shift));

    constexpr int COLS = MAX_D / WARP;
    float O_reg[OWN][COLS] = {}, m_reg[ROWS], l_reg[ROWS]; // l: of this lane's keys only, until the end
    for (int r = 0; r < ROWS; r++) {
        m_reg[r] = -INFINITY;
        l_reg[r] = 0.0f;
    }
    load_tile<WARPS>(Q_smem, Q_stride, Q, row0, Br, p.N_q, p.d);
    if (width > p.d && threadIdx.x < Br) Q_smem[threadIdx.x * Q_stride + p.d] = 0.0f; // an odd d's last pair

    for (int key0 = 0; key0 < end; key0 += Bc) {
        __syncthreads(); // all have read the pieces of O, and may see K over them
        if (width > p.d && threadIdx.x < Bc) K_smem[threadIdx.x * K_stride + p.d] = 0.0f;
        load_tile<WARPS>(K_smem, K_stride, K, key0, Bc, p.N_kv, p.d);
        load_tile<WARPS>(V_smem, p.d, V, key0, Bc, p.N_kv, p.d);
        __syncthreads(); // the tiles, and at first Q, are complete

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
            bool visible = key0 + my_key < min(p.N_kv, row0 + row + shift + 1);
            S_reg[r] = visible ? p.scale * S_reg[r] : -INFINITY;
            float m = S_reg[r];
            for (int bit = 1; bit < LANE_COLS; bit *= 2) m = fmaxf(m, __shfl_xor_sync(FULL_WARP, m, bit));
            if (lane % LANE_COLS == 0) warp_smem[warp * Br + row] = m;
        }
        __syncthreads(); // the maxima of all warps are there; all are done with K and may see pieces of O over it
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            int row = lane_m + LANE_ROWS * r;
            float m_new = m_reg[r];
            for (int w = 0; w < WARPS; w++) m_new = fmaxf(m_new, warp_smem[w * Br + row]);
            bool any = m_new > -INFINITY; // the row has seen a key; else exp(-inf - -inf) would be NaN
            float weight = any ? expf(S_reg[r] - m_new) : 0.0f, rescale = any ? expf(m_reg[r] - m_new) : 0.0f;
            l_reg[r] = l_reg[r] * rescale + weight;
            m_reg[r] = m_new;
            S_reg[r] = weight; // now P
            if (warp == 0 && lane % LANE_COLS == 0) row_smem[row] = rescale;
        }
        // This warp's keys give a piece of O for all rows: it goes to shared memory, OWN rows at a time.
#pragma unroll
        for (int owner = 0; owner < WARPS; owner++) {
            float piece[OWN][COLS] = {};
            for (int key = 0; key < LANE_COLS; key++) {
                float V_reg[COLS];
#pragma unroll
                for (int t = 0; t < COLS; t++)
                    V_reg[t] =
                        lane + t * WARP < p.d ? V_smem[(warp * LANE_COLS + key) * p.d + lane + t * WARP] : 0.0f;
#pragma unroll
                for (int i = 0; i < OWN; i++) { // row OWN * owner + i: who has P of it?
                    float P = __shfl_sync(FULL_WARP, S_reg[(OWN * owner + i) / LANE_ROWS],
                                          i % LANE_ROWS * LANE_COLS + key);
#pragma unroll
                    for (int t = 0; t < COLS; t++) piece[i][t] += P * V_reg[t];
                }
            }
#pragma unroll
            for (int i = 0; i < OWN; i++)
#pragma unroll
                for (int t = 0; t < COLS; t++)
                    if (lane + t * WARP < p.d)
                        O_smem[(warp * Br + OWN * owner + i) * p.d + lane + t * WARP] = piece[i][t];
        }
        __syncthreads(); // the pieces of all warps are there; all are done with V and may see it overwritten
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

    __syncthreads(); // all are done with row_smem
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        int row = lane_m + LANE_ROWS * r;
        float l = l_reg[r];
        for (int bit = 1; bit < LANE_COLS; bit *= 2) l += __shfl_xor_sync(FULL_WARP, l, bit);
        if (lane % LANE_COLS == 0) warp_smem[warp * Br + row] = l;
        if (warp == 0 && lane % LANE_COLS == 0) row_smem[row] = m_reg[r];
    }
    __syncthreads(); // m and l are there
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        int row = OWN * warp + i;
        if (row0 + row >= p.N_q) continue;
        float l = 0.0f, m = row_smem[row];
        for (int w = 0; w < WARPS; w++) l += warp_smem[w * Br + row];
        bool any = m > -INFINITY;
        float *O_row = O + (head * p.N_q + row0 + row) * p.d;
#pragma unroll
        for (int t = 0; t < COLS; t++)
            if (lane + t * WARP < p.d) O_row[lane + t * WARP] = any ? O_reg[i][t] / l : 0.0f;
        if (lane == 0) L[head * p.N_q + row0 + row] = any ? m + logf(l) : -INFINITY;
    }
}

static const char *refuses(const problem *p) {
    return p->d <= MAX_D ? nullptr : "05_split_k takes a head dimension of at most 64: its shared memory is full";
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    int shared_bytes = shared_floats(p->d) * sizeof(float);
    cudaError_t error = cudaFuncSetAttribute(split_k, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess) return error;
    dim3 blocks(ceil_div(p->N_q, Br), p->batch * p->heads);
    split_k<<<blocks, WARPS * WARP, shared_bytes, stream>>>(t->Q, t->K, t->V, t->O, t->L, *p);
    return cudaGetLastError();
}

extern "C" const step step_05_split_k = {
    .name = "05_split_k",
    .idea = "split-K: the warps of a block share its rows and divide the keys",
    .forward = forward,
    .refuses = refuses,
};
