// expect: 3 2 1 0
#include "construct.h"

__global__ void k(int *out) {
    __shared__ struct { int a[4]; } tile;
    tile.a[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile.a[3 - threadIdx.x];
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
