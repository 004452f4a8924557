// expect: 6 0 0 0
#include "construct.h"

__global__ void k(int *out) { if (blockIdx.y == 0 && blockIdx.z == 0) out[0] = gridDim.x * gridDim.y * gridDim.z; }

int main() { return show<int>(4, [&](int *out) { dim3 g = {1, 2, 3}; k<<<g, 1>>>(out); }); }
