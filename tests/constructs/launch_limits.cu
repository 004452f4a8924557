#include "construct.h"

namespace launch_bounds {
__global__ void __launch_bounds__(4, 1) k(int *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_bounds, "0 1 2 3") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace launch_bounds

namespace launch_bounds_exceeded {
template <int THREADS> __global__ void __launch_bounds__(THREADS / 2, 1) bounded(int *out) { if (threadIdx.x == 0) out[blockIdx.x == 0] = 3; }
__global__ void __launch_bounds__(64) declared(int *out);
__global__ void __launch_bounds__(64) declared(int *out) { *out = 4; }
CONSTRUCT(launch_bounds_exceeded, "cudaErrorInvalidValue cudaErrorInvalidValue 7 3") {
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
} // namespace launch_bounds_exceeded

namespace launch_too_large_is_an_error {
__global__ void k(int *out) { out[threadIdx.x] = 1; }
CONSTRUCT(launch_too_large_is_an_error, "refused") {
    k<<<1, 2048>>>(nullptr);
    cudaError_t error = cudaGetLastError(); // InvalidValue with CUDA 13, InvalidConfiguration before it and in the manual
    printf("%s\n", error == cudaErrorInvalidConfiguration || error == cudaErrorInvalidValue ? "refused" : cudaGetErrorName(error));
    return 0;
}
} // namespace launch_too_large_is_an_error
