// expect: 1 0 1 0
#include "construct.h"

__global__ void k(int *out) {
    int any = __any_sync(~0u, threadIdx.x == 5), all = __all_sync(~0u, threadIdx.x == 5);
    if (threadIdx.x == 0) out[0] = any, out[1] = all, out[2] = 1;
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
