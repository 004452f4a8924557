// expect: 0 1 2 3 0 1 2 3
#include "construct.h"

__global__ void k(int *out) {
    unsigned one, two;
    asm("mov.u32 %0, %laneid;" : "=r"(one));
    asm("mov.u32 %0, %%laneid;" : "=r"(two));
    out[threadIdx.x] = one;
    out[4 + threadIdx.x] = two;
}

int main() { return show<int>(8, [&](int *out) { k<<<1, 4>>>(out); }); }
