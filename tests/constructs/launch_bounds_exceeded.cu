// expect: cudaErrorInvalidValue cudaErrorInvalidValue 7 3
#include "construct.h"

template <int THREADS> __global__ void __launch_bounds__(THREADS / 2, 1) bounded(int *out) { if (threadIdx.x == 0) out[blockIdx.x == 0] = 3; }
__global__ void __launch_bounds__(64) declared(int *out);
__global__ void __launch_bounds__(64) declared(int *out) { *out = 4; }

int main() {
    int *out, host[2] = {7, 7};
    must(cudaMalloc(&out, sizeof host), "cudaMalloc");
    must(cudaMemcpy(out, host, sizeof host, cudaMemcpyHostToDevice), "cudaMemcpy");
    bounded<256><<<5, 129>>>(out);
    printf("%s ", cudaGetErrorName(cudaGetLastError()));
    declared<<<1, 65>>>(out);
    printf("%s ", cudaGetErrorName(cudaGetLastError()));
    must(cudaDeviceSynchronize(), "nothing has run");
    must(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost), "cudaMemcpy");
    printf("%d ", host[0]);
    bounded<256><<<1, 128>>>(out);
    must(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost), "cudaMemcpy");
    printf("%d\n", host[1]);
    return 0;
}
