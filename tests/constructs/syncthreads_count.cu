// expect: 2 1 0 2
#include "construct.h"

__global__ void k(int *out) {
    int t = threadIdx.x, n = __syncthreads_count(t < 2), any = __syncthreads_or(t == 3), all = __syncthreads_and(t == 3);
    if (t == 0) out[0] = n, out[1] = any != 0, out[2] = all != 0, out[3] = n;
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
