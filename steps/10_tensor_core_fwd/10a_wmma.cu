// 10a_wmma: chapter 05's loops with both products on tensor cores, through WMMA.
//
// Idea      A warp multiplies 16 x 16 x 16 matrices by one operation of WMMA. Which lane holds which element is not
//           documented, so what needs rows goes through shared memory: S for the softmax, and O to be rescaled.
// Costs     O(N) memory, none beyond the outputs.
// Limiter   Shared memory: each of a fragment's four loads takes 8 wavefronts; S, P and O pass through shared memory.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <mma.h>

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"
#include "tensor.cuh"

constexpr int WARPS = 4, THREADS = WARPS * WARP; // per block
constexpr int ROWS = 16;                         // query rows per warp: the rows of one mma
constexpr int Br = WARPS * ROWS;                 // query rows per block
constexpr int Bc = 64;                           // keys per tile

// Shared memory: Q (Br, D), K (Bc, D), V (Bc, D), 2 bytes per element.
// Then S (Br, Bc) and O (Br, D), 4 bytes per element.
template <int D> constexpr size_t BYTES = 2 * (Br + 2 * Bc) * D + 4 * Br *(Bc + D);
static_assert(BYTES<128> <= LEAST_SHARED_BYTES_8_0, "the tiles fit into the shared memory of every card since 8.0");

// The index of (row, col) in a tile.
template <int D> __device__ inline int place(int row, int col) { return row * D + col; }

// Copy rows [first, first + count) of a (rows, d) matrix to a (count, D) tile, 8 elements per load. Elements past the
// last row or the last column become zeros. No barrier.
template <int D, class T>
__device__ inline void copy_rows(T *tile, const T *matrix, int first, int count, int rows, int d) {
    for (int i = threadIdx.x; i < count * D / 8; i += THREADS) {
        int row = i / (D / 8), col = i % (D / 8) * 8;
        bool inside = first + row < rows && col < d;
        uint4 zeros = {};
        *(uint4 *)(tile + place<D>(row, col)) =
            inside ? *(const uint4 *)(matrix + (size_t)(first + row) * d + col) : zeros;
    }
}

