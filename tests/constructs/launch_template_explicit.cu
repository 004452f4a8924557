// expect: 5 5 5 5
#include "construct.h"

template <int N> __global__ void k(int *out) { out[threadIdx.x] = N; }

int main() { return show<int>(4, [&](int *out) { k<5><<<1, 4>>>(out); }); }
