// expect: 1 1 1 1
#include "construct.h"

__global__ void k(int *out) { out[threadIdx.x] = 1; }

int main() { return show<int>(4, [&](int *out) { if (out != nullptr) k<<<1, 4>>>(out); else k<<<1, 2>>>(out); }); }
