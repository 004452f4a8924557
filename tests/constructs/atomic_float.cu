// expect: 1.5
#include "construct.h"

__global__ void k(float *out) { atomicAdd(out, 0.25f * threadIdx.x); }

int main() { return show<float>(1, [&](float *out) { k<<<1, 4>>>(out); }); }
