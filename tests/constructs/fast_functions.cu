// expect: 1 0 1 2
#include "construct.h"

__global__ void k(float *out) { out[0] = __expf(0.0f), out[1] = __logf(1.0f), out[2] = __cosf(0.0f), out[3] = __fdividef(4.0f, 2.0f); }

int main() { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
