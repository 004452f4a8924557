// expect: 1.5 1.5 1.5 1.5
#include "construct.h"

__global__ void k(double *out) {
    double x = __shfl_sync(~0u, threadIdx.x == 0 ? 1.5 : 0.0, 0);
    if (threadIdx.x < 4) out[threadIdx.x] = x;
}

int main() { return show<double>(4, [&](double *out) { k<<<1, 32>>>(out); }); }
