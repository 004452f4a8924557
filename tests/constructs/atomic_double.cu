// expect: 1.5
#include "construct.h"

__global__ void k(double *out) { atomicAdd(out, 0.25 * threadIdx.x); }

int main() { return show<double>(1, [&](double *out) { k<<<1, 4>>>(out); }); }
