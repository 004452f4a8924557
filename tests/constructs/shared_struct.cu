// expect: 3 2 1 0
#include "construct.h"

struct cell { int a, b; };
__global__ void k(int *out) {
    __shared__ cell tile[4];
    tile[threadIdx.x].b = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[3 - threadIdx.x].b;
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
