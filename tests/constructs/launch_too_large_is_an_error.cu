// expect: refused
#include "construct.h"

__global__ void k(int *out) { out[threadIdx.x] = 1; }

int main() {
    k<<<1, 2048>>>(nullptr);
    cudaError_t error = cudaGetLastError(); // InvalidValue with CUDA 13, InvalidConfiguration before it and in the manual
    printf("%s\n", error == cudaErrorInvalidConfiguration || error == cudaErrorInvalidValue ? "refused" : cudaGetErrorName(error));
    return 0;
}
