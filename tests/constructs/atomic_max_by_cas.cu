// expect: 3
#include "construct.h"

__global__ void k(float *out) {
    int *bits = (int *)out, old = atomicAdd(bits, 0), seen;
    do {
        seen = old;
        if (__int_as_float(seen) >= threadIdx.x) break;
        old = atomicCAS(bits, seen, __float_as_int((float)threadIdx.x));
    } while (old != seen);
}

int main() { return show<float>(1, [&](float *out) { k<<<1, 4>>>(out); }); }
