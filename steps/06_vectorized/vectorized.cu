// 06_vectorized: chapter 05 with every load 16 bytes wide and every number read from shared memory used eight times.
//
// Idea      a thread owns a TM x TN piece of S and a TM x D/8 piece of O in registers, so that TM + TN numbers feed TM * TN
//           multiply-adds; K and V arrive by cp.async while the other one is being used.
// Costs     O(N) memory, none beyond the outputs; nearly all registers of a multiprocessor.
// Limiter   the multiply-add units: fp32 on CUDA cores.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <cuda_pipeline.h>
#include <math.h>

#include "device.cuh"
#include "ptx.cuh"

// A warp's lanes as 4 rows x 8 columns. A 16-byte shared load of a warp takes 2 turns instead of 4 when lane i reads the
// same address as lane i^1, or as lane i^2. Rows are given the lane bits 0 and 4 and columns the bits 1 to 3, so what
// depends on the row is equal for lanes i and i^2, and what depends on the column for lanes i and i^1.
constexpr int LANE_ROWS = 4, LANE_COLS = 8;
__device__ inline int lane_row(int lane) { return (lane & 1) | (lane >> 3 & 2); }
__device__ inline int lane_col(int lane) { return lane >> 1 & 7; }

// D >= d: width of the tiles. TM: query rows of a thread. Bc: keys in a tile.
template <int D_, int TM_, int Bc_, int WARPS_> struct tiling {
    static constexpr int D = D_, TM = TM_, Bc = Bc_, WARPS = WARPS_;
    static constexpr int THREADS = WARPS * WARP;
    static constexpr int WARP_ROWS = LANE_ROWS * TM;
    static constexpr int Br = WARPS * WARP_ROWS;
    static constexpr int TN = Bc / LANE_COLS;    // keys of a thread
    static constexpr int TC = D / 4 / LANE_COLS; // float4 columns of O of a thread
    static constexpr int STRIDE = D + 4;         // of Q and K: 8 rows, 16 bytes of each, lie in 32 banks
    static constexpr int P_STRIDE = Bc + 8;      // of P: 4 rows x 8 columns, 4 bytes each, lie in 32 banks
    static constexpr int FLOATS = Br * STRIDE + Bc * STRIDE + Bc * D + Br * P_STRIDE; // Q, K, V, P
    static_assert(Bc % LANE_COLS == 0 && D % (4 * LANE_COLS) == 0, "lanes share keys and columns evenly");
};

__device__ inline float4 load4(const float *p) { return *(const float4 *)p; }

__device__ inline void fma4(float4 &sum, float a, float4 b) {
    sum.x += a * b.x;
    sum.y += a * b.y;
    sum.z += a * b.z;
    sum.w += a * b.w;
}

// Start to copy rows [first, first + ROWS) of a (rows, d) matrix to a tile of D columns; past the ends, zeros. No
// commit, no wait.
template <int ROWS, int D, int STRIDE, int THREADS>
__device__ inline void copy_tile(float *tile, const float *matrix, int first, int rows, int d) {
    if (d % 4 == 0) { // rows begin at multiples of 16 bytes
        for (int i = threadIdx.x; i < ROWS * D / 4; i += THREADS) {
            int r = i / (D / 4), c = i % (D / 4) * 4;
            bool inside = first + r < rows && c < d;
            const float *from = inside ? matrix + (size_t)(first + r) * d + c : matrix;
            __pipeline_memcpy_async(tile + r * STRIDE + c, from, 16, inside ? 0 : 16);
        }
    } else {
        for (int i = threadIdx.x; i < ROWS * D; i += THREADS) {
            int r = i / D, c = i % D;
            bool inside = first + r < rows && c < d;
            const float *from = inside ? matrix + (size_t)(first + r) * d + c : matrix;
            __pipeline_memcpy_async(tile + r * STRIDE + c, from, 4, inside ? 0 : 4);
        }
    }
}

