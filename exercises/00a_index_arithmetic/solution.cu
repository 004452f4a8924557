// 00a_index_arithmetic: O = scale Q, one thread per element.

#include "attention.h"

constexpr int BLOCK = 32; // a block has 32 x 32 threads: 32 warps, one per value of threadIdx.y

// O = scale Q. One thread per element.
static __global__ void scale_elements(const float *Q, // (heads, N_q, d)
                                      float *O,       // (heads, N_q, d)
                                      problem p) {
    int col = blockIdx.x * BLOCK + threadIdx.x;
    int row = blockIdx.y * BLOCK + threadIdx.y;
    if (row >= p.N_q || col >= p.d) return; // for sizes that 32 does not divide: this is the topic of 00b
    size_t head = blockIdx.z;
    size_t index = (head * p.N_q + row) * p.d + col;
    O[index] = p.scale * Q[index];
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    unsigned heads = p->batch * p->heads;
    dim3 grid(ceil_div(p->d, BLOCK), ceil_div(p->N_q, BLOCK), heads);
    scale_elements<<<grid, dim3(BLOCK, BLOCK), 0, stream>>>(t->Q, t->O, *p);
    return cudaGetLastError();
}

extern "C" const step step_00a_index_arithmetic = {
    .name = "00a_index_arithmetic",
    .idea = "one thread per element",
    .forward = forward,
};
