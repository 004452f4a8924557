// expect: 6 6 6 6
#include "construct.h"

template <int N, bool B> __global__ void k(int *out) { out[threadIdx.x] = B ? N : 0; }

int main() { return show<int>(4, [&](int *out) { k<(4 > 3 ? 6 : 7), (1 < 2)><<<1, 4>>>(out); }); }
