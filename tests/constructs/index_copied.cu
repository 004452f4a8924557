// expect: 3 3 3 3
#include "construct.h"

__global__ void k(int *out) { uint3 t = threadIdx; dim3 d = blockDim; out[t.x] = d.x - 1; }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
