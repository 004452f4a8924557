#include "construct.h"
#include <cstdint>

namespace shared_template_default {
extern __shared__ int tile[];
template <int FIRST, int FACTOR = 2> __global__ void k(int *out) {
    tile[threadIdx.x] = FACTOR * (FIRST + threadIdx.x);
    out[threadIdx.x] = tile[threadIdx.x];
}
CONSTRUCT(shared_template_default, "4 6 8 10") {
    return show<int>(4, [&](int *out) { k<2><<<1, 4, 16>>>(out); });
}
} // namespace shared_template_default

namespace shared_template_size {
template <int N> __global__ void k(int *out) {
    __shared__ int tile[N];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[N - 1 - threadIdx.x];
}
CONSTRUCT(shared_template_size, "3 2 1 0") { return show<int>(4, [&](int *out) { k<4><<<1, 4>>>(out); }); }
} // namespace shared_template_size

namespace shared_template_type {
template <typename T> __global__ void k(T *out) {
    __shared__ T tile[4];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[3 - threadIdx.x];
}
CONSTRUCT(shared_template_type, "3 2 1 0") { return show<float>(4, [&](float *out) { k<<<1, 4>>>(out); }); }
} // namespace shared_template_type

namespace shared_alignas {
__global__ void k(int *out) {
    __shared__ alignas(16) int tile[4];
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[3 - t];
}
CONSTRUCT(shared_alignas, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace shared_alignas

namespace shared_alignas_1024 {
struct alignas(512) storage {
    char bytes[512];
};

// Rows for the TMA begin at a multiple of 1024 bytes where its swizzle has 128.
__global__ void k(int *out) {
    __shared__ char odd[5];
    __shared__ alignas(1024) char tile[128];
    __shared__ __align__(256) char rows[3][7], row[1];
    __shared__ storage both;
    odd[0] = row[0] = both.bytes[0] = 0;
    rows[2][6] = 7;
    out[0] = (uintptr_t)tile % 1024;
    out[1] = (uintptr_t)rows % 256 + (uintptr_t)row % 256;
    out[2] = (uintptr_t)&both % 512;
    out[3] = rows[2][6] + odd[0];
}
CONSTRUCT(shared_alignas_1024, "0 0 0 7") { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
} // namespace shared_alignas_1024

namespace shared_aligned {
__global__ void k(int *out) {
    __shared__ __align__(16) int tile[4];
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[3 - t];
}
CONSTRUCT(shared_aligned, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace shared_aligned

namespace shared_anonymous_struct {
__global__ void k(int *out) {
    __shared__ struct { int a[4]; } tile;
    tile.a[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile.a[3 - threadIdx.x];
}
CONSTRUCT(shared_anonymous_struct, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace shared_anonymous_struct

namespace shared_array {
__global__ void k(int *out) {
    __shared__ int tile[4];
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[3 - t];
}
CONSTRUCT(shared_array, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace shared_array

namespace shared_in_device_function {
__device__ int *tile_of() {
    __shared__ int tile[4];
    return tile;
}
__global__ void k(int *out) {
    int *tile = tile_of();
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[3 - t];
}
CONSTRUCT(shared_in_device_function, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace shared_in_device_function

namespace shared_passed_to_function {
__device__ int sum(const int *tile) { return tile[0] + tile[1] + tile[2] + tile[3]; }
__global__ void k(int *out) {
    __shared__ int tile[4];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = sum(tile);
}
CONSTRUCT(shared_passed_to_function, "6 6 6 6") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace shared_passed_to_function

namespace shared_scalar {
__global__ void k(int *out) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = sum;
}
CONSTRUCT(shared_scalar, "6 6 6 6") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace shared_scalar

namespace shared_static_word {
__global__ void k(int *out) {
    static __shared__ int tile[4];
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[3 - t];
}
CONSTRUCT(shared_static_word, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace shared_static_word

namespace shared_struct {
struct cell { int a, b; };
__global__ void k(int *out) {
    __shared__ cell tile[4];
    tile[threadIdx.x].b = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[3 - threadIdx.x].b;
}
CONSTRUCT(shared_struct, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace shared_struct

namespace shared_two_dimensions {
__global__ void k(int *out) {
    __shared__ int tile[2][2 + 1];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = 2 * y + x;
    __syncthreads();
    out[2 * y + x] = tile[1 - x][y];
}
CONSTRUCT(shared_two_dimensions, "2 0 3 1") { return show<int>(4, [&](int *out) { k<<<1, dim3(2, 2)>>>(out); }); }
} // namespace shared_two_dimensions

namespace shared_two_of_a_kind {
__global__ void k(int *out) {
    __shared__ int other[2], tile[4];
    if (threadIdx.x < 2) other[threadIdx.x] = 0;
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[3 - t];
}
CONSTRUCT(shared_two_of_a_kind, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace shared_two_of_a_kind

namespace shared_type_first {
__global__ void k(int *out) {
    int __shared__ tile[4];
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[3 - t];
}
CONSTRUCT(shared_type_first, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace shared_type_first

namespace shared_volatile {
__global__ void k(int *out) {
    volatile __shared__ int tile[4];
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[3 - t];
}
CONSTRUCT(shared_volatile, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace shared_volatile

namespace shared_at_file_scope {
__shared__ int tile[4];
__global__ void k(int *out) {
    
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[3 - t];
}
CONSTRUCT(shared_at_file_scope, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace shared_at_file_scope

namespace shared_after_pragma {
__global__ void k(int *out) {
    __shared__ int first[4];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ int second[4];
#pragma unroll
    for (int i = 0; i < 1; i++) first[threadIdx.x] = 1, second[threadIdx.x] = 2;
    out[threadIdx.x] = first[threadIdx.x] + second[threadIdx.x];
}
CONSTRUCT(shared_after_pragma, "3 3 3 3") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace shared_after_pragma

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
