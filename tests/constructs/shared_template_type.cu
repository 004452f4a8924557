// expect: 3 2 1 0
#include "construct.h"

template <typename T> __global__ void k(T *out) {
    __shared__ T tile[4];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[3 - threadIdx.x];
}

int main() { return show<float>(4, [&](float *out) { k<<<1, 4>>>(out); }); }
