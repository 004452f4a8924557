// expect: cudaErrorInvalidConfiguration
#include "construct.h"

__global__ void k(int *out) { out[threadIdx.x] = 1; }

int main() {
    k<<<1, 2048>>>(nullptr);
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    return 0;
}
