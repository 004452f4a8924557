// 00c_transpose: O = Q^T in each head, through a tile in shared memory.

#include "attention.h"

constexpr int TILE = 32; // a block transposes TILE x TILE elements, one thread per element

// O = Q^T. One block per tile of Q, one thread per element of the tile.
static __global__ void transpose(const float *Q, // (heads, N_q, d)
                                 float *O,       // (heads, d, N_q)
                                 problem p) {
    int x = threadIdx.x, y = threadIdx.y;
    int first_row = blockIdx.y * TILE, first_col = blockIdx.x * TILE; // where the tile begins in Q
    Q += (size_t)blockIdx.z * p.N_q * p.d;
    O += (size_t)blockIdx.z * p.N_q * p.d;
    __shared__ float tile[TILE][TILE + 1]; // [row of Q][column of Q], rows padded for the column reads below
    int row = first_row + y, col = first_col + x;
    if (row < p.N_q && col < p.d) tile[y][x] = Q[(size_t)row * p.d + col];
    __syncthreads(); // every thread's element of the tile is stored
    int O_row = first_col + y, O_col = first_row + x;
    if (O_row < p.d && O_col < p.N_q) O[(size_t)O_row * p.N_q + O_col] = tile[x][y];
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    unsigned heads = p->batch * p->heads;
    dim3 grid(ceil_div(p->d, TILE), ceil_div(p->N_q, TILE), heads);
    transpose<<<grid, dim3(TILE, TILE), 0, stream>>>(t->Q, t->O, *p);
    return cudaGetLastError();
}

extern "C" const step step_00c_transpose = {
    .name = "00c_transpose",
    .idea = "a padded tile in shared memory",
    .forward = forward,
};
