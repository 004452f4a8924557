// 10a_wmma: chapter 05's loops with both products on tensor cores, through WMMA.
//
// Idea      a warp multiplies 16 x 16 x 16 matrices as one instruction. Which lane holds which element of the result is not
//           public, so whatever needs rows goes through shared memory: S for the softmax, O to be rescaled.
// Costs     O(N) memory, none beyond the outputs.
// Limiter   shared memory: O, in fp32, is written and read twice per tile of keys.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <float.h>
#include <math.h>
#include <mma.h>

#include "device.cuh"
#include "tensor.cuh"

using namespace nvcuda;

constexpr int WARPS = 4;
constexpr int ROWS = 16;         // query rows of a warp: the rows of one WMMA
constexpr int Br = WARPS * ROWS; // query rows of a block
constexpr int Bc = 64;           // keys in a tile
constexpr float NONE = -FLT_MAX / 4; // a masked score, and the maximum of no keys: NONE - NONE is 0, not NaN

// The element of a tile's row and column. D >= d: width of the tiles.
template <int D> __device__ inline int place(int row, int col) { return row * D + col; }

// Copy rows [first, first + count) of a (rows, d) matrix to a tile, 8 elements per load; past the ends, zeros. No barrier.
template <int D, class T>
__device__ inline void copy_rows(T *tile, const T *matrix, int first, int count, int rows, int d) {
    for (int i = threadIdx.x; i < count * D / 8; i += WARPS * WARP) {
        int row = i / (D / 8), col = i % (D / 8) * 8;
        bool inside = first + row < rows && col < d;
        uint4 zeros = {};
        *(uint4 *)(tile + place<D>(row, col)) =
            inside ? *(const uint4 *)(matrix + (size_t)(first + row) * d + col) : zeros;
    }
}

// A float takes two elements.
template <int D> constexpr int shared_elements() { return (Br + 2 * Bc) * D + Br * Bc + 2 * (Br * Bc + Br * D); }
static_assert(shared_elements<128>() * 2 <= 163 * 1024, "what a card of 8.0 gives a block");

