// expect: 1 1 1 1
#include "construct.h"

#include <math_constants.h>
__global__ void k(int *out) { out[threadIdx.x] = CUDART_INF_F > 3e38f; }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
