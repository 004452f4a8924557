// expect: 6 6 6 6
#include "construct.h"

__global__ void k(int *out) {
    int sum = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) sum += i;
    out[threadIdx.x] = sum;
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
