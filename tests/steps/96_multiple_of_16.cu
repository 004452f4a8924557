// A forward step that takes only d that are multiples of 16, for the tests: one thread per query row.

#include "attention.h"

#include <math.h>

#include "mask.cuh"

constexpr int ROWS = 32; // query rows, and threads, per block

static __global__ void rows_of_sixteens(const float *Q, // (heads, N_q, d)
                                        const float *K, // (heads, N_kv, d)
                                        const float *V, // (heads, N_kv, d)
                                        float *O,       // (heads, N_q, d)
                                        float *L,       // (heads, N_q)
                                        problem p) {
    int row = blockIdx.x * ROWS + threadIdx.x;
    if (row >= p.N_q) return;
    size_t head = blockIdx.y;
    const float4 *Q4 = (const float4 *)(Q + (head * p.N_q + row) * p.d);
    const float4 *K4 = (const float4 *)(K + head * p.N_kv * p.d);
    const float4 *V4 = (const float4 *)(V + head * p.N_kv * p.d);
    float4 *O4 = (float4 *)(O + (head * p.N_q + row) * p.d);
    int keys = attended_keys(p, row), fours = p.d / 4;
    float m = -INFINITY, l = 0.0f;
    for (int key = 0; key < keys; key++) {
        float s = 0.0f;
        for (int c = 0; c < fours; c++) {
            float4 q = Q4[c], k = K4[(size_t)key * fours + c];
            s += q.x * k.x + q.y * k.y + q.z * k.z + q.w * k.w;
        }
        s *= p.scale;
        float m_new = fmaxf(m, s), rescale = expf(m - m_new), weight = expf(s - m_new);
        m = m_new;
        l = l * rescale + weight;
        for (int c = 0; c < fours; c++) {
            float4 o = key == 0 ? make_float4(0.0f, 0.0f, 0.0f, 0.0f) : O4[c], v = V4[(size_t)key * fours + c];
            O4[c] = make_float4(o.x * rescale + weight * v.x, o.y * rescale + weight * v.y,
                                o.z * rescale + weight * v.z, o.w * rescale + weight * v.w);
        }
    }
    for (int c = 0; c < fours; c++) {
        float4 o = keys > 0 ? O4[c] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        float inverse = keys > 0 ? 1.0f / l : 0.0f;
        O4[c] = make_float4(o.x * inverse, o.y * inverse, o.z * inverse, o.w * inverse);
    }
    L[head * p.N_q + row] = keys > 0 ? m + logf(l) : -INFINITY;
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    dim3 blocks(ceil_div(p->N_q, ROWS), p->batch * p->heads);
    rows_of_sixteens<<<blocks, ROWS, 0, stream>>>(t->Q, t->K, t->V, t->O, t->L, *p);
    return cudaGetLastError();
}

extern "C" const step step_96_multiple_of_16 = {
    .name = "96_multiple_of_16",
    .idea = "for the tests: multiples of 16 only",
    .forward = forward,
    .d_multiple = 16,
};
