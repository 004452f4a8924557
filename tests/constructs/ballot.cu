// expect: 21845 21845 21845 21845
#include "construct.h"

__global__ void k(int *out) {
    unsigned odd = __ballot_sync(~0u, threadIdx.x % 2 == 0);
    if (threadIdx.x < 4) out[threadIdx.x] = odd & 0xffff;
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
