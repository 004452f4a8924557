// expect: 0 2 4 6
#include "construct.h"

#include "twice.cuh"
__global__ void k(int *out) {
    remember(threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = twice(recall(threadIdx.x));
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
