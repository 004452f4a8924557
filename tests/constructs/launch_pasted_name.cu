// expect: 0 1 2 3
#include "construct.h"

__global__ void my_kernel(int *out) { out[threadIdx.x] = threadIdx.x; }
#define LAUNCH(name) name##_kernel<<<1, 4>>>(out)

int main() { return show<int>(4, [&](int *out) { LAUNCH(my); }); }
