// expect: 5 0 5 0
#include "construct.h"

__global__ void k(int *out, const int *absent, int *also, long by) { out[threadIdx.x] = absent == also ? by * (1 - threadIdx.x % 2) : -1; }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out, 0, 0, 5); }); }
