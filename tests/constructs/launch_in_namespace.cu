// expect: 4 4 4 4
#include "construct.h"

namespace a { namespace b {
__global__ void k(int *out) { out[threadIdx.x] = 4; }
} }

int main() { return show<int>(4, [&](int *out) { a::b::k<<<1, 4>>>(out); }); }
