// expect: 1 1 1 1
#include "construct.h"

__global__ void k(int *out) {
    long long before = clock64();
    out[threadIdx.x] = clock64() >= before;
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
