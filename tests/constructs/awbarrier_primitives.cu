// expect: 7 6 5 4 3 2 1 0
#include "construct.h"

#include <cuda_awbarrier_primitives.h>
__global__ void k(int *out) {
    __shared__ __mbarrier_t all;
    __shared__ int tile[8];
    if (threadIdx.x == 0) __mbarrier_init(&all, blockDim.x);
    __syncthreads();
    tile[threadIdx.x] = threadIdx.x;
    __mbarrier_token_t token = __mbarrier_arrive(&all);
    while (!__mbarrier_test_wait(&all, token)) {}
    out[threadIdx.x] = tile[7 - threadIdx.x];
}

int main() { return show<int>(8, [&](int *out) { k<<<1, 8>>>(out); }); }
