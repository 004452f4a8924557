// 06_vectorized: chapter 05 with every load 16 bytes wide and every number read from shared memory used eight times.
//
// Idea      a thread owns a piece of S and a piece of O, TM rows each, in registers, so that TM + TN numbers feed TM * TN
//           multiply-adds; K and V arrive by cp.async while the other one is being used.
// Costs     O(N) memory, none beyond the outputs; nearly all registers of a multiprocessor.
// Limiter   the multiply-add units: fp32 on CUDA cores.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <cuda_pipeline.h>
#include <math.h>

#include "device.cuh"
#include "ptx.cuh"

// D >= d: width of the tiles. TM: query rows of a thread. Bc: keys in a tile. A band of rows belongs to one warp, or is
// shared by SHARE of them, each with its part of the keys for S and its part of the columns for O: at D 128 one warp's
// rows of O alone would fill the registers.
template <int D_, int TM_, int Bc_, int BANDS_, int SHARE_, int UNROLL_> struct tiling {
    static constexpr int D = D_, TM = TM_, Bc = Bc_, BANDS = BANDS_, SHARE = SHARE_, UNROLL = UNROLL_;
    static constexpr int THREADS = BANDS * SHARE * WARP;
    static constexpr int BAND_ROWS = LANE_ROWS * TM;
    static constexpr int Br = BANDS * BAND_ROWS;
    static constexpr int KEYS = Bc / SHARE, COLS = D / SHARE; // of a warp
    static constexpr int TN = KEYS / LANE_COLS;               // keys of a thread
    static constexpr int TC = COLS / 4 / LANE_COLS;           // float4 columns of O of a thread
    static constexpr int STRIDE = D + 4;                      // of Q and K: 8 rows, 16 bytes of each, lie in 32 banks
    static constexpr int P_STRIDE = Bc + 8;                   // of P: 4 rows x 8 columns, 4 bytes each, lie in 32 banks
    static constexpr int FLOATS = Br * STRIDE + Bc * STRIDE + Bc * D + Br * P_STRIDE + SHARE * Br; // Q, K, V, P, m
    static_assert(KEYS % LANE_COLS == 0 && COLS % (4 * LANE_COLS) == 0, "lanes share keys and columns evenly");
};

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
    // Under a causal mask the last rows see the most keys: the longest blocks start first.
    int row0 = (gridDim.x - 1 - blockIdx.x) * Br;
    Q += head * p.N_q * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;
    // This thread's first row, key and column in the tiles; the others are 4 rows, 8 keys and 32 columns apart.
    int my_row = band * T::BAND_ROWS + lane_m, my_key = part * T::KEYS + lane_n, my_col = part * T::COLS + 4 * lane_n;
    float *P_mine = P_smem + my_row * T::P_STRIDE;

    // Row `row` sees the keys before row + shift + 1.
    int shift = p.causal ? p.N_kv - p.N_q : p.N_kv;
    int end = max(0, min(p.N_kv, row0 + Br + shift)); // keys that the block's last row sees
    int first_masked = min(p.N_kv, row0 + shift + 1); // keys before this one are seen by all rows

    float O_reg[TM][4 * TC] = {};
    float m_reg[TM], l_reg[TM]; // m in units of log 2; l of this thread's keys only, until the end
#pragma unroll
    for (int i = 0; i < TM; i++) {
        m_reg[i] = -INFINITY;
        l_reg[i] = 0.0f;
    }

    copy_tile<Br, D, T::STRIDE, THREADS>(Q_smem, Q, row0, p.N_q, p.d);
    copy_tile<Bc, D, T::STRIDE, THREADS>(K_smem, K, 0, p.N_kv, p.d);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads(); // Q is there for all
    // exp(scale q.k) = 2^(scale log2(e) q.k): the factor goes to Q, once.
    float factor = p.scale * 1.44269504f;
    for (int i = threadIdx.x; i < Br * D / 4; i += THREADS) {
        float4 *q = (float4 *)(Q_smem + i / (D / 4) * T::STRIDE + i % (D / 4) * 4), x = *q;
        *q = make_float4(x.x * factor, x.y * factor, x.z * factor, x.w * factor);
    }

    for (int key0 = 0; key0 < end; key0 += Bc) {
        __pipeline_wait_prior(0); // K
        __syncthreads();          // K (at first Q too) is there for all; all are done with V and may see it overwritten
        copy_tile<Bc, D, D, THREADS>(V_smem, V, key0, p.N_kv, p.d);
        __pipeline_commit();

        float S_reg[TM][TN] = {};
        multiply_rows<TM, TN, D, T::UNROLL>(S_reg, Q_smem + my_row * T::STRIDE, K_smem + my_key * T::STRIDE, T::STRIDE);
        if (key0 + Bc > first_masked) {
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++)
                    if (key0 + my_key + LANE_COLS * j >= min(p.N_kv, row0 + my_row + LANE_ROWS * i + shift + 1))
                        S_reg[i][j] = -INFINITY;
        }

        // The online softmax (docs/math.md, eq. 15), rows shared by the 8 lanes that differ in bits 1 to 3.
        float m_new[TM];
