// expect: 8 7 6 5 4 3 2 1
#include "construct.h"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
__global__ void k(int *out, const int *in) {
    __shared__ int tile[8];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, tile, in, sizeof(int) * 8);
    cg::wait(block);
    out[threadIdx.x] = tile[7 - threadIdx.x];
}

int main() { return show<int>(8, [&](int *out) { int h[8] = {1, 2, 3, 4, 5, 6, 7, 8}, *in; cudaMalloc(&in, 32); cudaMemcpy(in, h, 32, cudaMemcpyHostToDevice); k<<<1, 8>>>(out, in); cudaFree(in); }); }
