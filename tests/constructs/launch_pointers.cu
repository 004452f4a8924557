#include "construct.h"

namespace launch_by_function {
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_by_function, "0 1 2 3") { return show<int>(4, [&](int *out) { void *arguments[] = {&out}; cudaLaunchKernel(k, dim3(1), dim3(4), arguments, 0, 0); }); }
} // namespace launch_by_function

namespace launch_by_function_cast {
template <typename T> __global__ void k(T *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_by_function_cast, "0 1 2 3") { return show<int>(4, [&](int *out) { void *arguments[] = {&out}; cudaLaunchKernel((const void *)k<int>, dim3(1), dim3(4), arguments, 0, 0); }); }
} // namespace launch_by_function_cast

namespace launch_by_function_own_error {
__global__ void k(int *out) { *out = 7; }

/* cudaLaunchKernel() returns the error of its own launch: an earlier call's stays, and the launch's own can be asked for. */
CONSTRUCT(launch_by_function_own_error, "cudaErrorInvalidMemcpyDirection cudaSuccess cudaErrorInvalidMemcpyDirection cudaErrorInvalidConfiguration 7") {
    int *out, host = 0;
    must(cudaMalloc(&out, sizeof *out), "cudaMalloc");
    void *arguments[] = {&out};
    printf("%s ", cudaGetErrorName(cudaMemcpy(out, &host, sizeof host, (cudaMemcpyKind)9)));
    printf("%s ", cudaGetErrorName(cudaLaunchKernel(k, dim3(1), dim3(1), arguments, 0, 0)));
    printf("%s ", cudaGetErrorName(cudaGetLastError()));
    if (cudaLaunchKernel(k, dim3(1), dim3(2048), arguments, 0, 0) == cudaSuccess) return 1;
    if (cudaLaunchKernel(k, dim3(1), dim3(1), arguments, 0, 0) != cudaSuccess) return 1; /* the program has already checked the earlier error */
    printf("%s ", cudaGetErrorName(cudaGetLastError()));
    must(cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost), "cudaMemcpy");
    printf("%d\n", host);
    return 0;
}
} // namespace launch_by_function_own_error

namespace launch_declared_first {
__global__ void k(int *out);
static void run(int *out) { k<<<1, 4>>>(out); }
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_declared_first, "0 1 2 3") { return show<int>(4, [&](int *out) { run(out); }); }
} // namespace launch_declared_first

namespace launch_extern_c {
extern "C" __global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_extern_c, "0 1 2 3") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace launch_extern_c

namespace launch_function_pointer {
__global__ void k(int *out) { out[threadIdx.x] = 9; }
CONSTRUCT(launch_function_pointer, "9 9 9 9") { return show<int>(4, [&](int *out) { void (*which)(int *) = k; which<<<1, 4>>>(out); }); }
} // namespace launch_function_pointer

namespace launch_in_namespace {
namespace a { namespace b {
__global__ void k(int *out) { out[threadIdx.x] = 4; }
} }
CONSTRUCT(launch_in_namespace, "4 4 4 4") { return show<int>(4, [&](int *out) { a::b::k<<<1, 4>>>(out); }); }
} // namespace launch_in_namespace

namespace launch_overloaded {
__global__ void k(int *out) { out[threadIdx.x] = 1; }
__global__ void k(int *out, float) { out[threadIdx.x + 2] = 2; }
CONSTRUCT(launch_overloaded, "1 1 2 2") { return show<int>(4, [&](int *out) { k<<<1, 2>>>(out); k<<<1, 2>>>(out, 1.0f); }); }
} // namespace launch_overloaded

namespace launch_static_kernel {
static __global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_static_kernel, "0 1 2 3") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace launch_static_kernel

namespace launch_static_member {
struct s { int x; };
template <typename T> struct runner {
    static void run(int *out);
};
__global__ void k(int *out) { out[threadIdx.x] = 2; }
template <typename T> void runner<T>::run(int *out) { k<<<1, 4>>>(out); }
CONSTRUCT(launch_static_member, "2 2 2 2") { return show<int>(4, [&](int *out) { runner<float>::run(out); }); }
} // namespace launch_static_member

namespace launch_table_of_kernels {
__global__ void one(int *out) { out[0] = 1; }
__global__ void two(int *out) { out[1] = 2; }
CONSTRUCT(launch_table_of_kernels, "1 2 0 0") { return show<int>(4, [&](int *out) { void (*table[])(int *) = {one, two}; for (int i = 0; i < 2; i++) table[i]<<<1, 1>>>(out); }); }
} // namespace launch_table_of_kernels
