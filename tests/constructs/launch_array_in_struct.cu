// expect: 1 2 3 4
#include "construct.h"

struct four { int x[4]; };
__global__ void k(int *out, four f) { out[threadIdx.x] = f.x[threadIdx.x]; }

int main() { return show<int>(4, [&](int *out) { four f = {{1, 2, 3, 4}}; k<<<1, 4>>>(out, f); }); }
