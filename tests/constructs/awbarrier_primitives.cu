// expect: 17 16 15 14 13 12 11 10
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
    tile[7 - threadIdx.x] += 10;
    __mbarrier_arrive(&all);
    while (!__mbarrier_test_wait_parity(&all, true)) {} // phase 1
    out[threadIdx.x] = __mbarrier_test_wait_parity(&all, false) ? -1 : tile[7 - threadIdx.x]; // phase 2 is not over
}

int main() { return show<int>(8, [&](int *out) { k<<<1, 8>>>(out); }); }
