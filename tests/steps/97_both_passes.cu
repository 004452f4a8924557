// A step with both passes, for the tests: one thread per query row, and per key row.

#include "attention.h"

#include <math.h>

#include "mask.cuh"

constexpr int ROWS = 32; // rows, and threads, per block

static __device__ float dot(const float *a, const float *b, int d) {
    float sum = 0.0f;
    for (int c = 0; c < d; c++) sum += a[c] * b[c];
    return sum;
}

static __global__ void forward_rows(tensors t, problem p) {
    int row = blockIdx.x * ROWS + threadIdx.x;
    if (row >= p.N_q) return;
    size_t head = blockIdx.y, at = head * p.N_q + row;
    int keys = attended_keys(p, row);
    float *O = t.O + at * p.d, m = -INFINITY, l = 0.0f;
    for (int c = 0; c < p.d; c++) O[c] = 0.0f;
    for (int j = 0; j < keys; j++) {
        size_t k = (head * p.N_kv + j) * p.d;
        float s = p.scale * dot(t.Q + at * p.d, t.K + k, p.d), m_new = fmaxf(m, s), rescale = expf(m - m_new);
        float weight = expf(s - m_new);
        m = m_new;
        l = l * rescale + weight;
        for (int c = 0; c < p.d; c++) O[c] = O[c] * rescale + weight * t.V[k + c];
    }
    for (int c = 0; c < p.d && keys > 0; c++) O[c] /= l;
    t.L[at] = keys > 0 ? m + logf(l) : -INFINITY;
}

// dS of a pair that the mask lets through: P (dP - D).
static __device__ float dS_of(const tensors &t, const problem &p, size_t q, size_t k, float *P) {
    *P = expf(p.scale * dot(t.Q + q * p.d, t.K + k * p.d, p.d) - t.L[q]);
    float dP = dot(t.dO + q * p.d, t.V + k * p.d, p.d), D = dot(t.dO + q * p.d, t.O + q * p.d, p.d);
    return *P * (dP - D);
}

static __global__ void backward_queries(tensors t, problem p) {
    int row = blockIdx.x * ROWS + threadIdx.x;
    if (row >= p.N_q) return;
    size_t head = blockIdx.y, q = head * p.N_q + row;
    for (int c = 0; c < p.d; c++) t.dQ[q * p.d + c] = 0.0f;
    for (int j = 0; j < attended_keys(p, row); j++) {
        float P, dS = dS_of(t, p, q, head * p.N_kv + j, &P);
        for (int c = 0; c < p.d; c++) t.dQ[q * p.d + c] += p.scale * dS * t.K[(head * p.N_kv + j) * p.d + c];
    }
}

static __global__ void backward_keys(tensors t, problem p) {
    int key = blockIdx.x * ROWS + threadIdx.x;
    if (key >= p.N_kv) return;
    size_t head = blockIdx.y, k = head * p.N_kv + key;
    for (int c = 0; c < p.d; c++) t.dK[k * p.d + c] = t.dV[k * p.d + c] = 0.0f;
    for (int i = first_attending_query(p, key); i < p.N_q; i++) {
        size_t q = head * p.N_q + i;
        float P, dS = dS_of(t, p, q, k, &P);
        for (int c = 0; c < p.d; c++) {
            t.dV[k * p.d + c] += P * t.dO[q * p.d + c];
            t.dK[k * p.d + c] += p.scale * dS * t.Q[q * p.d + c];
        }
    }
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    dim3 blocks(ceil_div(p->N_q, ROWS), p->batch * p->heads);
    forward_rows<<<blocks, ROWS, 0, stream>>>(*t, *p);
    return cudaGetLastError();
}

static cudaError_t backward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    dim3 query_blocks(ceil_div(p->N_q, ROWS), p->batch * p->heads), key_blocks(ceil_div(p->N_kv, ROWS), p->batch * p->heads);
    backward_queries<<<query_blocks, ROWS, 0, stream>>>(*t, *p);
    backward_keys<<<key_blocks, ROWS, 0, stream>>>(*t, *p);
    return cudaGetLastError();
}

extern "C" const step step_97_both_passes = {
    .name = "97_both_passes",
    .idea = "for the tests: forward and backward",
    .forward = forward,
    .backward = backward,
};
