// expect: 1
#include "construct.h"

#include <cooperative_groups.h>
__global__ void k(int *out) { cooperative_groups::this_grid().sync(), out[0] = 2; }
__global__ void one(int *out) { out[0] = 1; }

int main() { return show<int>(1, [&](int *out) { void *arguments[] = {&out}; if (cudaLaunchCooperativeKernel((void *)k, dim3(1 << 20), dim3(256), arguments, 0, 0) == cudaErrorCooperativeLaunchTooLarge) { cudaGetLastError(); one<<<1, 1>>>(out); } }); }
