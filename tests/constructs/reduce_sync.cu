// expect: 496 31 0 31
#include "construct.h"

__global__ void k(int *out) {
    unsigned t = threadIdx.x, sum = __reduce_add_sync(~0u, t), most = __reduce_max_sync(~0u, t), least = __reduce_min_sync(~0u, t);
    if (t == 0) out[0] = sum, out[1] = most, out[2] = least, out[3] = most;
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
