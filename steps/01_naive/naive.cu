// 01_naive: the definition of attention as three kernels, one thread per output element.
//
// Idea      S = scale Q K^T, P = softmax(S), O = P V (docs/math.md, eq. 1-3): one kernel for each formula.
// Costs     S and P, N_q x N_kv each, live in global memory; each element of S reads a whole row of Q and of K.
// Limiter   Global memory requests: each load of K by a warp of `scores` touches 32 rows, so 32 sectors for 32 numbers.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <math.h>

#include "mask.cuh"

constexpr int BLOCK_X = 32;              // scores, output: threads along a row, one warp
constexpr int BLOCK_Y = 8;               // scores, output: rows per block
constexpr int SOFTMAX_ROWS = 128;        // softmax: rows, and threads, per block
constexpr int MAX_N_Q = 65535 * BLOCK_Y; // CUDA's limit of blocks in y
static_assert(MAX_N_Q == 524280, "the number that refuses() names");
static_assert(BLOCK_X * BLOCK_Y <= 1024 && SOFTMAX_ROWS <= 1024, "a block has at most 1024 threads");

// S = scale Q K^T, and -inf for each key that the query does not attend to. One thread per element of S.
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
    bool attends = col < attended_keys(p, row);
    S[col] = attends ? p.scale * sum : -INFINITY;
}

// P = softmax of each row of S, L = its logsumexp, in three passes over the row (eq. 5 and 8). One thread per row.
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
    if (attended_keys(p, row) == 0) { // the row attends to no key; exp(-inf - -inf) would be NaN
        for (int col = 0; col < p.N_kv; col++) P[col] = 0.0f;
        L[head * p.N_q + row] = -INFINITY;
        return;
    }
    float l = 0.0f;
    for (int col = 0; col < p.N_kv; col++) l += expf(S[col] - m);
    for (int col = 0; col < p.N_kv; col++) P[col] = expf(S[col] - m) / l;
    L[head * p.N_q + row] = m + logf(l);
}

// O = P V. One thread per element of O.
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

static const char *refuses(const problem *p) { return p->N_q > MAX_N_Q ? "takes at most 524280 queries" : nullptr; }
static size_t workspace_bytes(const problem *p) { return 2 * sizeof(float) * p->batch * p->heads * p->N_q * p->N_kv; }

static cudaError_t forward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    float *S = (float *)workspace, *P = S + workspace_bytes(p) / sizeof(float) / 2;
    unsigned heads = p->batch * p->heads, rows = ceil_div(p->N_q, BLOCK_Y);
    dim3 block(BLOCK_X, BLOCK_Y);
    scores<<<dim3(ceil_div(p->N_kv, BLOCK_X), rows, heads), block, 0, stream>>>(t->Q, t->K, S, *p);
    softmax<<<dim3(ceil_div(p->N_q, SOFTMAX_ROWS), 1, heads), SOFTMAX_ROWS, 0, stream>>>(S, P, t->L, *p);
    output<<<dim3(ceil_div(p->d, BLOCK_X), rows, heads), block, 0, stream>>>(P, t->V, t->O, *p);
    return cudaGetLastError();
}

extern "C" const step step_01_naive = {
    .name = "01_naive",
    .idea = "three kernels, one thread per output element",
    .forward = forward,
    .workspace_bytes = workspace_bytes,
    .refuses = refuses,
};
