// expect: 5 5 5 5
#include "construct.h"

__global__ void k(int *out) { __stcg(&out[threadIdx.x], 5); }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
