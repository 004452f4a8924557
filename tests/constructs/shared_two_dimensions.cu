// expect: 2 0 3 1
#include "construct.h"

__global__ void k(int *out) {
    __shared__ int tile[2][2 + 1];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = 2 * y + x;
    __syncthreads();
    out[2 * y + x] = tile[1 - x][y];
}

int main() { return show<int>(4, [&](int *out) { k<<<1, dim3(2, 2)>>>(out); }); }
