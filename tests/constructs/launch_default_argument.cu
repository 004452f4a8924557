// expect: 3 3 3 3
#include "construct.h"

__global__ void k(int *out, int x = 3) { out[threadIdx.x] = x; }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
