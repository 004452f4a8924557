// expect: 3 2 1 0
#include "construct.h"

__shared__ int tile[4];
__global__ void k(int *out) {
    
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[3 - t];
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
