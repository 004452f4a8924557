// expect: 0 0.5 1 0
#include "construct.h"

__global__ void k(float *out) { out[0] = __saturatef(-1.0f), out[1] = __saturatef(0.5f), out[2] = __saturatef(2.0f), out[3] = __saturatef(NAN); }

int main() { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
