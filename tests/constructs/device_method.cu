// expect: 2 3 4 5
#include "construct.h"

struct adder {
    int by;
    __device__ int operator()(int x) const { return x + by; }
};
__global__ void k(int *out, adder a) { out[threadIdx.x] = a(threadIdx.x); }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out, adder{2}); }); }
