// expect: 3 3 3 3
#include "construct.h"

__device__ int *where;
__global__ void set(int *p) { where = p; }
__global__ void k() { where[threadIdx.x] = 3; }

int main() { return show<int>(4, [&](int *out) { set<<<1, 1>>>(out); k<<<1, 4>>>(); }); }