template <int D, class T>
static __global__ __launch_bounds__(WARPS *WARP) void wmma_forward(const T *Q, // (heads, N_q, d)
                                                                  const T *K, // (heads, N_kv, d)
                                                                  const T *V, // (heads, N_kv, d)
                                                                  T *O,       // (heads, N_q, d)
                                                                  float *L,   // (heads, N_q)
                                                                  problem p) {
    extern __shared__ uint4 smem[];
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    T *Q_smem = (T *)smem;        // (Br, D)
    T *K_smem = Q_smem + Br * D;  // (Bc, D)
    T *V_smem = K_smem + Bc * D;  // (Bc, D)
    T *P_smem = V_smem + Bc * D;  // (Br, Bc); from here on, only the warp's own rows
    float *S_smem = (float *)(P_smem + Br * Bc) + warp * ROWS * Bc;             // (Br, Bc)
    float *O_smem = (float *)(P_smem + Br * Bc) + Br * Bc + warp * ROWS * D;    // (Br, D)
    P_smem += warp * ROWS * Bc;
    size_t head = blockIdx.y;
    // Under a causal mask the last rows attend to the most keys: the longest blocks start first.
    int row0 = (gridDim.x - 1 - blockIdx.x) * Br;
    int warp_row0 = row0 + warp * ROWS;
    Q += head * p.N_q * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;

    // Row `row` attends to the keys before row + shift + 1.
    int shift = p.causal ? p.N_kv - p.N_q : p.N_kv;
    int end = max(0, min(p.N_kv, row0 + Br + shift)); // keys of the block's last row
    int first_masked = min(p.N_kv, row0 + shift + 1); // keys before this one belong to all rows

    copy_rows<D>(Q_smem, Q, row0, Br, p.N_q, p.d);
    for (int i = lane; i < ROWS * D; i += WARP) O_smem[i] = 0.0f;
    float m_reg = NONE, l_reg = 0.0f; // of row lane % ROWS; m in units of log 2
    float factor = p.scale * LOG2_E; // exp(scale s) = 2^(factor s)
    for (int key0 = 0; key0 < end; key0 += Bc) {
        __syncthreads(); // no warp still reads the tiles that are overwritten here
        copy_rows<D>(K_smem, K, key0, Bc, p.N_kv, p.d);
        copy_rows<D>(V_smem, V, key0, Bc, p.N_kv, p.d);
        __syncthreads(); // both tiles, and at first Q, are complete before any warp reads them

        for (int n = 0; n < Bc; n += 16) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> S_piece;
            wmma::fill_fragment(S_piece, 0.0f);
#pragma unroll
            for (int k = 0; k < D; k += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> Q_piece;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> K_piece; // K transposed
                wmma::load_matrix_sync(Q_piece, Q_smem + place<D>(warp * ROWS, k), D);
                wmma::load_matrix_sync(K_piece, K_smem + place<D>(n, k), D);
                wmma::mma_sync(S_piece, Q_piece, K_piece, S_piece);
            }
            wmma::store_matrix_sync(S_smem + n, S_piece, Bc, wmma::mem_row_major);
        }
        __syncwarp(); // S is complete before any lane reads it

        // The online softmax (docs/math.md, eq. 15): a row at a time, keys spread over the lanes.
        for (int r = 0; r < ROWS; r++) {
            float m_old = __shfl_sync(FULL_WARP, m_reg, r), m_new = m_old, sum = 0.0f, s[Bc / WARP];
            for (int t = 0; t < Bc / WARP; t++) {
                int key = key0 + lane + t * WARP;
                bool masked = key0 + Bc > first_masked && key >= min(p.N_kv, warp_row0 + r + shift + 1);
                s[t] = masked ? NONE : S_smem[r * Bc + lane + t * WARP] * factor;
                m_new = fmaxf(m_new, s[t]);
            }
            m_new = warp_reduce_max(m_new);
            float rescale = exp2_approx(m_old - m_new);
            for (int t = 0; t < Bc / WARP; t++) {
                float weight = exp2_approx(s[t] - m_new);
                P_smem[r * Bc + lane + t * WARP] = (T)weight;
                sum += weight;
            }
            sum = warp_reduce_sum(sum);
            if (lane % ROWS == r) {
                m_reg = m_new;
                l_reg = l_reg * rescale + sum;
            }
            for (int col = lane; col < D; col += WARP) O_smem[r * D + col] *= rescale;
        }
        __syncwarp(); // P and the rescaled O are complete before they become fragments

        for (int n = 0; n < D; n += 16) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> O_piece;
            wmma::load_matrix_sync(O_piece, O_smem + n, D, wmma::mem_row_major);
#pragma unroll
            for (int k = 0; k < Bc; k += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> P_piece;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> V_piece;
                wmma::load_matrix_sync(P_piece, P_smem + k, Bc);
                wmma::load_matrix_sync(V_piece, V_smem + place<D>(k, n), D);
                wmma::mma_sync(O_piece, P_piece, V_piece, O_piece);
            }
            wmma::store_matrix_sync(O_smem + n, O_piece, D, wmma::mem_row_major);
        }
        __syncwarp(); // O is complete before any lane reads it
    }

    __syncwarp(); // O is complete where there was no tile at all
    for (int r = 0; r < ROWS; r++) {
        float m = __shfl_sync(FULL_WARP, m_reg, r), l = __shfl_sync(FULL_WARP, l_reg, r);
        int row = warp_row0 + r;
        if (row >= p.N_q) continue;
        bool any = m > NONE;
        float inverse = any ? 1.0f / l : 0.0f;
        for (int col = lane; col < p.d; col += WARP)
            O[(head * p.N_q + row) * p.d + col] = (T)(O_smem[r * D + col] * inverse);
        if (lane == 0) L[head * p.N_q + row] = any ? (m + log2f(l)) * LN_2 : -INFINITY;
    }
}

template <int D, class T>
static cudaError_t run(const problem &p, const void *Q, const void *K, const void *V, void *O, float *L,
                       cudaStream_t stream) {
    int shared_bytes = shared_elements<D>() * sizeof(T);
    cudaError_t error =
        cudaFuncSetAttribute(wmma_forward<D, T>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess) return error;
    dim3 blocks(ceil_div(p.N_q, Br), p.batch * p.heads);
    wmma_forward<D, T><<<blocks, WARPS * WARP, shared_bytes, stream>>>((const T *)Q, (const T *)K, (const T *)V, (T *)O, L, p);
    return cudaGetLastError();
}

extern "C" cudaError_t forward_10a_wmma(int batch, int heads, int N_q, int N_kv, int d, int causal, float scale, int is_bf16,
                                       const void *Q, const void *K, const void *V, void *O, float *L,
                                       cudaStream_t stream) {
    problem p = {batch, heads, N_q, N_kv, d, causal != 0, scale};
    auto f = is_bf16 ? (d <= 64 ? run<64, __nv_bfloat16> : run<128, __nv_bfloat16>)
                     : (d <= 64 ? run<64, __half> : run<128, __half>);
    return f(p, Q, K, V, O, L, stream);
}
