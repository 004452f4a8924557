// 01_naive: the definition of attention as three kernels, one thread for each element that they write.
//
// Idea      S = scale Q K^T, P = softmax(S), O = P V (docs/math.md, eq. 1-3), each a kernel of its own.
// Costs     S and P, N_q x N_kv each, live in global memory; every element of S reads a whole row of Q and of K.
// Limiter   global memory requests: each load of K by a warp of `scores` touches 32 rows, so 32 sectors for 32 numbers.
// Measured  the limiter as predicted; README.md beside this file has the numbers.

#include "attention.h"

#include <math.h>

constexpr int BLOCK_X = 32;       // scores, output: threads along a row, one warp
constexpr int BLOCK_Y = 8;        // scores, output: rows in a block
constexpr int SOFTMAX_ROWS = 128; // softmax: rows, and threads, in a block

// S = scale Q K^T, -inf where the mask hides a key.
static __global__ void scores(const float *Q, // (heads, N_q, d)
                              const float *K, // (heads, N_kv, d)
                              float *S,       // (heads, N_q, N_kv)
                              problem p) {
    int col = blockIdx.x * BLOCK_X + threadIdx.x; // key
    int row = blockIdx.y * BLOCK_Y + threadIdx.y; // query
    if (row >= p.N_q || col >= p.N_kv) return;
    size_t head = blockIdx.z;
    Q += (head * p.N_q + row) * p.d;
    K += (head * p.N_kv + col) * p.d;
    S += (head * p.N_q + row) * p.N_kv;

    float sum = 0.0f;
    for (int c = 0; c < p.d; c++) sum += Q[c] * K[c];
    bool visible = !p.causal || col <= row + p.N_kv - p.N_q;
    S[col] = visible ? p.scale * sum : -INFINITY;
}

// P = softmax of each row of S, L = its logsumexp: one thread a row, three passes (eq. 5 and 8).
static __global__ void softmax(const float *S, // (heads, N_q, N_kv)
                               float *P,       // (heads, N_q, N_kv)
                               float *L,       // (heads, N_q)
                               problem p) {
    int row = blockIdx.x * SOFTMAX_ROWS + threadIdx.x;
    if (row >= p.N_q) return;
    size_t head = blockIdx.z;
    S += (head * p.N_q + row) * p.N_kv;
    P += (head * p.N_q + row) * p.N_kv;

    float m = -INFINITY;
    for (int col = 0; col < p.N_kv; col++) m = fmaxf(m, S[col]);
    if (m == -INFINITY) { // the mask hides every key; exp(-inf - -inf) would be NaN
        for (int col = 0; col < p.N_kv; col++) P[col] = 0.0f;
        L[head * p.N_q + row] = -INFINITY;
        return;
    }
    float l = 0.0f;
    for (int col = 0; col < p.N_kv; col++) l += expf(S[col] - m);
    for (int col = 0; col < p.N_kv; col++) P[col] = expf(S[col] - m) / l;
    L[head * p.N_q + row] = m + logf(l);
}

// O = P V.
static __global__ void output(const float *P, // (heads, N_q, N_kv)
                              const float *V, // (heads, N_kv, d)
                              float *O,       // (heads, N_q, d)
                              problem p) {
    int col = blockIdx.x * BLOCK_X + threadIdx.x; // column of V and O
    int row = blockIdx.y * BLOCK_Y + threadIdx.y; // query
    if (row >= p.N_q || col >= p.d) return;
    size_t head = blockIdx.z;
    P += (head * p.N_q + row) * p.N_kv;
    V += head * p.N_kv * p.d + col;

    float sum = 0.0f;
    for (int key = 0; key < p.N_kv; key++) sum += P[key] * V[(size_t)key * p.d];
    O[(head * p.N_q + row) * p.d + col] = sum;
}

static const char *refuses(const problem *p) {
    return ceil_div(p->N_q, BLOCK_Y) > 65535 ? "more than 524280 queries are not supported" : nullptr;
}

// S, then P.
static size_t matrix_elements(const problem *p) { return (size_t)p->batch * p->heads * p->N_q * p->N_kv; }
static size_t workspace_bytes(const problem *p) { return 2 * matrix_elements(p) * sizeof(float); }

static cudaError_t forward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    float *S = (float *)workspace, *P = S + matrix_elements(p);
    unsigned heads = p->batch * p->heads;
    dim3 block(BLOCK_X, BLOCK_Y);

    dim3 score_blocks(ceil_div(p->N_kv, BLOCK_X), ceil_div(p->N_q, BLOCK_Y), heads);
    scores<<<score_blocks, block, 0, stream>>>(t->Q, t->K, S, *p);

    dim3 softmax_blocks(ceil_div(p->N_q, SOFTMAX_ROWS), 1, heads);
    softmax<<<softmax_blocks, SOFTMAX_ROWS, 0, stream>>>(S, P, t->L, *p);

    dim3 output_blocks(ceil_div(p->d, BLOCK_X), ceil_div(p->N_q, BLOCK_Y), heads);
    output<<<output_blocks, block, 0, stream>>>(P, t->V, t->O, *p);
    return cudaGetLastError();
}

extern "C" const step step_01_naive = {
    .name = "01_naive",
    .idea = "three kernels, a thread an element",
    .forward = forward,
    .workspace_bytes = workspace_bytes,
    .refuses = refuses,
};