#pragma unroll
        for (int i = 0; i < TM; i++) {
            m_new[i] = m_reg[i];
#pragma unroll
            for (int j = 0; j < TN; j++) m_new[i] = fmaxf(m_new[i], S_reg[i][j]);
#pragma unroll
            for (int bit = 2; bit <= 8; bit *= 2) m_new[i] = fmaxf(m_new[i], __shfl_xor_sync(FULL_WARP, m_new[i], bit));
        }
        if constexpr (T::SHARE == 2) { // the other warp of the band has seen the other keys
#pragma unroll
            for (int i = 0; i < TM; i++)
                if (lane_n == 0) m_smem[part * Br + my_row + LANE_ROWS * i] = m_new[i];
            __syncthreads(); // the maxima of both are there
#pragma unroll
            for (int i = 0; i < TM; i++) m_new[i] = fmaxf(m_new[i], m_smem[(1 - part) * Br + my_row + LANE_ROWS * i]);
        }
#pragma unroll
        for (int i = 0; i < TM; i++) {
            float base = m_new[i] > -INFINITY ? m_new[i] : 0.0f; // no key seen yet: 2^(-inf - -inf) would be NaN
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
            for (int c = 0; c < 4 * TC; c++) O_reg[i][c] *= rescale;
        }

        __pipeline_wait_prior(0); // V
        __syncthreads();          // V and P are there for all; all are done with K and m and may see them overwritten
        if (key0 + Bc < end) copy_tile<Bc, D, T::STRIDE, THREADS>(K_smem, K, key0 + Bc, p.N_kv, p.d);
        __pipeline_commit();
        multiply_columns<TM, TC, Bc, T::UNROLL>(O_reg, P_mine, T::P_STRIDE, V_smem + my_col, D);
    }

#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int bit = 2; bit <= 8; bit *= 2) l_reg[i] += __shfl_xor_sync(FULL_WARP, l_reg[i], bit);
    if constexpr (T::SHARE == 2) {
#pragma unroll
        for (int i = 0; i < TM; i++)
            if (lane_n == 0) m_smem[part * Br + my_row + LANE_ROWS * i] = l_reg[i];
        __syncthreads(); // the sums of both are there
#pragma unroll
        for (int i = 0; i < TM; i++) l_reg[i] += m_smem[(1 - part) * Br + my_row + LANE_ROWS * i];
    }
#pragma unroll
    for (int i = 0; i < TM; i++) {
        int row = row0 + my_row + LANE_ROWS * i;
        if (row >= p.N_q) continue;
        bool any = m_reg[i] > -INFINITY;
        float inverse = any ? 1.0f / l_reg[i] : 0.0f;
#pragma unroll
        for (int c = 0; c < 4 * TC; c++) O_reg[i][c] *= inverse;
#pragma unroll
        for (int t = 0; t < TC; t++)
            store_columns(O + (head * p.N_q + row) * p.d, my_col + 4 * LANE_COLS * t, p.d, O_reg[i] + 4 * t);
        if (my_col == 0) L[head * p.N_q + row] = any ? (m_reg[i] + log2f(l_reg[i])) * 0.693147181f : -INFINITY;
    }
}

template <class T> static cudaError_t launch(const problem *p, const tensors *t, cudaStream_t stream) {
    int shared_bytes = T::FLOATS * sizeof(float);
    cudaError_t error = cudaFuncSetAttribute(vectorized<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess) return error;
    dim3 blocks(ceil_div(p->N_q, T::Br), p->batch * p->heads);
    vectorized<T><<<blocks, T::THREADS, shared_bytes, stream>>>(t->Q, t->K, t->V, t->O, t->L, *p);
    return cudaGetLastError();
}

// The larger tiling where the card's blocks may have that much shared memory.
template <class Large, class Small>
static cudaError_t launch_fitting(const problem *p, const tensors *t, cudaStream_t stream) {
    static_assert(Small::FLOATS * sizeof(float) <= 64 * 1024, "the least that cards since 7.5 give a block");
    int device = 0, shared_bytes = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error != cudaSuccess) return error;
    bool fits = Large::FLOATS * sizeof(float) <= (size_t)shared_bytes;
    return fits ? launch<Large>(p, t, stream) : launch<Small>(p, t, stream);
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    if (p->d <= 32) return launch<tiling<32, 4, 64, 4, 1, 2>>(p, t, stream);
    if (p->d <= 64) return launch_fitting<tiling<64, 8, 64, 4, 1, 2>, tiling<64, 4, 32, 4, 1, 2>>(p, t, stream);
    return launch_fitting<tiling<128, 8, 64, 4, 2, 4>, tiling<128, 4, 32, 2, 1, 2>>(p, t, stream);
}

extern "C" const step step_06_vectorized = {
    .name = "06_vectorized",
    .idea = "float4, register tiles, cp.async: the fp32 roofline",
    .forward = forward,
};
