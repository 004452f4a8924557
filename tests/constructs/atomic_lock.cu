// expect: 4
#include "construct.h"

__device__ int lock;
__global__ void k(int *out) {
    for (int turn = 0; turn < 4; turn++)
        if (threadIdx.x == turn) {
            while (atomicCAS(&lock, 0, 1) != 0) {}
            out[0] = out[0] + 1;
            __threadfence();
            atomicExch(&lock, 0);
        }
}

int main() { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
