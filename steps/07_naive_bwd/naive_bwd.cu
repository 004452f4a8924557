// 07_naive_bwd: the backward pass as it is written down: five products, with P and dS in global memory.
//
// Idea      S and dP, one more kernel for the softmax, then dV, dK and dQ: all products by chapter 02's tiled kernel, which
//           learns to read its first operand transposed, too (docs/math.md, eq. 37-44).
// Costs     O(N^2) memory: P and dS, N_q x N_kv each. Both are written once and read twice.
// Limiter   shared memory, as in chapter 02: every multiply-add needs two numbers from it.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <math.h>

#include "device.cuh"

constexpr int TILE = 32;        // matmul: a block computes TILE x TILE of the product, a thread one element
constexpr int SOFTMAX_ROWS = 4; // softmax_backward: rows, and warps, in a block
static_assert(TILE == WARP, "a warp is a row of a tile, so that it loads and stores neighbouring elements");

// C = alpha A B, either operand transposed in memory or not. Shapes per head: C (rows, cols); A (rows, depth), transposed
// (depth, rows); B (depth, cols), transposed (cols, depth).
template <bool A_TRANSPOSED, bool B_TRANSPOSED>
static __global__ void matmul(const float *A, const float *B, float *C, int rows, int cols, int depth, float alpha) {
    // [k][row] when A is transposed, else [row][k]; a float of padding where a column is read or written by a warp.
    __shared__ __align__(16) float A_smem[TILE][TILE];
    __shared__ float B_smem[TILE][TILE + 1]; // [k][col]
    int x = threadIdx.x, y = threadIdx.y;
    int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE; // of the block's tile of C
    size_t head = blockIdx.z;
    A += head * rows * depth;
    B += head * cols * depth;
    C += head * rows * cols;

    float sum = 0.0f;
    for (int k0 = 0; k0 < depth; k0 += TILE) {
        // Outside of the matrices the tiles hold zeros, which add nothing. Lanes read along the rows of what is in memory.
        if (A_TRANSPOSED)
            A_smem[y][x] = k0 + y < depth && row0 + x < rows ? A[(size_t)(k0 + y) * rows + row0 + x] : 0.0f;
        else
            A_smem[y][x] = row0 + y < rows && k0 + x < depth ? A[(size_t)(row0 + y) * depth + k0 + x] : 0.0f;
        if (B_TRANSPOSED)
            B_smem[x][y] = col0 + y < cols && k0 + x < depth ? B[(size_t)(col0 + y) * depth + k0 + x] : 0.0f;
        else
            B_smem[y][x] = k0 + y < depth && col0 + x < cols ? B[(size_t)(k0 + y) * cols + col0 + x] : 0.0f;
        __syncthreads(); // the tiles are complete before anyone reads them
        for (int k = 0; k < TILE; k += 4) {
            if (A_TRANSPOSED) { // four loads: the four numbers lie in four rows
                sum += A_smem[k][y] * B_smem[k][x];
                sum += A_smem[k + 1][y] * B_smem[k + 1][x];
                sum += A_smem[k + 2][y] * B_smem[k + 2][x];
                sum += A_smem[k + 3][y] * B_smem[k + 3][x];
            } else {
                float4 a = *(const float4 *)&A_smem[y][k]; // one address for the whole warp
                sum += a.x * B_smem[k][x];
                sum += a.y * B_smem[k + 1][x];
                sum += a.z * B_smem[k + 2][x];
                sum += a.w * B_smem[k + 3][x];
            }
        }
        __syncthreads(); // everyone has read the tiles before they are overwritten
    }
    int row = row0 + y, col = col0 + x;
    if (row < rows && col < cols) C[(size_t)row * cols + col] = alpha * sum;
}

// From S to P, and from dP to dS = P o (dP - D) with D = rowsum(P o dP), in place; a warp a row. A masked pair's P and dS
// are 0.
static __global__ void softmax_backward(float *S,       // (heads, N_q, N_kv): S, then P
                                        float *dP,      // (heads, N_q, N_kv): dP, then dS
                                        const float *L, // (heads, N_q)
                                        problem p) {
    int lane = threadIdx.x;
    int row = blockIdx.x * SOFTMAX_ROWS + threadIdx.y;
    if (row >= p.N_q) return; // a warp as a whole, so the shuffles below find all its lanes
    size_t head = blockIdx.z;
    S += (head * p.N_q + row) * p.N_kv;
    dP += (head * p.N_q + row) * p.N_kv;
    float L_row = L[head * p.N_q + row];
    int visible = p.causal ? max(0, min(p.N_kv, row + p.N_kv - p.N_q + 1)) : p.N_kv;

    float D = 0.0f;
    for (int col = lane; col < p.N_kv; col += WARP) {
        float P = col < visible ? expf(S[col] - L_row) : 0.0f;
        S[col] = P;
        D += P * dP[col];
    }
    D = warp_reduce_sum(D);
    for (int col = lane; col < p.N_kv; col += WARP) dP[col] = S[col] * (dP[col] - D);
}

static const char *refuses(const problem *p) {
    int longer = p->N_q > p->N_kv ? p->N_q : p->N_kv;
    return ceil_div(longer, TILE) > 65535 ? "more than 2097120 queries or keys are not supported" : nullptr;
}

// P, then dS.
static size_t matrix_elements(const problem *p) { return (size_t)p->batch * p->heads * p->N_q * p->N_kv; }
static size_t workspace_bytes(const problem *p) { return 2 * matrix_elements(p) * sizeof(float); }

static cudaError_t backward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    float *P = (float *)workspace, *dS = P + matrix_elements(p); // at first S and dP
    unsigned heads = p->batch * p->heads;
    int query_tiles = ceil_div(p->N_q, TILE), key_tiles = ceil_div(p->N_kv, TILE), d_tiles = ceil_div(p->d, TILE);
    dim3 block(TILE, TILE);

    dim3 score_blocks(key_tiles, query_tiles, heads);
    matmul<false, true><<<score_blocks, block, 0, stream>>>(t->Q, t->K, P, p->N_q, p->N_kv, p->d, p->scale);
    matmul<false, true><<<score_blocks, block, 0, stream>>>(t->dO, t->V, dS, p->N_q, p->N_kv, p->d, 1.0f);

    dim3 softmax_blocks(ceil_div(p->N_q, SOFTMAX_ROWS), 1, heads), softmax_block(WARP, SOFTMAX_ROWS);
    softmax_backward<<<softmax_blocks, softmax_block, 0, stream>>>(P, dS, t->L, *p);

    dim3 key_blocks(d_tiles, key_tiles, heads), query_blocks(d_tiles, query_tiles, heads);
    matmul<true, false><<<key_blocks, block, 0, stream>>>(P, t->dO, t->dV, p->N_kv, p->d, p->N_q, 1.0f);
    matmul<true, false><<<key_blocks, block, 0, stream>>>(dS, t->Q, t->dK, p->N_kv, p->d, p->N_q, p->scale);
    matmul<false, false><<<query_blocks, block, 0, stream>>>(dS, t->K, t->dQ, p->N_q, p->d, p->N_kv, p->scale);
    return cudaGetLastError();
}

extern "C" const step step_07_naive_bwd = {
    .name = "07_naive_bwd",
    .idea = "backward: five products, P and dS in global memory",
    .backward = backward,
    .workspace_bytes = workspace_bytes,
    .refuses = refuses,
};
