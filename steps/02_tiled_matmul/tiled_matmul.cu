// 02_tiled_matmul: the same three kernels, with neighbouring threads sharing what they read.
//
// Idea      a block loads a tile of each operand into shared memory once and all its threads read it from there; a warp
//           shares a row of the softmax, so that its 32 lanes read 32 neighbouring elements.
// Costs     S and P still live in global memory: memory and traffic grow with N_q x N_kv.
// Limiter   shared memory: every multiply-add needs two numbers from it.
// Measured  the limiter as predicted; README.md beside this file has the numbers.

#include "attention.h"

#include <math.h>

#include "device.cuh"

constexpr int TILE = 32;        // matmul: a block computes TILE x TILE of the product, a thread one element
constexpr int SOFTMAX_ROWS = 4; // softmax: rows, and warps, in a block
static_assert(TILE == WARP, "a warp is a row of a tile, so that it loads and stores neighbouring elements");

// C = alpha A B, or alpha A B^T. Shapes per head: A (rows, depth), C (rows, cols), B (depth, cols) or (cols, depth).
template <bool B_TRANSPOSED>
static __global__ void matmul(const float *A, const float *B, float *C, int rows, int cols, int depth, float alpha) {
    __shared__ __align__(16) float A_smem[TILE][TILE]; // [row][k], read four at a time
    __shared__ float B_smem[TILE][TILE + 1];           // [k][col]; a float of padding, for the transposed stores below
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, col = blockIdx.x * TILE + x; // of the element of C that this thread owns
    size_t head = blockIdx.z;
    A += head * rows * depth;
    B += head * cols * depth;
    C += head * rows * cols;

    float sum = 0.0f;
    for (int k0 = 0; k0 < depth; k0 += TILE) {
        // Outside of the matrices the tiles hold zeros, which add nothing.
        A_smem[y][x] = row < rows && k0 + x < depth ? A[(size_t)row * depth + k0 + x] : 0.0f;
        if (B_TRANSPOSED) {
            // Row k0 + x of B^T is column k0 + x of B: read along B's rows, turn over on the way into the tile.
            int b_row = blockIdx.x * TILE + y;
            B_smem[x][y] = b_row < cols && k0 + x < depth ? B[(size_t)b_row * depth + k0 + x] : 0.0f;
        } else {
            B_smem[y][x] = k0 + y < depth && col < cols ? B[(size_t)(k0 + y) * cols + col] : 0.0f;
        }
        __syncthreads(); // the tiles are complete before anyone reads them
        for (int k = 0; k < TILE; k += 4) {
            float4 a = *(const float4 *)&A_smem[y][k]; // one address for the whole warp
            sum += a.x * B_smem[k][x];
            sum += a.y * B_smem[k + 1][x];
            sum += a.z * B_smem[k + 2][x];
            sum += a.w * B_smem[k + 3][x];
        }
        __syncthreads(); // everyone has read the tiles before they are overwritten
    }
    if (row < rows && col < cols) C[(size_t)row * cols + col] = alpha * sum;
}

// P = softmax of each row of S, L = its logsumexp: one warp a row, three passes (docs/math.md, eq. 5 and 8). The mask is
// applied here: only the first `visible` keys of a row count.
static __global__ void softmax(const float *S, // (heads, N_q, N_kv)
                               float *P,       // (heads, N_q, N_kv)
                               float *L,       // (heads, N_q)
                               problem p) {
    int lane = threadIdx.x;
    int row = blockIdx.x * SOFTMAX_ROWS + threadIdx.y;
    if (row >= p.N_q) return; // a warp as a whole, so the shuffles below find all its lanes
    size_t head = blockIdx.z;
    S += (head * p.N_q + row) * p.N_kv;
    P += (head * p.N_q + row) * p.N_kv;
    int visible = p.causal ? max(0, min(p.N_kv, row + p.N_kv - p.N_q + 1)) : p.N_kv;

    float m = -INFINITY;
    for (int col = lane; col < visible; col += WARP) m = fmaxf(m, S[col]);
    m = warp_reduce_max(m);
    float l = 0.0f;
    for (int col = lane; col < visible; col += WARP) l += expf(S[col] - m);
    l = warp_reduce_sum(l);
    for (int col = lane; col < p.N_kv; col += WARP) P[col] = col < visible ? expf(S[col] - m) / l : 0.0f;
    if (lane == 0) L[head * p.N_q + row] = visible > 0 ? m + logf(l) : -INFINITY;
}

static const char *refuses(const problem *p) {
    return ceil_div(p->N_q, TILE) > 65535 ? "more than 2097120 queries are not supported" : nullptr;
}

// S, then P.
static size_t matrix_elements(const problem *p) { return (size_t)p->batch * p->heads * p->N_q * p->N_kv; }
static size_t workspace_bytes(const problem *p) { return 2 * matrix_elements(p) * sizeof(float); }

static cudaError_t forward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    float *S = (float *)workspace, *P = S + matrix_elements(p);
    unsigned heads = p->batch * p->heads;
    dim3 block(TILE, TILE);

    dim3 score_blocks(ceil_div(p->N_kv, TILE), ceil_div(p->N_q, TILE), heads);
    matmul<true><<<score_blocks, block, 0, stream>>>(t->Q, t->K, S, p->N_q, p->N_kv, p->d, p->scale);

    dim3 softmax_blocks(ceil_div(p->N_q, SOFTMAX_ROWS), 1, heads), softmax_block(WARP, SOFTMAX_ROWS);
    softmax<<<softmax_blocks, softmax_block, 0, stream>>>(S, P, t->L, *p);

    dim3 output_blocks(ceil_div(p->d, TILE), ceil_div(p->N_q, TILE), heads);
    matmul<false><<<output_blocks, block, 0, stream>>>(P, t->V, t->O, p->N_q, p->d, p->N_kv, 1.0f);
    return cudaGetLastError();
}

extern "C" const step step_02_tiled_matmul = {
    .name = "02_tiled_matmul",
    .idea = "shared-memory tiles, a warp a softmax row",
    .forward = forward,
    .workspace_bytes = workspace_bytes,
    .refuses = refuses,
};
