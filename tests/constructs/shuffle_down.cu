// expect: 6 6 5 3
#include "construct.h"

__global__ void k(int *out) {
    int sum = threadIdx.x < 4 ? threadIdx.x : 0;
    for (int d = 2; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
    if (threadIdx.x < 4) out[threadIdx.x] = sum;
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
