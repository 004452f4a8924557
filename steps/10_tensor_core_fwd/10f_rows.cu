// 10f_rows: two row tiles per warp.
//
// Idea      a warp owns 32 query rows, so that a 16 x 16 piece of K or V, once in registers, feeds four mma instead of two. Q
//           no longer fits in registers and is loaded from shared memory again for each tile of keys.
// Costs     O(N) memory, none beyond the outputs; nearly all registers of a multiprocessor.
// Limiter   instructions besides mma.sync: masks, address arithmetic, the rescaling of O.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <cuda_pipeline.h>
#include <float.h>
#include <math.h>

#include "device.cuh"
#include "tensor.cuh"

constexpr int WARPS = 4;
constexpr int ROWS = 32;         // query rows of a warp: two row tiles of 16, the rows of one mma
constexpr int Br = WARPS * ROWS; // query rows of a block
constexpr int Bc = 32;           // keys in a tile: 64 do not fit in registers at D 128
constexpr int BLOCKS = 2;        // on a multiprocessor at a time, which bounds the registers
constexpr int STAGES = 2;        // tiles of K and of V in shared memory
constexpr float NONE = -FLT_MAX / 4; // a masked score, and the maximum of no keys: NONE - NONE is 0, not NaN

// The element of a tile's row and column. D >= d: width of the tiles. Columns 8 to a group; row r has group c at place
// c ^ r % 8.
template <int D> __device__ inline int place(int row, int col) {
    static_assert(D % 64 == 0, "8 groups of columns to exchange");
    return row * D + (col ^ row % 8 * 8);
}

// Start to copy rows [first, first + count) of a (rows, d) matrix to a tile, 8 elements per cp.async; past the ends, zeros.
// No commit, no wait.
template <int D, class T>
__device__ inline void copy_rows(T *tile, const T *matrix, int first, int count, int rows, int d) {
    for (int i = threadIdx.x; i < count * D / 8; i += WARPS * WARP) {
        int row = i / (D / 8), col = i % (D / 8) * 8;
        bool inside = first + row < rows && col < d;
        const T *from = inside ? matrix + (size_t)(first + row) * d + col : matrix;
        __pipeline_memcpy_async(tile + place<D>(row, col), from, 16, inside ? 0 : 16);
    }
}

// A 16 x 16 piece of a tile as fragments of Q, of K or of V (tensor.cuh): lane l has the address of row l % 8 of the
// quadrant for register l / 8.
template <int D, class T> __device__ inline void load_Q(uint32_t (&piece)[4], const T *tile, int row, int col) {
    int lane = threadIdx.x % WARP;
    ldmatrix_x4(piece, tile + place<D>(row + lane % 16, col + lane / 16 * 8));
}

template <int D, class T> __device__ inline void load_K(uint32_t (&piece)[4], const T *tile, int row, int col) {
    int lane = threadIdx.x % WARP;
    ldmatrix_x4(piece, tile + place<D>(row + lane / 16 * 8 + lane % 8, col + lane / 8 % 2 * 8));
}

template <int D, class T> __device__ inline void load_V(uint32_t (&piece)[4], const T *tile, int row, int col) {
    int lane = threadIdx.x % WARP;
    ldmatrix_x4_trans(piece, tile + place<D>(row + lane % 16, col + lane / 16 * 8));
}

template <int D> constexpr int shared_elements() { return (Br + 2 * STAGES * Bc) * D; }
static_assert(shared_elements<128>() * 2 <= 99 * 1024, "the least that cards since 8.0 give a block");

