// expect: 1 1 1 1
#include "construct.h"

__global__ void k(int *out) {
#if __CUDA_ARCH__ >= 700
    out[threadIdx.x] = 1;
#endif
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
