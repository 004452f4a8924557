// expect: 6 6 6 6
#include "construct.h"

__global__ void k(int *out) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = sum;
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
