// expect: 1 2 0 0
#include "construct.h"

__global__ void one(int *out) { out[0] = 1; }
__global__ void two(int *out) { out[1] = 2; }

int main() { return show<int>(4, [&](int *out) { void (*table[])(int *) = {one, two}; for (int i = 0; i < 2; i++) table[i]<<<1, 1>>>(out); }); }
