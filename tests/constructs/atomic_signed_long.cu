// expect: -3 5e+09
#include "construct.h"

__global__ void k(long long *out) {
    atomicMin(out, (long long)threadIdx.x - 3);
    atomicMax(out + 1, threadIdx.x == 1 ? 5000000000 : -1);
}

int main() { return show<long long>(2, [&](long long *out) { k<<<1, 4>>>(out); }); }
