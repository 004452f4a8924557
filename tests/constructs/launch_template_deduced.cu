// expect: 2 2 2 2
#include "construct.h"

template <typename T> __global__ void k(T *out, T x) { out[threadIdx.x] = x; }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out, 2); }); }
