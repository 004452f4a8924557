// expect: 0 1 0 0 1 0 1
#include "construct.h"

extern __shared__ int dynamic[];
__global__ void k(int *out) {
    __shared__ int fixed[10000];
    fixed[threadIdx.x] = 1;
    dynamic[threadIdx.x] = 2;
    if (out != nullptr) out[threadIdx.x] = fixed[threadIdx.x] + dynamic[threadIdx.x];
}

static int fails(size_t shared) {
    int *out = nullptr;
    void *arguments[] = {&out};
    cudaError_t error = cudaLaunchKernel(k, dim3(1), dim3(32), arguments, shared, 0);
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    cudaGetLastError();
    return error != cudaSuccess;
}

/* Without the attribute both kinds share 48 KiB. With it the dynamic part has what the attribute says, for itself. */
int main() {
    printf("%d ", fails(9000));
    printf("%d ", cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 300000) != cudaSuccess);
    must(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 20000), "cudaFuncSetAttribute");
    printf("%d %d %d ", fails(9000), fails(20000), fails(20004));
    must(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 4000), "cudaFuncSetAttribute");
    printf("%d %d\n", fails(4000), fails(8000));
    return 0;
}