template <class T>
static __global__ __launch_bounds__(T::THREADS) void vectorized(const float *Q, // (heads, N_q, d)
                                                                const float *K, // (heads, N_kv, d)
                                                                const float *V, // (heads, N_kv, d)
                                                                float *O,       // (heads, N_q, d)
                                                                float *L,       // (heads, N_q)
                                                                problem p) {
    constexpr int D = T::D, TM = T::TM, TN = T::TN, TC = T::TC, Bc = T::Bc, THREADS = T::THREADS;
    extern __shared__ float4 smem[];
    float *Q_smem = (float *)smem;              // (Br, STRIDE)
    float *K_smem = Q_smem + T::Br * T::STRIDE; // (Bc, STRIDE)
    float *V_smem = K_smem + Bc * T::STRIDE;    // (Bc, D)
    float *P_smem = V_smem + Bc * D;            // (Br, P_STRIDE)
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    int lane_m = lane_row(lane), lane_n = lane_col(lane);
    size_t head = blockIdx.y;
    // Under a causal mask the last rows see the most keys: the longest blocks start first.
    int row0 = (gridDim.x - 1 - blockIdx.x) * T::Br;
    Q += head * p.N_q * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;
    // What this thread reads of its warp's rows; its own rows are lane_m + 4 i.
    float *Q_mine = Q_smem + (warp * T::WARP_ROWS + lane_m) * T::STRIDE;
    float *P_mine = P_smem + (warp * T::WARP_ROWS + lane_m) * T::P_STRIDE;
    int row_mine = row0 + warp * T::WARP_ROWS + lane_m;

    // Row `row` sees the keys before row + shift + 1.
    int shift = p.causal ? p.N_kv - p.N_q : p.N_kv;
    int end = max(0, min(p.N_kv, row0 + T::Br + shift)); // keys that the block's last row sees
    int first_masked = min(p.N_kv, row0 + shift + 1);    // keys before this one are seen by all rows

    float4 O_reg[TM][TC];
    float m_reg[TM], l_reg[TM]; // m in units of log 2; l of this thread's keys only, until the end
#pragma unroll
    for (int i = 0; i < TM; i++) {
        m_reg[i] = -INFINITY;
        l_reg[i] = 0.0f;
#pragma unroll
        for (int t = 0; t < TC; t++) O_reg[i][t] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }

    copy_tile<T::Br, D, T::STRIDE, THREADS>(Q_smem, Q, row0, p.N_q, p.d);
    copy_tile<Bc, D, T::STRIDE, THREADS>(K_smem, K, 0, p.N_kv, p.d);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads(); // Q is there for all
    // exp(scale q.k) = 2^(scale log2(e) q.k): the factor goes to Q, once.
    float factor = p.scale * 1.44269504f;
    for (int i = threadIdx.x; i < T::Br * D / 4; i += THREADS) {
        float4 *q = (float4 *)(Q_smem + i / (D / 4) * T::STRIDE) + i % (D / 4);
        float4 a = *q;
        *q = make_float4(a.x * factor, a.y * factor, a.z * factor, a.w * factor);
    }

    for (int key0 = 0; key0 < end; key0 += Bc) {
        __pipeline_wait_prior(0); // K
        __syncthreads();          // K (at first Q too) is there for all; all are done with V and may see it overwritten
        copy_tile<Bc, D, D, THREADS>(V_smem, V, key0, p.N_kv, p.d);
        __pipeline_commit();

        // S = Q K^T: for four columns of d at a time, TM + TN loads of 16 bytes feed 4 TM TN multiply-adds.
        float S_reg[TM][TN] = {};
#pragma unroll 2
        for (int c = 0; c < D; c += 4) {
            float4 Q_reg[TM];
#pragma unroll
            for (int i = 0; i < TM; i++) Q_reg[i] = load4(Q_mine + LANE_ROWS * i * T::STRIDE + c);
#pragma unroll
            for (int j = 0; j < TN; j++) {
                float4 k = load4(K_smem + (lane_n + LANE_COLS * j) * T::STRIDE + c);
#pragma unroll
                for (int i = 0; i < TM; i++) {
                    S_reg[i][j] += Q_reg[i].x * k.x;
                    S_reg[i][j] += Q_reg[i].y * k.y;
                    S_reg[i][j] += Q_reg[i].z * k.z;
                    S_reg[i][j] += Q_reg[i].w * k.w;
                }
            }
        }
        if (key0 + Bc > first_masked) {
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++)
                    if (key0 + lane_n + LANE_COLS * j >= min(p.N_kv, row_mine + LANE_ROWS * i + shift + 1))
                        S_reg[i][j] = -INFINITY;
        }

        // The online softmax (docs/math.md, eq. 15), rows shared by the 8 lanes that differ in bits 1 to 3.
#pragma unroll
        for (int i = 0; i < TM; i++) {
            float m_new = m_reg[i];
#pragma unroll
            for (int j = 0; j < TN; j++) m_new = fmaxf(m_new, S_reg[i][j]);
#pragma unroll
            for (int bit = 2; bit <= 8; bit *= 2) m_new = fmaxf(m_new, __shfl_xor_sync(FULL_WARP, m_new, bit));
            float base = m_new > -INFINITY ? m_new : 0.0f; // no key seen yet: 2^(-inf - -inf) would be NaN
            float rescale = exp2_approx(m_reg[i] - base);
            m_reg[i] = m_new;
            l_reg[i] *= rescale;
#pragma unroll
            for (int j = 0; j < TN; j++) {
                float weight = exp2_approx(S_reg[i][j] - base);
                l_reg[i] += weight;
                P_mine[LANE_ROWS * i * T::P_STRIDE + lane_n + LANE_COLS * j] = weight;
            }
#pragma unroll
            for (int t = 0; t < TC; t++) {
                O_reg[i][t].x *= rescale;
                O_reg[i][t].y *= rescale;
                O_reg[i][t].z *= rescale;
                O_reg[i][t].w *= rescale;
            }
        }

        __pipeline_wait_prior(0); // V
        __syncthreads();          // V and P are there for all; all are done with K and may see it overwritten
        if (key0 + Bc < end) copy_tile<Bc, D, T::STRIDE, THREADS>(K_smem, K, key0 + Bc, p.N_kv, p.d);
        __pipeline_commit();

        // O += P V: for four keys at a time, TM loads of P and 4 TC of V feed 16 TM TC multiply-adds.
#pragma unroll 2
        for (int key = 0; key < Bc; key += 4) {
            float4 P_reg[TM];
#pragma unroll
            for (int i = 0; i < TM; i++) P_reg[i] = load4(P_mine + LANE_ROWS * i * T::P_STRIDE + key);
#pragma unroll
            for (int t = 0; t < TC; t++) {
                const float *V_mine = V_smem + key * D + 4 * (lane_n + LANE_COLS * t);
                float4 v0 = load4(V_mine), v1 = load4(V_mine + D), v2 = load4(V_mine + 2 * D),
                       v3 = load4(V_mine + 3 * D);
#pragma unroll
                for (int i = 0; i < TM; i++) {
                    fma4(O_reg[i][t], P_reg[i].x, v0);
                    fma4(O_reg[i][t], P_reg[i].y, v1);
                    fma4(O_reg[i][t], P_reg[i].z, v2);
                    fma4(O_reg[i][t], P_reg[i].w, v3);
                }
            }
        }
    }

