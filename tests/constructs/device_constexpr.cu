// expect: 12 12 12 12
#include "construct.h"

__device__ constexpr int TWELVE = 12;
__global__ void k(int *out) { out[threadIdx.x] = TWELVE; }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
