// expect: 7 6 5 4 3 2 1 0
#include "construct.h"

#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init
__global__ void k(int *out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> all;
    __shared__ int tile[8];
    if (threadIdx.x == 0) init(&all, blockDim.x);
    __syncthreads();
    tile[threadIdx.x] = threadIdx.x;
    all.arrive_and_wait();
    out[threadIdx.x] = tile[7 - threadIdx.x];
}

int main() { return show<int>(8, [&](int *out) { k<<<1, 8>>>(out); }); }
