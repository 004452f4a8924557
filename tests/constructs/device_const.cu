// expect: 0.5 0.5 0.5 0.5
#include "construct.h"

__device__ const float HALF = 0.5f;
__global__ void k(float *out) { out[threadIdx.x] = HALF; }

int main() { return show<float>(4, [&](float *out) { k<<<1, 4>>>(out); }); }
