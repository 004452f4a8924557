// expect: 1000 1000 1000 1000
#include "construct.h"

__global__ void k(int *out) { out[threadIdx.x] = 1'000; }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
