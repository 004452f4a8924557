// expect: 8 8 8 8
#include "construct.h"

template <int N = 8> __global__ void k(int *out) { out[threadIdx.x] = N; }

int main() { return show<int>(4, [&](int *out) { k<><<<1, 4>>>(out); }); }
