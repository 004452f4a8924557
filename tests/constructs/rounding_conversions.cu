// expect: 2 2 3 -3
#include "construct.h"

__global__ void k(int *out) { out[0] = __float2int_rn(2.5f), out[1] = __float2int_rz(2.9f), out[2] = __float2int_ru(2.1f), out[3] = __float2int_rd(-2.1f); }

int main() { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
