// expect: 3 2 1 0
#include "construct.h"

template <int N> __global__ void k(int *out) {
    __shared__ int tile[N];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[N - 1 - threadIdx.x];
}

int main() { return show<int>(4, [&](int *out) { k<4><<<1, 4>>>(out); }); }
