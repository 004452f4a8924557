// 00d_warp_reduction: L[i] = sum of row i of Q, one warp per row.

#include "attention.h"

constexpr int WARP = 32;
constexpr unsigned FULL_WARP = 0xffffffffu; // the mask of all 32 lanes
constexpr int ROWS = 4;                     // rows, and warps, per block

// L = sum of each row of Q. One warp per row.
static __global__ void sum_rows(const float *Q, // (heads, N_q, d)
                                float *L,       // (heads, N_q)
                                problem p) {
    int lane = threadIdx.x;
    int row = blockIdx.x * ROWS + threadIdx.y;
    if (row >= p.N_q) return; // row depends on threadIdx.y only: all lanes of a warp return together
    size_t head = blockIdx.z;
    Q += (head * p.N_q + row) * p.d; // this row of Q
    L += head * p.N_q;               // the sums of this head
    float sum = 0.0f;
    for (int col = lane; col < p.d; col += WARP) sum += Q[col];
    for (int bit = WARP / 2; bit > 0; bit /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, bit);
    if (lane == 0) L[row] = sum;
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    unsigned heads = p->batch * p->heads;
    sum_rows<<<dim3(ceil_div(p->N_q, ROWS), 1, heads), dim3(WARP, ROWS), 0, stream>>>(t->Q, t->L, *p);
    return cudaGetLastError();
}

extern "C" const step step_00d_warp_reduction = {
    .name = "00d_warp_reduction",
    .idea = "five shuffles add 32 lanes",
    .forward = forward,
};
