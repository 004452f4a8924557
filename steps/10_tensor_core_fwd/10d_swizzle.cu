// 10d_swizzle: no two rows of a quadrant in the same banks.
//
// Idea      Each row of a tile consists of groups of 8 elements, 16 bytes. Row r keeps group c at place c XOR r % 8.
//           The 8 rows of a quadrant then lie in 8 different groups of 4 banks, and ldmatrix loads a quadrant in one
//           wavefront.
// Costs     O(N) memory, none beyond the outputs; one XOR per address.
// Limiter   Waits: for a fixed number of cycles, and for loads from global memory, on their way through registers.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"
#include "tensor.cuh"

constexpr int WARPS = 4, THREADS = WARPS * WARP; // per block
constexpr int ROWS = 16;                         // query rows per warp: the rows of one mma
constexpr int Br = WARPS * ROWS;                 // query rows per block
constexpr int Bc = 64;                           // keys per tile

// Shared memory: Q (Br, D), K (Bc, D), V (Bc, D), 2 bytes per element.
template <int D> constexpr size_t BYTES = 2 * (Br + 2 * Bc) * D;
static_assert(BYTES<128> <= LEAST_SHARED_BYTES_8_0, "the tiles fit into the shared memory of every card since 8.0");

// The index of (row, col) in a tile: the XOR exchanges the row's groups of 8 columns.
template <int D> __device__ inline int place(int row, int col) {
    static_assert(D % 64 == 0, "a row has whole sets of 8 groups");
    return row * D + (col ^ row % 8 * 8);
}

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
    extern __shared__ uint4 smem[];
    T *Q_smem = (T *)smem;       // (Br, D)
    T *K_smem = Q_smem + Br * D; // (Bc, D)
    T *V_smem = K_smem + Bc * D; // (Bc, D)
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    size_t head = blockIdx.y;
    // Under a causal mask the last rows attend to the most keys: the longest blocks start first.
    int row0 = (gridDim.x - 1 - blockIdx.x) * Br;
    int my_row = row0 + warp * ROWS + lane / 4; // and my_row + 8
    Q += head * p.N_q * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;
    int end = attended_keys(p, row0 + Br - 1); // keys that the block's last row attends to
    int first_masked = attended_keys(p, row0); // all rows of the block attend to the keys before this one

    copy_rows<D>(Q_smem, Q, row0, Br, p.N_q, p.d);
    __syncthreads(); // every thread's part of Q has arrived
    // Lane l names row l % 8 of the quadrant for register l / 8 (tensor.cuh): this row and column of each piece.
    int row_k = lane % 16, col_k = lane / 16 * 8;                   // of Q and V
    int row_n = lane / 16 * 8 + lane % 8, col_n = lane / 8 % 2 * 8; // of K
    uint32_t Q_reg[D / 16][4];
#pragma unroll
    for (int k = 0; k < D / 16; k++) ldmatrix_x4(Q_reg[k], Q_smem + place<D>(warp * ROWS + row_k, 16 * k + col_k));

    // m in units of log 2; l of this lane's keys only, until the epilogue.
    float O_reg[D / 8][4] = {}, m_reg[2] = {NONE, NONE}, l_reg[2] = {};
    for (int key0 = 0; key0 < end; key0 += Bc) {
        __syncthreads(); // no warp still reads K or V, so they may be overwritten
        copy_rows<D>(K_smem, K, key0, Bc, p.N_kv, p.d);
        copy_rows<D>(V_smem, V, key0, Bc, p.N_kv, p.d);
        __syncthreads(); // every thread's part of K and V has arrived

        float S_reg[Bc / 8][4] = {};
#pragma unroll
        for (int k = 0; k < D / 16; k++)
#pragma unroll
            for (int n = 0; n < Bc / 16; n++) {
                uint32_t K_reg[4];
                ldmatrix_x4(K_reg, K_smem + place<D>(16 * n + row_n, 16 * k + col_n));
                mma_m16n8k16<T>(S_reg[2 * n], Q_reg[k], K_reg[0], K_reg[1]);
                mma_m16n8k16<T>(S_reg[2 * n + 1], Q_reg[k], K_reg[2], K_reg[3]);
            }

        bool masked = key0 + Bc > first_masked;
        online_softmax(S_reg, O_reg, m_reg, l_reg, p, masked, key0 + lane % 4 * 2, my_row);

#pragma unroll
        for (int k = 0; k < Bc / 16; k++) {
            uint32_t P_reg[4];
            pack_A<T>(P_reg, S_reg[2 * k], S_reg[2 * k + 1]);
#pragma unroll
            for (int n = 0; n < D / 16; n++) {
                uint32_t V_reg[4];
                ldmatrix_x4_trans(V_reg, V_smem + place<D>(16 * k + row_k, 16 * n + col_k));
                mma_m16n8k16<T>(O_reg[2 * n], P_reg, V_reg[0], V_reg[1]);
                mma_m16n8k16<T>(O_reg[2 * n + 1], P_reg, V_reg[2], V_reg[3]);
            }
        }
    }
    store_rows(O + head * p.N_q * p.d, L + head * p.N_q, O_reg, m_reg, l_reg, my_row, p.N_q, p.d);
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    dim3 blocks(ceil_div(p->N_q, Br), p->batch * p->heads);
    return dispatch(p, [&]<int D, class T>() {
        return launch(forward_kernel<D, T>, blocks, THREADS, BYTES<D>, stream, (const T *)t->Q, (const T *)t->K,
                      (const T *)t->V, (T *)t->O, t->L, *p);
    });
}

extern "C" const step step_10d_swizzle = {
    .name = "10d_swizzle",
    .idea = "XOR swizzle: ldmatrix without bank conflicts",
    .forward = forward,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .compute_capability = 80,
};
