// expect: 3 2 1 0
#include "construct.h"

__global__ void k(int *out) {
    __shared__ int tile[32];
    tile[threadIdx.x] = threadIdx.x;
    __syncwarp();
    if (threadIdx.x < 4) out[threadIdx.x] = tile[3 - threadIdx.x];
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
