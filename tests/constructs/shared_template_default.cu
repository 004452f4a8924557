// expect: 4 6 8 10
#include "construct.h"

extern __shared__ int tile[];
template <int FIRST, int FACTOR = 2> __global__ void k(int *out) {
    tile[threadIdx.x] = FACTOR * (FIRST + threadIdx.x);
    out[threadIdx.x] = tile[threadIdx.x];
}

int main() {
    return show<int>(4, [&](int *out) { k<2><<<1, 4, 16>>>(out); });
}
