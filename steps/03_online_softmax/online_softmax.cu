// 03_online_softmax: one fused kernel that never stores S or P.
//
// Idea      One thread per query row. The thread visits each key once, with a running maximum, sum and output
//           (docs/math.md, eq. 10 to 13): the softmax needs no second pass, so each score is used as soon as it is
//           computed.
// Costs     O(N) memory, none beyond the outputs; but each thread reads all of K and V.
// Limiter   Latency: a score needs d values just loaded, and the registers that hold a row of Q and of O leave few
//           warps per SM to hide the latency of these loads.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <math.h>

#include "mask.cuh"

constexpr int ROWS = 128; // query rows, and threads, per block
static_assert(ROWS % 32 == 0 && ROWS <= 1024, "a block is whole warps, at most 1024 threads");

// D_MAX >= d: a row of Q and a row of O are arrays of D_MAX registers, of which the first d are used. The loops over
// them have a constant length, so that the compiler unrolls them and keeps the arrays in registers; `c < p.d` ends the
// row.
template <int D_MAX>
static __global__ void online_softmax(const float *Q, // (heads, N_q, d)
                                      const float *K, // (heads, N_kv, d)
                                      const float *V, // (heads, N_kv, d)
                                      float *O,       // (heads, N_q, d)
                                      float *L,       // (heads, N_q)
                                      problem p) {
    int row = blockIdx.x * ROWS + threadIdx.x;
    if (row >= p.N_q) return;
    size_t head = blockIdx.y;
    Q += (head * p.N_q + row) * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;
    O += (head * p.N_q + row) * p.d;
    int keys = attended_keys(p, row);

    float Q_reg[D_MAX], O_reg[D_MAX];
#pragma unroll
    for (int c = 0; c < D_MAX; c++) {
        Q_reg[c] = c < p.d ? Q[c] : 0.0f;
        O_reg[c] = 0.0f;
    }
    float m = -INFINITY, l = 0.0f; // of the keys visited so far
    for (int key = 0; key < keys; key++) {
        float s = 0.0f;
#pragma unroll
        for (int c = 0; c < D_MAX; c++)
            if (c < p.d) s += Q_reg[c] * K[c];
        s *= p.scale;

        float m_new = fmaxf(m, s);
        float rescale = expf(m - m_new); // for what was summed under the old maximum; 0 at the first key
        float weight = expf(s - m_new);
        l = l * rescale + weight;
#pragma unroll
        for (int c = 0; c < D_MAX; c++)
            if (c < p.d) O_reg[c] = O_reg[c] * rescale + weight * V[c];
        m = m_new;
        K += p.d;
        V += p.d;
    }
#pragma unroll
    for (int c = 0; c < D_MAX; c++)
        if (c < p.d) O[c] = keys > 0 ? O_reg[c] / l : 0.0f;
    L[head * p.N_q + row] = keys > 0 ? m + logf(l) : -INFINITY;
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    dim3 blocks(ceil_div(p->N_q, ROWS), p->batch * p->heads);
    if (p->d <= 32)
        online_softmax<32><<<blocks, ROWS, 0, stream>>>(t->Q, t->K, t->V, t->O, t->L, *p);
    else if (p->d <= 64)
        online_softmax<64><<<blocks, ROWS, 0, stream>>>(t->Q, t->K, t->V, t->O, t->L, *p);
    else
        online_softmax<128><<<blocks, ROWS, 0, stream>>>(t->Q, t->K, t->V, t->O, t->L, *p);
    return cudaGetLastError();
}

extern "C" const step step_03_online_softmax = {
    .name = "03_online_softmax",
    .idea = "one fused kernel, one thread per query row",
    .forward = forward,
};
