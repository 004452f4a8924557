// expect: 1 1 1 1
#include "construct.h"

__global__ void k(int *out) { out[threadIdx.x] = __float_as_int(__int_as_float(1)); }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
