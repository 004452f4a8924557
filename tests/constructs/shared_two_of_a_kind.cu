// expect: 3 2 1 0
#include "construct.h"

__global__ void k(int *out) {
    __shared__ int other[2], tile[4];
    if (threadIdx.x < 2) other[threadIdx.x] = 0;
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[3 - t];
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
