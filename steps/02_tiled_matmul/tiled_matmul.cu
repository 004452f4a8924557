// 02_tiled_matmul: the three kernels of chapter 01, with neighbouring threads sharing what they load.
//
// Idea      A block loads a tile of each operand into shared memory once, and all its threads read the tile there. One
//           warp per softmax row: its 32 lanes read 32 neighbouring elements, so that the loads are coalesced.
// Costs     S and P still live in global memory: memory and traffic grow with N_q x N_kv.
// Limiter   Shared memory: each FMA needs two numbers from it.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <math.h>

#include "device.cuh"
#include "mask.cuh"

constexpr int TILE = 32;              // matmul: a block computes TILE x TILE of the product, one thread per element
constexpr int SOFTMAX_ROWS = 4;       // softmax: rows, and warps, per block
constexpr int MAX_N_Q = 65535 * TILE; // CUDA's limit of blocks in y
static_assert(MAX_N_Q == 2097120, "the number that refuses() names");
static_assert(TILE == WARP, "a warp is a row of a tile, so that it loads and stores neighbouring elements");
static_assert(sizeof(float) * (TILE * TILE + TILE * (TILE + 1)) <= 48 * 1024,
              "two tiles fit into static shared memory");

// C = alpha A B, or alpha A B^T. One thread per element of C.
template <bool B_TRANSPOSED>
static __global__ void matmul(const float *A, // (heads, rows, depth)
                              const float *B, // (heads, depth, cols); B_TRANSPOSED: (heads, cols, depth)
                              float *C,       // (heads, rows, cols)
                              int rows, int cols, int depth, float alpha) {
    __shared__ __align__(16) float A_smem[TILE][TILE]; // [row][k], four neighbouring k per load
    __shared__ float B_smem[TILE][TILE + 1];           // [k][col], rows padded for the transposed stores below
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, col = blockIdx.x * TILE + x; // of this thread's element of C
    size_t head = blockIdx.z;
    A += head * rows * depth;
    B += head * cols * depth;
    C += head * rows * cols;

    float sum = 0.0f;
    for (int k0 = 0; k0 < depth; k0 += TILE) {
        // Outside of the matrices the tiles hold zeros, which add nothing to the sum.
        A_smem[y][x] = row < rows && k0 + x < depth ? A[(size_t)row * depth + k0 + x] : 0.0f;
        if (B_TRANSPOSED) {
            // Row k0 + x of B^T is column k0 + x of B: coalesced loads along rows of B, transposed by the store.
            int b_row = blockIdx.x * TILE + y;
            B_smem[x][y] = b_row < cols && k0 + x < depth ? B[(size_t)b_row * depth + k0 + x] : 0.0f;
        } else {
            B_smem[y][x] = k0 + y < depth && col < cols ? B[(size_t)(k0 + y) * cols + col] : 0.0f;
        }
        __syncthreads(); // every thread's elements of the tiles are stored
        for (int k = 0; k < TILE; k += 4) {
            float4 a = *(const float4 *)&A_smem[y][k]; // one address for the whole warp
            sum += a.x * B_smem[k][x];
            sum += a.y * B_smem[k + 1][x];
            sum += a.z * B_smem[k + 2][x];
            sum += a.w * B_smem[k + 3][x];
        }
        __syncthreads(); // no thread still reads the tiles, so they may be overwritten
    }
    if (row < rows && col < cols) C[(size_t)row * cols + col] = alpha * sum;
}

// P = softmax of each row of S, L = its logsumexp, in three passes over the row (docs/math.md, eq. 5 and 8). One warp
// per row. The mask is applied here: only the first `keys` elements of the row count.
static __global__ void softmax(const float *S, // (heads, N_q, N_kv)
                               float *P,       // (heads, N_q, N_kv)
                               float *L,       // (heads, N_q)
                               problem p) {
    int lane = threadIdx.x;
    int row = blockIdx.x * SOFTMAX_ROWS + threadIdx.y;
    if (row >= p.N_q) return; // all lanes of a warp return together, so the shuffles below find all 32
    size_t head = blockIdx.z;
    S += (head * p.N_q + row) * p.N_kv;
    P += (head * p.N_q + row) * p.N_kv;
    int keys = attended_keys(p, row);

    float m = -INFINITY;
    for (int col = lane; col < keys; col += WARP) m = fmaxf(m, S[col]);
    m = warp_reduce_max(m);
    float l = 0.0f;
    for (int col = lane; col < keys; col += WARP) l += expf(S[col] - m);
    l = warp_reduce_sum(l);
    for (int col = lane; col < p.N_kv; col += WARP) P[col] = col < keys ? expf(S[col] - m) / l : 0.0f;
    if (lane == 0) L[head * p.N_q + row] = keys > 0 ? m + logf(l) : -INFINITY;
}

static const char *refuses(const problem *p) { return p->N_q > MAX_N_Q ? "takes at most 2097120 queries" : nullptr; }
static size_t workspace_bytes(const problem *p) { return 2 * sizeof(float) * p->batch * p->heads * p->N_q * p->N_kv; }

static cudaError_t forward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    float *S = (float *)workspace, *P = S + workspace_bytes(p) / sizeof(float) / 2;
    unsigned heads = p->batch * p->heads, rows = ceil_div(p->N_q, TILE);
    dim3 S_blocks(ceil_div(p->N_kv, TILE), rows, heads), O_blocks(ceil_div(p->d, TILE), rows, heads), block(TILE, TILE);
    matmul<true><<<S_blocks, block, 0, stream>>>(t->Q, t->K, S, p->N_q, p->N_kv, p->d, p->scale);
    softmax<<<dim3(ceil_div(p->N_q, SOFTMAX_ROWS), 1, heads), dim3(WARP, SOFTMAX_ROWS), 0, stream>>>(S, P, t->L, *p);
    matmul<false><<<O_blocks, block, 0, stream>>>(P, t->V, t->O, p->N_q, p->d, p->N_kv, 1.0f);
    return cudaGetLastError();
}

extern "C" const step step_02_tiled_matmul = {
    .name = "02_tiled_matmul",
    .idea = "shared-memory tiles, one warp per softmax row",
    .forward = forward,
    .workspace_bytes = workspace_bytes,
    .refuses = refuses,
};
