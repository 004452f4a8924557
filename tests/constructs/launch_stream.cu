// expect: 0 1 2 3
#include "construct.h"

__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }

int main() { return show<int>(4, [&](int *out) { cudaStream_t s; cudaStreamCreate(&s); k<<<1, 4, 0, s>>>(out); cudaStreamSynchronize(s); cudaStreamDestroy(s); }); }
