// expect: 6 6 6 6
#include "construct.h"

__device__ int sum(const int *tile) { return tile[0] + tile[1] + tile[2] + tile[3]; }
__global__ void k(int *out) {
    __shared__ int tile[4];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = sum(tile);
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
