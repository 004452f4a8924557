// 06_vectorized: FlashAttention-2 on register tiles. In this last rung of the chapter, interior tiles are copied
// without bounds checks.
//
// Idea      Almost every tile lies inside its matrix. copy_tile() finds that out once per tile; then a thread copies 16
//           bytes per instruction, a fixed distance apart, with no comparison and no address arithmetic in between.
// Costs     O(N) memory, none beyond the outputs; nearly all registers of an SM. The copy exists twice in machine code.
// Limiter   Nothing is full: eight of ten issue slots are used. Largest recorded wait: dispatcher, possibly operands.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <cuda_pipeline.h>
#include <math.h>

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"
#include "ptx.cuh"

constexpr float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;

// D >= d: columns of the tiles. TM: query rows of a thread. Bc: keys in a tile. A block's rows form BANDS bands. SHARE
// warps share a band: each computes S for its part of the keys and O for its part of the columns. At D 128 a
// single warp would need 128 registers per thread for O.
template <int D_, int TM_, int Bc_, int BANDS_, int SHARE_, int UNROLL_> struct tiling {
    static constexpr int D = D_, TM = TM_, Bc = Bc_, BANDS = BANDS_, SHARE = SHARE_, UNROLL = UNROLL_;
    static constexpr int THREADS = BANDS * SHARE * WARP;
    static constexpr int BAND_ROWS = LANE_ROWS * TM;
    static constexpr int Br = BANDS * BAND_ROWS;
    static constexpr int KEYS = Bc / SHARE, COLS = D / SHARE; // of a warp
    static constexpr int TN = KEYS / LANE_COLS;               // keys of a thread
    static constexpr int TC = COLS / LANE_COLS;               // columns of O of a thread
    static constexpr int STRIDE = D + 4;                      // of Q and K: 8 rows x 16 bytes lie in 32 banks
    static constexpr int P_STRIDE = Bc + 8;                   // of P: 4 rows x 8 columns x 4 bytes lie in 32 banks
    static constexpr int FLOATS = Br * STRIDE + Bc * STRIDE + Bc * D + Br * P_STRIDE + SHARE * Br; // Q, K, V, P, m
    static constexpr size_t BYTES = FLOATS * sizeof(float);
    static_assert(SHARE == 1 || SHARE == 2, "a warp exchanges maxima and sums with at most one other warp");
    static_assert(KEYS % LANE_COLS == 0 && COLS % (4 * LANE_COLS) == 0, "lanes share keys and columns evenly");
};
using tiling_32 = tiling<32, 4, 64, 4, 1, 2>;
using tiling_64 = tiling<64, 8, 64, 4, 1, 2>;
using tiling_64_small = tiling<64, 4, 32, 4, 1, 2>;
using tiling_128 = tiling<128, 8, 64, 4, 2, 4>;
using tiling_128_small = tiling<128, 4, 32, 2, 1, 2>;
static_assert(tiling_32::BYTES <= LEAST_SHARED_BYTES && tiling_64_small::BYTES <= LEAST_SHARED_BYTES &&
                  tiling_128_small::BYTES <= LEAST_SHARED_BYTES,
              "every card has a tiling that fits into its shared memory");

