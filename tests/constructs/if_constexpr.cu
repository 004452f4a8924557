// expect: 1 1 1 1
#include "construct.h"

template <typename T> __global__ void k(T *out) {
    if constexpr (sizeof(T) == 4) out[threadIdx.x] = 1;
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
