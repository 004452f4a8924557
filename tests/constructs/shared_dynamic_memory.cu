#include "construct.h"

namespace shared_dynamic {
__global__ void k(int *out) {
    extern __shared__ int tile[];
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[3 - t];
}
CONSTRUCT(shared_dynamic, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 4, 16>>>(out); }); }
} // namespace shared_dynamic

namespace shared_dynamic_aligned {
__global__ void k(int *out) {
    extern __shared__ __align__(16) unsigned char bytes[];
    int *tile = reinterpret_cast<int *>(bytes);
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[3 - t];
}
CONSTRUCT(shared_dynamic_aligned, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 4, 16>>>(out); }); }
} // namespace shared_dynamic_aligned

namespace shared_size_allowed {
__global__ void k(int *out) {
    extern __shared__ int big[];
    big[15000 + threadIdx.x] = 1;
    out[threadIdx.x] = big[15000 + threadIdx.x];
}
CONSTRUCT(shared_size_allowed, "1 1 1 1") { return show<int>(4, [&](int *out) { cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 64000); k<<<1, 4, 64000>>>(out); }); }
} // namespace shared_size_allowed

namespace shared_static_beside_dynamic {
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
CONSTRUCT(shared_static_beside_dynamic, "0 1 0 0 1 0 1") {
    printf("%d ", fails(9000));
    printf("%d ", cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 300000) != cudaSuccess);
    must(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 20000), "cudaFuncSetAttribute");
    printf("%d %d %d ", fails(9000), fails(20000), fails(20004));
    must(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 4000), "cudaFuncSetAttribute");
    printf("%d %d\n", fails(4000), fails(8000));
    return 0;
}
} // namespace shared_static_beside_dynamic

namespace shared_dynamic_at_file_scope {
extern __shared__ int tile[];
__global__ void k(int *out) {
    
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[3 - t];
}
CONSTRUCT(shared_dynamic_at_file_scope, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 4, 16>>>(out); }); }
} // namespace shared_dynamic_at_file_scope
