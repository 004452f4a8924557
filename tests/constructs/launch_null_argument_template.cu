// expect: 1 1 1 1
#include "construct.h"

template <typename T> __global__ void k(T *out, const float *x) { out[threadIdx.x] = x == nullptr; }

int main() { return show<int>(4, [&](int *out) { k<int><<<1, 4>>>(out, NULL); }); }
