// expect: 3 4 5 6
#include "construct.h"

struct pair { int a, b; };
__global__ void k(int *out, pair p) { out[threadIdx.x] = p.a + p.b + threadIdx.x; }

int main() { return show<int>(4, [&](int *out) { pair p = {1, 2}; k<<<1, 4>>>(out, p); }); }
