/* What the host part of a step needs to start its kernels. CUDA C++, for kernel files. */
#pragma once

#include <cuda_runtime.h>
#include <stddef.h>

#include <type_traits>

/* Start a kernel with `shared_bytes` of dynamic shared memory per block, also more than the 48 KiB that every kernel may
 * use. Returns the error of the request or of the launch. */
template <class... Parameters>
cudaError_t launch(void (*kernel)(Parameters...), dim3 blocks, dim3 threads, size_t shared_bytes, cudaStream_t stream,
                   std::type_identity_t<Parameters>... arguments) {
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
    if (error != cudaSuccess) return error;
    void *pointers[] = {(void *)&arguments...};
    return cudaLaunchKernel(kernel, blocks, threads, pointers, shared_bytes, stream);
}

/* Cards since compute capability 7.5 give a block 64 KiB at least: every step has tiles that fit into that. */
constexpr size_t LEAST_SHARED_BYTES = 64 * 1024;

/* Whether a block of this device may have so much shared memory. */
inline bool shared_memory_fits(size_t bytes) {
    int device = 0, most = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess &&
           bytes <= (size_t)most;
}
