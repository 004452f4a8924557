// expect: 0 2 4 6
#include "construct.h"

__global__ void k(int *out) {
    auto twice = [](int x) { return 2 * x; };
    out[threadIdx.x] = twice(threadIdx.x);
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