template <class T>
static __global__ __launch_bounds__(T::THREADS) void vectorized(const float *Q, // (heads, N_q, d)
                                                                const float *K, // (heads, N_kv, d)
                                                                const float *V, // (heads, N_kv, d)
                                                                float *O,       // (heads, N_q, d)
                                                                float *L,       // (heads, N_q)
                                                                problem p) {
    constexpr int D = T::D, TM = T::TM, TN = T::TN, TC = T::TC, Bc = T::Bc, Br = T::Br, THREADS = T::THREADS;
    extern __shared__ float4 smem[];
    float *Q_smem = (float *)smem;             // (Br, STRIDE)
    float *K_smem = Q_smem + Br * T::STRIDE;   // (Bc, STRIDE)
    float *V_smem = K_smem + Bc * T::STRIDE;   // (Bc, D)
    float *P_smem = V_smem + Bc * D;           // (Br, P_STRIDE)
    float *m_smem = P_smem + Br * T::P_STRIDE; // (SHARE, Br), at the end l
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    int band = warp / T::SHARE, part = warp % T::SHARE;
    int lane_m = lane_row(lane), lane_n = lane_col(lane);
    size_t head = blockIdx.y;
    // Under a causal mask the last rows attend to the most keys: the longest blocks start first.
    int row0 = (gridDim.x - 1 - blockIdx.x) * Br;
    Q += head * p.N_q * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;
    // This thread's first row, key and column in the tiles; its others are 4 rows, 8 keys and 32 columns apart.
    int my_row = band * T::BAND_ROWS + lane_m, my_key = part * T::KEYS + lane_n, my_col = part * T::COLS + 4 * lane_n;
    float *P_mine = P_smem + my_row * T::P_STRIDE;

    int end = attended_keys(p, row0 + Br - 1); // keys that the block's last row attends to
    int first_masked = attended_keys(p, row0); // all rows of the block attend to the keys before this one
    float O_reg[TM][TC] = {};
    float m_reg[TM], l_reg[TM]; // m in units of log 2; l of this thread's keys only, until the epilogue
#pragma unroll
    for (int i = 0; i < TM; i++) {
        m_reg[i] = -INFINITY;
        l_reg[i] = 0.0f;
    }

    copy_tile<Br, D, T::STRIDE, THREADS>(Q_smem, Q, row0, p.N_q, p.d);
    copy_tile<Bc, D, T::STRIDE, THREADS>(K_smem, K, 0, p.N_kv, p.d);
    __pipeline_commit();
    __pipeline_wait_prior(0); // this thread's part of Q has arrived
    __syncthreads();          // every thread's part of Q has arrived
    // exp(scale q.k) = 2^(scale log2(e) q.k): Q is multiplied by the factor once.
    float factor = p.scale * LOG2_E;
    for (int i = threadIdx.x; i < Br * D / 4; i += THREADS) {
        float4 *q = (float4 *)(Q_smem + i / (D / 4) * T::STRIDE + i % (D / 4) * 4), x = *q;
        *q = make_float4(x.x * factor, x.y * factor, x.z * factor, x.w * factor);
    }

    for (int key0 = 0; key0 < end; key0 += Bc) {
        __pipeline_wait_prior(0); // this thread's part of K has arrived
        __syncthreads();          // every thread's part of K has arrived, Q is scaled; no thread still reads V or P
        copy_tile<Bc, D, D, THREADS>(V_smem, V, key0, p.N_kv, p.d);
        __pipeline_commit();

        float S_reg[TM][TN] = {};
        multiply_rows<D, T::UNROLL>(S_reg, Q_smem + my_row * T::STRIDE, K_smem + my_key * T::STRIDE, T::STRIDE);
        if (key0 + Bc > first_masked) {
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++)
                    if (key0 + my_key + LANE_COLS * j >= attended_keys(p, row0 + my_row + LANE_ROWS * i))
                        S_reg[i][j] = -INFINITY;
        }

        // The online softmax (docs/math.md, eq. 15). The 8 lanes that differ in bits 1 to 3 share their rows.
        float m_new[TM];
#pragma unroll
        for (int i = 0; i < TM; i++) {
            m_new[i] = m_reg[i];
#pragma unroll
            for (int j = 0; j < TN; j++) m_new[i] = fmaxf(m_new[i], S_reg[i][j]);
#pragma unroll
            for (int bit = 2; bit <= 8; bit *= 2) m_new[i] = fmaxf(m_new[i], __shfl_xor_sync(FULL_WARP, m_new[i], bit));
        }
        if constexpr (T::SHARE == 2) { // the band's other warp has the maximum over the other keys
#pragma unroll
            for (int i = 0; i < TM; i++)
                if (lane_n == 0) m_smem[part * Br + my_row + LANE_ROWS * i] = m_new[i];
            __syncthreads(); // both warps have written their maxima
#pragma unroll
            for (int i = 0; i < TM; i++) m_new[i] = fmaxf(m_new[i], m_smem[(1 - part) * Br + my_row + LANE_ROWS * i]);
        }
#pragma unroll
        for (int i = 0; i < TM; i++) {
            float base = m_new[i] > -INFINITY ? m_new[i] : 0.0f; // no key yet: 2^(-inf - -inf) would be NaN
            float rescale = exp2_approx(m_reg[i] - base);
            m_reg[i] = m_new[i];
            l_reg[i] *= rescale;
#pragma unroll
            for (int j = 0; j < TN; j++) {
                float weight = exp2_approx(S_reg[i][j] - base);
                l_reg[i] += weight;
                P_mine[LANE_ROWS * i * T::P_STRIDE + my_key + LANE_COLS * j] = weight;
            }
#pragma unroll
            for (int c = 0; c < TC; c++) O_reg[i][c] *= rescale;
        }

        __pipeline_wait_prior(0); // this thread's part of V has arrived
        __syncthreads();          // every thread's part of V and P has arrived; no thread still reads K or m
        if (key0 + Bc < end) copy_tile<Bc, D, T::STRIDE, THREADS>(K_smem, K, key0 + Bc, p.N_kv, p.d);
        __pipeline_commit();
        multiply_columns<Bc, T::UNROLL>(O_reg, P_mine, T::P_STRIDE, V_smem + my_col, D);
    }

