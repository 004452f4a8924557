// expect: 0 1 2 3
#include "construct.h"

__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
#define LAUNCH(kernel, threads, ...) \
    kernel<<<1, threads>>>(__VA_ARGS__)

int main() { return show<int>(4, [&](int *out) { LAUNCH(k, 4, out); }); }
