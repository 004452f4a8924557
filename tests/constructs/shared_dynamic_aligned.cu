// expect: 3 2 1 0
#include "construct.h"

__global__ void k(int *out) {
    extern __shared__ __align__(16) unsigned char bytes[];
    int *tile = reinterpret_cast<int *>(bytes);
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[3 - t];
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4, 16>>>(out); }); }
