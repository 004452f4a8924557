// expect: 8 7 6 5 4 3 2 1
#include "construct.h"

#include <cooperative_groups.h>
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init
__global__ void k(int *out, const int *in) {
    __shared__ cuda::barrier<cuda::thread_scope_block> all;
    __shared__ alignas(16) int tile[8];
    auto block = cooperative_groups::this_thread_block();
    if (block.thread_rank() == 0) init(&all, block.size());
    block.sync();
    cuda::memcpy_async(block, tile, in, sizeof(int) * 8, all);
    all.arrive_and_wait();
    out[threadIdx.x] = tile[7 - threadIdx.x];
}

int main() { return show<int>(8, [&](int *out) { int h[8] = {1, 2, 3, 4, 5, 6, 7, 8}, *in; cudaMalloc(&in, 32); cudaMemcpy(in, h, 32, cudaMemcpyHostToDevice); k<<<1, 8>>>(out, in); cudaFree(in); }); }
