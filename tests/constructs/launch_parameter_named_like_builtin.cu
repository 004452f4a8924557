// expect: 0 1 2 3
#include "construct.h"

__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
static void run(int *out, int blockDim) { k<<<1, blockDim>>>(out); }

int main() { return show<int>(4, [&](int *out) { run(out, 4); }); }
