// 07_naive_bwd: the backward pass as it is written down: five products, with P and dS in global memory.
//
// Idea      One kernel computes a product of two matrices, either of them transposed: chapter 02's tiled kernel. It runs
//           five times: S = Q K^T and dP = dO V^T, then, after a kernel for the softmax, dV = P^T dO, dK = dS^T Q and
//           dQ = dS K (docs/math.md, eq. 37-44).
// Costs     O(N^2) memory: P and dS, N_q x N_kv each. Both are written once and read twice.
// Limiter   Shared memory, as in chapter 02: each FMA needs two numbers from it.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <math.h>

#include "device.cuh"
#include "mask.cuh"

constexpr int TILE = 32;        // matmul: TILE x TILE elements of the product per block, one element per thread
constexpr int SOFTMAX_ROWS = 4; // softmax_backward: query rows, and warps, per block
static_assert(TILE == WARP, "one warp per row of a tile, so that its loads and stores are coalesced");
static_assert(TILE % 4 == 0, "four elements of a row of A per load");

// C = alpha A B, either operand transposed in memory or not.
template <bool A_TRANSPOSED, bool B_TRANSPOSED>
static __global__ void matmul(const float *A, // (heads, rows, depth); (heads, depth, rows) where transposed
                              const float *B, // (heads, depth, cols); (heads, cols, depth) where transposed
                              float *C,       // (heads, rows, cols)
                              int rows, int cols, int depth, float alpha) {
    __shared__ __align__(16) float A_smem[TILE][TILE]; // [k][row] where A is transposed, else [row][k]
    __shared__ float B_smem[TILE][TILE + 1];           // [k][col]; padded, since a transposed B is stored by columns
    int x = threadIdx.x, y = threadIdx.y;
    int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE; // of the block's tile of C
    size_t head = blockIdx.z;
    A += head * rows * depth;
    B += head * cols * depth;
    C += head * rows * cols;

    float sum = 0.0f;
    for (int k0 = 0; k0 < depth; k0 += TILE) {
        // Elements outside of the matrices become zeros, which add nothing. A warp loads along a row of the matrix in
        // memory, so that its loads are coalesced.
        if (A_TRANSPOSED)
            A_smem[y][x] = k0 + y < depth && row0 + x < rows ? A[(size_t)(k0 + y) * rows + row0 + x] : 0.0f;
        else
            A_smem[y][x] = row0 + y < rows && k0 + x < depth ? A[(size_t)(row0 + y) * depth + k0 + x] : 0.0f;
        if (B_TRANSPOSED)
            B_smem[x][y] = col0 + y < cols && k0 + x < depth ? B[(size_t)(col0 + y) * depth + k0 + x] : 0.0f;
        else
            B_smem[y][x] = k0 + y < depth && col0 + x < cols ? B[(size_t)(k0 + y) * cols + col0 + x] : 0.0f;
        __syncthreads(); // the tiles are complete before any thread reads them
        for (int k = 0; k < TILE; k += 4) {
            if (A_TRANSPOSED) { // four loads: the four elements lie in four rows
                sum += A_smem[k][y] * B_smem[k][x];
                sum += A_smem[k + 1][y] * B_smem[k + 1][x];
                sum += A_smem[k + 2][y] * B_smem[k + 2][x];
                sum += A_smem[k + 3][y] * B_smem[k + 3][x];
            } else {
                float4 a = *(const float4 *)&A_smem[y][k]; // one load, from one address for the whole warp
                sum += a.x * B_smem[k][x];
                sum += a.y * B_smem[k + 1][x];
                sum += a.z * B_smem[k + 2][x];
                sum += a.w * B_smem[k + 3][x];
            }
        }
        __syncthreads(); // no thread still reads the tiles, so the next ones may overwrite them
    }
    int row = row0 + y, col = col0 + x;
    if (row < rows && col < cols) C[(size_t)row * cols + col] = alpha * sum;
}

// In place: from S to P = exp(S - L), and from dP to dS = P o (dP - D). One warp per query row. A masked pair's P and dS
// are 0. D is the mean of the row's dP, weighted with P. L is rounded, so the weights add up to 1 + e, not to 1: the sum of
// P dP must be divided by the sum of P, or else e D would be left in every element, where dP - D may be far smaller than D.
static __global__ void softmax_backward(float *S,       // (heads, N_q, N_kv): S, then P
                                        float *dP,      // (heads, N_q, N_kv): dP, then dS
                                        const float *L, // (heads, N_q)
                                        problem p) {
    int lane = threadIdx.x;
    int row = blockIdx.x * SOFTMAX_ROWS + threadIdx.y;
    if (row >= p.N_q) return; // the whole warp returns, so the shuffles below find all 32 lanes
    size_t head = blockIdx.z;
    S += (head * p.N_q + row) * p.N_kv;
    dP += (head * p.N_q + row) * p.N_kv;
    float L_row = L[head * p.N_q + row];
    int attended = attended_keys(p, row);

    float weights = 0.0f, weighted = 0.0f; // sums of P and of P dP
    for (int col = lane; col < p.N_kv; col += WARP) {
        float P = col < attended ? expf(S[col] - L_row) : 0.0f;
        S[col] = P;
        weights += P;
        weighted += P * dP[col];
    }
    weights = warp_reduce_sum(weights);
    weighted = warp_reduce_sum(weighted);
    float D = attended > 0 ? weighted / weights : 0.0f;
    for (int col = lane; col < p.N_kv; col += WARP) dP[col] = S[col] * (dP[col] - D);
}

// ---- on the host

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
    dim3 block(TILE, TILE), score_blocks(key_tiles, query_tiles, heads);
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