template <int D, class T>
static __global__ __launch_bounds__(WARPS *WARP, BLOCKS) void rows_forward(const T *Q, // (heads, N_q, d)
                                                                  const T *K, // (heads, N_kv, d)
                                                                  const T *V, // (heads, N_kv, d)
                                                                  T *O,       // (heads, N_q, d)
                                                                  float *L,   // (heads, N_q)
                                                                  problem p) {
    extern __shared__ uint4 smem[];
    T *Q_smem = (T *)smem;                // (Br, D)
    T *K_smem = Q_smem + Br * D;          // (STAGES, Bc, D)
    T *V_smem = K_smem + STAGES * Bc * D; // (STAGES, Bc, D)
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    size_t head = blockIdx.y;
    // Under a causal mask the last rows attend to the most keys: the longest blocks start first.
    int row0 = (gridDim.x - 1 - blockIdx.x) * Br;
    int my_row = row0 + warp * ROWS + lane / 4; // and 8, 16 and 24 rows below
    Q += head * p.N_q * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;

    // Row `row` attends to the keys before row + shift + 1.
    int shift = p.causal ? p.N_kv - p.N_q : p.N_kv;
    int end = max(0, min(p.N_kv, row0 + Br + shift)); // keys of the block's last row
    int first_masked = min(p.N_kv, row0 + shift + 1); // keys before this one belong to all rows

    copy_rows<D>(Q_smem, Q, row0, Br, p.N_q, p.d);
    copy_rows<D>(K_smem, K, 0, Bc, p.N_kv, p.d);
    copy_rows<D>(V_smem, V, 0, Bc, p.N_kv, p.d);
    __pipeline_commit();

    // Element e of a C fragment of row tile t lies in row my_row + 8 i, where i = 2 t + e / 2. m in units of log 2; l of this
    // lane's keys until the end.
    float O_reg[2][D / 8][4] = {}, m_reg[4] = {NONE, NONE, NONE, NONE}, l_reg[4] = {};
    float factor = p.scale * LOG2_E; // exp(scale s) = 2^(factor s)
    for (int key0 = 0; key0 < end; key0 += Bc) {
        int stage = key0 / Bc % STAGES, next = (stage + 1) % STAGES;
        __pipeline_wait_prior(0);
        __syncthreads(); // the tiles of this stage, and Q, are complete; no warp still reads the stage that is overwritten here
        if (key0 + Bc < end) {
            copy_rows<D>(K_smem + next * Bc * D, K, key0 + Bc, Bc, p.N_kv, p.d);
            copy_rows<D>(V_smem + next * Bc * D, V, key0 + Bc, Bc, p.N_kv, p.d);
        }
        __pipeline_commit();

        float S_reg[2][Bc / 8][4] = {};
#pragma unroll
        for (int k = 0; k < D / 16; k++) {
            uint32_t Q_reg[2][4];
#pragma unroll
            for (int t = 0; t < 2; t++) load_Q<D>(Q_reg[t], Q_smem, warp * ROWS + 16 * t, 16 * k);
#pragma unroll
            for (int n = 0; n < Bc / 16; n++) {
                uint32_t K_reg[4];
                load_K<D>(K_reg, K_smem + stage * Bc * D, 16 * n, 16 * k);
#pragma unroll
                for (int t = 0; t < 2; t++) {
                    mma_m16n8k16<T>(S_reg[t][2 * n], Q_reg[t], K_reg[0], K_reg[1]);
                    mma_m16n8k16<T>(S_reg[t][2 * n + 1], Q_reg[t], K_reg[2], K_reg[3]);
                }
            }
        }

        // The online softmax (docs/math.md, eq. 15) of the lane's four rows.
        bool masked = key0 + Bc > first_masked;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float m_new = m_reg[i];
#pragma unroll
            for (int n = 0; n < Bc / 8; n++)
#pragma unroll
                for (int e = i % 2 * 2; e < i % 2 * 2 + 2; e++) {
                    int key = key0 + 8 * n + lane % 4 * 2 + e % 2;
                    S_reg[i / 2][n][e] *= factor;
                    if (masked && key >= min(p.N_kv, my_row + 8 * i + shift + 1)) S_reg[i / 2][n][e] = NONE;
                    m_new = fmaxf(m_new, S_reg[i / 2][n][e]);
                }
            m_new = quad_max(m_new);
            float rescale = exp2_approx(m_reg[i] - m_new);
            m_reg[i] = m_new;
            l_reg[i] *= rescale;
#pragma unroll
            for (int n = 0; n < Bc / 8; n++)
#pragma unroll
                for (int e = i % 2 * 2; e < i % 2 * 2 + 2; e++) {
                    S_reg[i / 2][n][e] = exp2_approx(S_reg[i / 2][n][e] - m_new); // now P
                    l_reg[i] += S_reg[i / 2][n][e];
                }
#pragma unroll
            for (int n = 0; n < D / 8; n++)
#pragma unroll
                for (int e = i % 2 * 2; e < i % 2 * 2 + 2; e++) O_reg[i / 2][n][e] *= rescale;
        }

#pragma unroll
        for (int k = 0; k < Bc / 16; k++) {
            uint32_t P_reg[2][4];
#pragma unroll
            for (int t = 0; t < 2; t++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    P_reg[t][i] = pack<T>(S_reg[t][2 * k + i / 2][i % 2 * 2], S_reg[t][2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
            for (int n = 0; n < D / 16; n++) {
                uint32_t V_reg[4];
                load_V<D>(V_reg, V_smem + stage * Bc * D, 16 * k, 16 * n);
#pragma unroll
                for (int t = 0; t < 2; t++) {
                    mma_m16n8k16<T>(O_reg[t][2 * n], P_reg[t], V_reg[0], V_reg[1]);
                    mma_m16n8k16<T>(O_reg[t][2 * n + 1], P_reg[t], V_reg[2], V_reg[3]);
                }
            }
        }
    }

#pragma unroll
    for (int i = 0; i < 4; i++) {
        float l = quad_sum(l_reg[i]);
        int row = my_row + 8 * i;
        if (row >= p.N_q) continue;
        bool any = m_reg[i] > NONE;
        float inverse = any ? 1.0f / l : 0.0f;
        T *O_row = O + (head * p.N_q + row) * p.d;
#pragma unroll
        for (int n = 0; n < D / 8; n++)
            if (8 * n < p.d)
                *(uint32_t *)(O_row + 8 * n + lane % 4 * 2) =
                    pack<T>(O_reg[i / 2][n][i % 2 * 2] * inverse, O_reg[i / 2][n][i % 2 * 2 + 1] * inverse);
        if (lane % 4 == 0) L[head * p.N_q + row] = any ? (m_reg[i] + log2f(l)) * LN_2 : -INFINITY;
    }
}

template <int D, class T>
static cudaError_t run(const problem &p, const void *Q, const void *K, const void *V, void *O, float *L,
                       cudaStream_t stream) {
    int shared_bytes = shared_elements<D>() * sizeof(T);
    cudaError_t error =
        cudaFuncSetAttribute(rows_forward<D, T>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess) return error;
    dim3 blocks(ceil_div(p.N_q, Br), p.batch * p.heads);
    rows_forward<D, T><<<blocks, WARPS * WARP, shared_bytes, stream>>>((const T *)Q, (const T *)K, (const T *)V, (T *)O, L, p);
    return cudaGetLastError();
}

extern "C" cudaError_t forward_10f_rows(int batch, int heads, int N_q, int N_kv, int d, int causal, float scale, int is_bf16,
                                       const void *Q, const void *K, const void *V, void *O, float *L,
                                       cudaStream_t stream) {
    problem p = {batch, heads, N_q, N_kv, d, causal != 0, scale};
    auto f = is_bf16 ? (d <= 64 ? run<64, __nv_bfloat16> : run<128, __nv_bfloat16>)
                     : (d <= 64 ? run<64, __half> : run<128, __half>);
    return f(p, Q, K, V, O, L, stream);
}
