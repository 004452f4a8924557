// 03_online_softmax: one kernel, which never stores S or P.
//
// Idea      a thread owns a query row and walks over the keys once, with a running maximum, sum and output (docs/math.md,
//           eq. 10 to 13): the softmax needs no second pass, so a score is used up as soon as it is known.
// Costs     O(N) memory, none beyond the outputs; but every thread reads all of K and V.
// Limiter   latency: a score is one thread's chain of d multiply-adds on values just loaded, and the registers that hold
//           the rows of Q and O leave few warps on a multiprocessor to fill the waiting.
// Measured  the limiter as predicted; README.md beside this file has the numbers.

#include "attention.h"

#include <math.h>

constexpr int ROWS = 128; // query rows, and threads, in a block

// D_MAX >= d: the rows of Q and O are arrays of D_MAX registers, of which the first d are used. Loops over them have a
// constant length, so that they can be unrolled and the arrays kept in registers; `c < p.d` stops them at the row's end.
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
    int visible = p.causal ? max(0, min(p.N_kv, row + p.N_kv - p.N_q + 1)) : p.N_kv;

    float Q_reg[D_MAX], O_reg[D_MAX];
#pragma unroll
    for (int c = 0; c < D_MAX; c++) {
        Q_reg[c] = c < p.d ? Q[c] : 0.0f;
        O_reg[c] = 0.0f;
    }
    float m = -INFINITY, l = 0.0f; // of the keys seen so far
    for (int key = 0; key < visible; key++) {
        float s = 0.0f;
#pragma unroll
        for (int c = 0; c < D_MAX; c++)
            if (c < p.d) s += Q_reg[c] * K[c];
        s *= p.scale;

        float m_new = fmaxf(m, s);
        float rescale = expf(m - m_new); // what was summed under the old maximum; 0 at the first key
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
        if (c < p.d) O[c] = visible > 0 ? O_reg[c] / l : 0.0f;
    L[head * p.N_q + row] = visible > 0 ? m + logf(l) : -INFINITY;
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
    .idea = "one fused kernel, a thread a query row",
    .forward = forward,
};