#pragma unroll
    for (int i = 0; i < TM; i++) {
        float l = l_reg[i];
#pragma unroll
        for (int bit = 2; bit <= 8; bit *= 2) l += __shfl_xor_sync(FULL_WARP, l, bit);
        int row = row_mine + LANE_ROWS * i;
        if (row >= p.N_q) continue;
        bool any = m_reg[i] > -INFINITY;
        float inverse = any ? 1.0f / l : 0.0f;
        float *O_row = O + (head * p.N_q + row) * p.d;
#pragma unroll
        for (int t = 0; t < TC; t++) {
            int col = 4 * (lane_n + LANE_COLS * t);
            float4 o = O_reg[i][t];
            o = make_float4(o.x * inverse, o.y * inverse, o.z * inverse, o.w * inverse);
            if (p.d % 4 == 0) {
                if (col < p.d) *(float4 *)(O_row + col) = o;
            } else {
                if (col < p.d) O_row[col] = o.x;
                if (col + 1 < p.d) O_row[col + 1] = o.y;
                if (col + 2 < p.d) O_row[col + 2] = o.z;
                if (col + 3 < p.d) O_row[col + 3] = o.w;
            }
        }
        if (lane_n == 0) L[head * p.N_q + row] = any ? (m_reg[i] + log2f(l)) * 0.693147181f : -INFINITY;
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
    if (p->d <= 32) return launch<tiling<32, 4, 64, 4>>(p, t, stream);
    if (p->d <= 64) return launch_fitting<tiling<64, 8, 64, 4>, tiling<64, 4, 32, 4>>(p, t, stream);
    return launch_fitting<tiling<128, 8, 32, 8>, tiling<128, 4, 32, 2>>(p, t, stream);
}

extern "C" const step step_06_vectorized = {
    .name = "06_vectorized",
    .idea = "float4, register tiles, cp.async: the fp32 roofline",
    .refuses = nullptr,
    .workspace_bytes = nullptr,
    .forward = forward,
    .backward = nullptr,
};
