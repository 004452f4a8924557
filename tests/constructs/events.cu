// expect: 1 1 1 1
#include "construct.h"

__global__ void k(int *out) { out[threadIdx.x] = 1; }

int main() { return show<int>(4, [&](int *out) { cudaEvent_t a, b; float ms = -1; cudaEventCreate(&a); cudaEventCreateWithFlags(&b, cudaEventDefault); cudaEventRecord(a); k<<<1, 4>>>(out); cudaEventRecord(b, 0); cudaEventSynchronize(b); cudaEventElapsedTime(&ms, a, b); if (ms < 0) printf("no time "); cudaEventDestroy(a); cudaEventDestroy(b); }); }
