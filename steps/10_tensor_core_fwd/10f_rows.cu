// 10f_rows: two row tiles per warp.
//
// Idea      A warp owns 32 query rows, so that a 16 x 16 piece of K or V, once in registers, feeds four mma instead
//           of two. Q is loaded from shared memory again for each tile of keys: at d 128 it no longer fits in registers.
// Costs     O(N) memory, none beyond the outputs; up to 255 registers per thread.
// Limiter   Not known: half of the issue slots are empty; a scheduler has two warps.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"
#include "tensor.cuh"

constexpr int WARPS = 4, THREADS = WARPS * WARP; // per block
constexpr int TILES = 2;                         // row tiles per warp: 16 rows, the rows of one mma
constexpr int ROWS = TILES * 16;                 // query rows per warp
constexpr int Br = WARPS * ROWS;                 // query rows per block
constexpr int BLOCKS = 2;                        // per multiprocessor: a thread may have 255 registers
constexpr int STAGES = 2;                        // tiles of K and of V in shared memory

// Keys per tile: at D 128, 64 keys make nvcc spill registers.
template <int D> constexpr int KEYS = D == 64 ? 64 : 32;

// Shared memory: Q (Br, D), K and V (STAGES, Bc, D), 2 bytes per element.
template <int D> constexpr size_t BYTES = 2 * (Br + 2 * STAGES * KEYS<D>)*D;
static_assert(BYTES<128> <= LEAST_SHARED_BYTES_8_0, "the tiles fit into the shared memory of every card since 8.0");

// The index of (row, col) in a tile: the XOR exchanges the row's groups of 8 columns.
template <int D> __device__ inline int place(int row, int col) {
    static_assert(D % 64 == 0, "a row has whole sets of 8 groups");
    return row * D + (col ^ row % 8 * 8);
}

// Start to copy rows [first, first + count) of a (rows, d) matrix to a (count, D) tile, 8 elements per cp.async.
// Elements past the last row or the last column become zeros. No commit, no wait.
template <int D, class T>
__device__ inline void copy_rows(T *tile, const T *matrix, int first, int count, int rows, int d) {
    for (int i = threadIdx.x; i < count * D / 8; i += THREADS) {
        int row = i / (D / 8), col = i % (D / 8) * 8;
        bool inside = first + row < rows && col < d;
        const T *from = inside ? matrix + (size_t)(first + row) * d + col : matrix;
        __pipeline_memcpy_async(tile + place<D>(row, col), from, 16, inside ? 0 : 16);
    }
}

template <int D, class T>
static __global__ __launch_bounds__(THREADS, BLOCKS) void forward_kernel(const T *Q, // (heads, N_q, d)
                                                                         const T *K, // (heads, N_kv, d)
                                                                         const T *V, // (heads, N_kv, d)
                                                                         T *O,       // (heads, N_q, d)
                                                                         float *L,   // (heads, N_q)
                                                                         problem p) {
    constexpr int Bc = KEYS<D>;
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
    int end = attended_keys(p, row0 + Br - 1); // keys that the block's last row attends to
    int first_masked = attended_keys(p, row0); // all rows of the block attend to the keys before this one

    copy_rows<D>(Q_smem, Q, row0, Br, p.N_q, p.d);
    copy_rows<D>(K_smem, K, 0, Bc, p.N_kv, p.d);
    copy_rows<D>(V_smem, V, 0, Bc, p.N_kv, p.d);
    __pipeline_commit();

    // Lane l names row l % 8 of the quadrant for register l / 8 (tensor.cuh): this row and column of each piece.
    int row_k = lane % 16, col_k = lane / 16 * 8;                   // of Q and V
    int row_n = lane / 16 * 8 + lane % 8, col_n = lane / 8 % 2 * 8; // of K

    // m in units of log 2; l of this lane's keys only, until the epilogue.
    float O_reg[TILES][D / 8][4] = {}, m_reg[TILES][2], l_reg[TILES][2] = {};
    for (int i = 0; i < 2 * TILES; i++) m_reg[i / 2][i % 2] = NONE;
    for (int key0 = 0; key0 < end; key0 += Bc) {
        int stage = key0 / Bc % STAGES * Bc * D, next = Bc * D - stage;
        __pipeline_wait_prior(0); // this thread's part of this stage has arrived
        __syncthreads();          // every thread's part has arrived; no warp still reads the other stage
        if (key0 + Bc < end) {
            copy_rows<D>(K_smem + next, K, key0 + Bc, Bc, p.N_kv, p.d);
            copy_rows<D>(V_smem + next, V, key0 + Bc, Bc, p.N_kv, p.d);
        }
        __pipeline_commit();

        float S_reg[TILES][Bc / 8][4] = {};
#pragma unroll
        for (int k = 0; k < D / 16; k++) {
            uint32_t Q_reg[TILES][4];
#pragma unroll
            for (int t = 0; t < TILES; t++)
                ldmatrix_x4(Q_reg[t], Q_smem + place<D>(warp * ROWS + 16 * t + row_k, 16 * k + col_k));
#pragma unroll
            for (int n = 0; n < Bc / 16; n++) {
                uint32_t K_reg[4];
                ldmatrix_x4(K_reg, K_smem + stage + place<D>(16 * n + row_n, 16 * k + col_n));
#pragma unroll
                for (int t = 0; t < TILES; t++) {
                    mma_m16n8k16<T>(S_reg[t][2 * n], Q_reg[t], K_reg[0], K_reg[1]);
                    mma_m16n8k16<T>(S_reg[t][2 * n + 1], Q_reg[t], K_reg[2], K_reg[3]);
                }
            }
        }

        bool masked = key0 + Bc > first_masked;
#pragma unroll
        for (int t = 0; t < TILES; t++)
            online_softmax(S_reg[t], O_reg[t], m_reg[t], l_reg[t], p, masked, key0 + lane % 4 * 2, my_row + 16 * t);

#pragma unroll
        for (int k = 0; k < Bc / 16; k++) {
            uint32_t P_reg[TILES][4];
#pragma unroll
            for (int t = 0; t < TILES; t++) pack_A<T>(P_reg[t], S_reg[t][2 * k], S_reg[t][2 * k + 1]);
#pragma unroll
            for (int n = 0; n < D / 16; n++) {
                uint32_t V_reg[4];
                ldmatrix_x4_trans(V_reg, V_smem + stage + place<D>(16 * k + row_k, 16 * n + col_k));
#pragma unroll
                for (int t = 0; t < TILES; t++) {
                    mma_m16n8k16<T>(O_reg[t][2 * n], P_reg[t], V_reg[0], V_reg[1]);
                    mma_m16n8k16<T>(O_reg[t][2 * n + 1], P_reg[t], V_reg[2], V_reg[3]);
                }
            }
        }
    }
#pragma unroll
    for (int t = 0; t < TILES; t++)
        store_rows(O + head * p.N_q * p.d, L + head * p.N_q, O_reg[t], m_reg[t], l_reg[t], my_row + 16 * t, p.N_q, p.d);
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    dim3 blocks(ceil_div(p->N_q, Br), p->batch * p->heads);
    return dispatch(p, [&]<int D, class T>() {
        return launch(forward_kernel<D, T>, blocks, THREADS, BYTES<D>, stream, (const T *)t->Q, (const T *)t->K,
                      (const T *)t->V, (T *)t->O, t->L, *p);
    });
}

extern "C" const step step_10f_rows = {
    .name = "10f_rows",
    .idea = "two row tiles per warp",
    .forward = forward,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .compute_capability = 80,
};
