// expect: 2.5 2.5 2.5 2.5
#include "construct.h"

__global__ void k(float *out, float x, size_t n) { if (threadIdx.x < n) out[threadIdx.x] = x; }

int main() { return show<float>(4, [&](float *out) { k<<<1, 4>>>(out, 2.5, 4); }); }
