// expect: 1 1 1 1
#include "construct.h"

#include <cassert>
__global__ void k(int *out) {
    assert(threadIdx.x < 4);
    out[threadIdx.x] = 1;
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
