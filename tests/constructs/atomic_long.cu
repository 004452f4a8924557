// expect: 6
#include "construct.h"

__global__ void k(unsigned long long *out) { atomicAdd(out, (unsigned long long)threadIdx.x); }

int main() { return show<unsigned long long>(1, [&](unsigned long long *out) { k<<<1, 4>>>(out); }); }