template <int D, class T>
static __global__ __launch_bounds__(THREADS) void forward_kernel(const T *Q, // (heads, N_q, d)
                                                                 const T *K, // (heads, N_kv, d)
                                                                 const T *V, // (heads, N_kv, d)
                                                                 T *O,       // (heads, N_q, d)
                                                                 float *L,   // (heads, N_q)
                                                                 problem p) {
    using namespace nvcuda;
    extern __shared__ __align__(32) uint4 smem[]; // as WMMA loads and stores it
    T *Q_smem = (T *)smem;                        // (Br, D)
    T *K_smem = Q_smem + Br * D;                  // (Bc, D)
    T *V_smem = K_smem + Bc * D;                  // (Bc, D)
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    float *S_smem = (float *)(V_smem + Bc * D) + warp * ROWS * Bc;          // (ROWS, Bc): the warp's own rows
    float *O_smem = (float *)(V_smem + Bc * D) + Br * Bc + warp * ROWS * D; // (ROWS, D): the warp's own rows
    T *P_smem = (T *)S_smem; // (ROWS, Bc) in the place of S, rows 2 Bc elements apart
    size_t head = blockIdx.y;
    // Under a causal mask the last rows attend to the most keys: the longest blocks start first.
    int row0 = (gridDim.x - 1 - blockIdx.x) * Br;
    int warp_row0 = row0 + warp * ROWS;
    Q += head * p.N_q * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;
    int end = attended_keys(p, row0 + Br - 1); // keys that the block's last row attends to
    int first_masked = attended_keys(p, row0); // all rows of the block attend to the keys before this one

    copy_rows<D>(Q_smem, Q, row0, Br, p.N_q, p.d);
    for (int i = lane; i < ROWS * D; i += WARP) O_smem[i] = 0.0f;
    float m_reg = NONE, l_reg = 0.0f; // of row lane % ROWS; m in units of log 2
    for (int key0 = 0; key0 < end; key0 += Bc) {
        __syncthreads(); // no warp still reads K or V, so they may be overwritten
        copy_rows<D>(K_smem, K, key0, Bc, p.N_kv, p.d);
        copy_rows<D>(V_smem, V, key0, Bc, p.N_kv, p.d);
        __syncthreads(); // every thread's part of K, V and (in the first round) Q has arrived

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
        __syncwarp(); // every lane's part of S has arrived

        // The online softmax (docs/math.md, eq. 15): one row at a time, keys spread over the lanes.
        bool masked = key0 + Bc > first_masked;
        for (int r = 0; r < ROWS; r++) {
            float m_old = __shfl_sync(FULL_WARP, m_reg, r), m_new = m_old, sum = 0.0f, s[Bc / WARP];
            for (int t = 0; t < Bc / WARP; t++) {
                s[t] = S_smem[r * Bc + lane + t * WARP] * (p.scale * LOG2_E); // exp(scale s) = 2^(scale log2(e) s)
                if (masked && key0 + lane + t * WARP >= attended_keys(p, warp_row0 + r)) s[t] = NONE;
                m_new = fmaxf(m_new, s[t]);
            }
            m_new = warp_reduce_max(m_new);
            float rescale = exp2_approx(m_old - m_new);
            __syncwarp(); // no lane still reads this row of S, so P may overwrite it
            for (int t = 0; t < Bc / WARP; t++) {
                float weight = exp2_approx(s[t] - m_new);
                P_smem[r * 2 * Bc + lane + t * WARP] = (T)weight;
                sum += weight;
            }
            sum = warp_reduce_sum(sum);
            if (lane % ROWS == r) {
                m_reg = m_new;
                l_reg = l_reg * rescale + sum;
            }
            for (int col = lane; col < D; col += WARP) O_smem[r * D + col] *= rescale;
        }
        __syncwarp(); // every lane's part of P and of the rescaled O has arrived

        for (int n = 0; n < D; n += 16) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> O_piece;
            wmma::load_matrix_sync(O_piece, O_smem + n, D, wmma::mem_row_major);
#pragma unroll
            for (int k = 0; k < Bc; k += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> P_piece;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> V_piece;
                wmma::load_matrix_sync(P_piece, P_smem + k, 2 * Bc);
                wmma::load_matrix_sync(V_piece, V_smem + place<D>(k, n), D);
                wmma::mma_sync(O_piece, P_piece, V_piece, O_piece);
            }
            wmma::store_matrix_sync(O_smem + n, O_piece, D, wmma::mem_row_major);
        }
        __syncwarp(); // no lane still reads P, so S may overwrite it; every lane's part of O has arrived
    }

    for (int r = 0; r < ROWS; r++) {
        float m = __shfl_sync(FULL_WARP, m_reg, r), l = __shfl_sync(FULL_WARP, l_reg, r);
        int row = warp_row0 + r;
        if (row >= p.N_q) continue;
        float inverse = m > NONE || isnan(l) ? 1.0f / l : 0.0f; // 0: the row attends to no key
        for (int col = lane; col < p.d; col += WARP)
            O[(head * p.N_q + row) * p.d + col] = (T)(O_smem[r * D + col] * inverse);
        if (lane == 0) L[head * p.N_q + row] = inverse != 0.0f ? (m + log2f(l)) * LN_2 : -INFINITY;
    }
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    dim3 blocks(ceil_div(p->N_q, Br), p->batch * p->heads);
    return dispatch(p, [&]<int D, class T>() {
        return launch(forward_kernel<D, T>, blocks, THREADS, BYTES<D>, stream, (const T *)t->Q, (const T *)t->K,
                      (const T *)t->V, (T *)t->O, t->L, *p);
    });
}

extern "C" const step step_10a_wmma = {
    .name = "10a_wmma",
    .idea = "both products on tensor cores, through WMMA",
    .forward = forward,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .compute_capability = 80,
};
