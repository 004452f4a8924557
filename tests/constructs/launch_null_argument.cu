// expect: 1 1 1 1
#include "construct.h"

__global__ void k(int *out, const float *x) { out[threadIdx.x] = x == nullptr; }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out, NULL); }); }
