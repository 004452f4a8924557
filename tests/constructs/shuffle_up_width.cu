// expect: 0 0 1 2
#include "construct.h"

__global__ void k(int *out) {
    int other = __shfl_up_sync(~0u, (int)threadIdx.x, 1, 4);
    if (threadIdx.x < 4) out[threadIdx.x] = other;
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
