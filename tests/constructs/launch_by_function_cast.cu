// expect: 0 1 2 3
#include "construct.h"

template <typename T> __global__ void k(T *out) { out[threadIdx.x] = threadIdx.x; }

int main() { return show<int>(4, [&](int *out) { void *arguments[] = {&out}; cudaLaunchKernel((const void *)k<int>, dim3(1), dim3(4), arguments, 0, 0); }); }
