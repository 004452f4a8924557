// expect: 9 9 9 9
#include "construct.h"

__global__ void k(int *out) { out[threadIdx.x] = 9; }

int main() { return show<int>(4, [&](int *out) { void (*which)(int *) = k; which<<<1, 4>>>(out); }); }
