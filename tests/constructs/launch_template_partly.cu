// expect: 7 7 7 7
#include "construct.h"

template <int N, typename T> __global__ void k(T *out) { out[threadIdx.x] = N; }

int main() { return show<int>(4, [&](int *out) { k<7><<<1, 4>>>(out); }); }
