// A forward step for the tests whose few blocks draw their tiles from a counter: no block has work of its own.

#include "attention.h"

#include <math.h>

#include "mask.cuh"

constexpr int ROWS = 32;   // query rows of a tile, and threads per block
constexpr int BLOCKS = 12; // at most

static __global__ void rows_of_a_tile(tensors t, unsigned *next, problem p) {
    __shared__ unsigned tile_smem;
    unsigned row_tiles = (p.N_q + ROWS - 1) / ROWS, tiles = row_tiles * p.batch * p.heads;
    for (;;) {
        if (threadIdx.x == 0) tile_smem = atomicAdd(next, 1u);
        __syncthreads(); // thread 0 has drawn the block's tile
        unsigned tile = tile_smem;
        __syncthreads(); // all threads know it, so the next may overwrite it
        if (tile >= tiles) return;
        int row = tile % row_tiles * ROWS + threadIdx.x;
        if (row >= p.N_q) continue;
        size_t head = tile / row_tiles, at = head * p.N_q + row;
        int keys = attended_keys(p, row);
        float *O = t.O + at * p.d, m = -INFINITY, l = 0.0f;
        for (int c = 0; c < p.d; c++) O[c] = 0.0f;
        for (int j = 0; j < keys; j++) {
            size_t k = (head * p.N_kv + j) * p.d;
            float s = 0.0f;
            for (int c = 0; c < p.d; c++) s += t.Q[at * p.d + c] * t.K[k + c];
            s *= p.scale;
            float m_new = fmaxf(m, s), rescale = expf(m - m_new), weight = expf(s - m_new);
            m = m_new;
            l = l * rescale + weight;
            for (int c = 0; c < p.d; c++) O[c] = O[c] * rescale + weight * t.V[k + c];
        }
        for (int c = 0; c < p.d && keys > 0; c++) O[c] /= l;
        t.L[at] = keys > 0 ? m + logf(l) : -INFINITY;
    }
}

static cudaError_t forward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    cudaError_t error = cudaMemsetAsync(workspace, 0, sizeof(unsigned), stream);
    if (error != cudaSuccess) return error;
    long long tiles = (long long)ceil_div(p->N_q, ROWS) * p->batch * p->heads;
    rows_of_a_tile<<<tiles < BLOCKS ? tiles : BLOCKS, ROWS, 0, stream>>>(*t, (unsigned *)workspace, *p);
    return cudaGetLastError();
}

extern "C" const step step_95_tiles_from_a_counter = {
    .name = "95_tiles_from_a_counter",
    .idea = "for the tests: tiles drawn from a counter",
    .forward = forward,
    .workspace_bytes = [](const problem *) -> size_t { return sizeof(unsigned); },
};
