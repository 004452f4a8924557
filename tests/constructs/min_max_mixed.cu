// expect: 2 3 1.5 2.5
#include "construct.h"

__global__ void k(float *out) { out[0] = min(2, 3), out[1] = max(2u, 3u), out[2] = min(1.5f, 2.5f), out[3] = fmaxf(1.5f, 2.5f); }

int main() { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
