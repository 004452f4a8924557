// expect: 5 10 5 10
#include "construct.h"

__global__ void k(int *out) {
    unsigned same = __match_any_sync(~0u, threadIdx.x % 2);
    if (threadIdx.x < 4) out[threadIdx.x] = same & 15;
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