#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int bit = 2; bit <= 8; bit *= 2) l_reg[i] += __shfl_xor_sync(FULL_WARP, l_reg[i], bit);
    if constexpr (T::SHARE == 2) {
#pragma unroll
        for (int i = 0; i < TM; i++)
            if (lane_n == 0) m_smem[part * Br + my_row + LANE_ROWS * i] = l_reg[i];
        __syncthreads(); // both warps have written their sums
#pragma unroll
        for (int i = 0; i < TM; i++) l_reg[i] += m_smem[(1 - part) * Br + my_row + LANE_ROWS * i];
    }
#pragma unroll
    for (int i = 0; i < TM; i++) {
        int row = row0 + my_row + LANE_ROWS * i;
        if (row >= p.N_q) continue;
        bool any = l_reg[i] != 0.0f; // the row attends to at least one key; NaN stays NaN
        float inverse = any ? 1.0f / l_reg[i] : 0.0f;
#pragma unroll
        for (int c = 0; c < TC; c++) O_reg[i][c] *= inverse;
        float *O_row = O + (head * p.N_q + row) * p.d;
#pragma unroll
        for (int c = 0; c < TC; c += 4) store_columns(O_row, my_col + LANE_COLS * c, p.d, O_reg[i] + c);
        if (my_col == 0) L[head * p.N_q + row] = any ? (m_reg[i] + log2f(l_reg[i])) * LN_2 : -INFINITY;
    }
}

template <class T> static cudaError_t run(const problem *p, const tensors *t, cudaStream_t stream) {
    dim3 blocks(ceil_div(p->N_q, T::Br), p->batch * p->heads);
    return launch(vectorized<T>, blocks, T::THREADS, T::BYTES, stream, t->Q, t->K, t->V, t->O, t->L, *p);
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    if (p->d <= 32) return run<tiling_32>(p, t, stream);
    if (p->d <= 64)
        return shared_memory_fits(tiling_64::BYTES) ? run<tiling_64>(p, t, stream) : run<tiling_64_small>(p, t, stream);
    return shared_memory_fits(tiling_128::BYTES) ? run<tiling_128>(p, t, stream) : run<tiling_128_small>(p, t, stream);
}

extern "C" const step step_06_vectorized = {
    .name = "06_vectorized",
    .idea = "register tiles, 16-byte loads, cp.async, interior tiles unchecked",
    .forward = forward,
};
