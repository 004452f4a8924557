#include "construct.h"

namespace launch_array_in_struct {
struct four { int x[4]; };
__global__ void k(int *out, four f) { out[threadIdx.x] = f.x[threadIdx.x]; }
CONSTRUCT(launch_array_in_struct, "1 2 3 4") { return show<int>(4, [&](int *out) { four f = {{1, 2, 3, 4}}; k<<<1, 4>>>(out, f); }); }
} // namespace launch_array_in_struct

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

namespace launch_converts_arguments {
__global__ void k(float *out, float x, size_t n) { if (threadIdx.x < n) out[threadIdx.x] = x; }
CONSTRUCT(launch_converts_arguments, "2.5 2.5 2.5 2.5") { return show<float>(4, [&](float *out) { k<<<1, 4>>>(out, 2.5, 4); }); }
} // namespace launch_converts_arguments

namespace launch_declared_first {
__global__ void k(int *out);
static void run(int *out) { k<<<1, 4>>>(out); }
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_declared_first, "0 1 2 3") { return show<int>(4, [&](int *out) { run(out); }); }
} // namespace launch_declared_first

namespace launch_default_argument {
__global__ void k(int *out, int x = 3) { out[threadIdx.x] = x; }
CONSTRUCT(launch_default_argument, "3 3 3 3") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace launch_default_argument

namespace launch_default_template_argument {
template <int N = 8> __global__ void k(int *out) { out[threadIdx.x] = N; }
CONSTRUCT(launch_default_template_argument, "8 8 8 8") { return show<int>(4, [&](int *out) { k<><<<1, 4>>>(out); }); }
} // namespace launch_default_template_argument

namespace launch_extern_c {
extern "C" __global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_extern_c, "0 1 2 3") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace launch_extern_c

namespace launch_function_pointer {
__global__ void k(int *out) { out[threadIdx.x] = 9; }
CONSTRUCT(launch_function_pointer, "9 9 9 9") { return show<int>(4, [&](int *out) { void (*which)(int *) = k; which<<<1, 4>>>(out); }); }
} // namespace launch_function_pointer

namespace launch_in_conditional {
__global__ void k(int *out) { out[threadIdx.x] = 1; }
CONSTRUCT(launch_in_conditional, "1 1 1 1") { return show<int>(4, [&](int *out) { if (out != nullptr) k<<<1, 4>>>(out); else k<<<1, 2>>>(out); }); }
} // namespace launch_in_conditional

namespace launch_in_namespace {
namespace a { namespace b {
__global__ void k(int *out) { out[threadIdx.x] = 4; }
} }
CONSTRUCT(launch_in_namespace, "4 4 4 4") { return show<int>(4, [&](int *out) { a::b::k<<<1, 4>>>(out); }); }
} // namespace launch_in_namespace

namespace launch_literal_zero {
__global__ void literal_zero(int *out, const int *absent, int *also, long by) { out[threadIdx.x] = absent == also ? by * (1 - threadIdx.x % 2) : -1; }
CONSTRUCT(launch_literal_zero, "5 0 5 0") { return show<int>(4, [&](int *out) { literal_zero<<<1, 4>>>(out, 0, 0, 5); }); }
} // namespace launch_literal_zero

namespace launch_null_argument {
__global__ void k(int *out, const float *x) { out[threadIdx.x] = x == nullptr; }
CONSTRUCT(launch_null_argument, "1 1 1 1") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out, NULL); }); }
} // namespace launch_null_argument

namespace launch_null_argument_template {
template <typename T> __global__ void k(T *out, const float *x) { out[threadIdx.x] = x == nullptr; }
CONSTRUCT(launch_null_argument_template, "1 1 1 1") { return show<int>(4, [&](int *out) { k<int><<<1, 4>>>(out, NULL); }); }
} // namespace launch_null_argument_template

namespace launch_over_lines {
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_over_lines, "0 1 2 3") { return show<int>(4, [&](int *out) { k<<<
        dim3(1),
        dim3(4)
    >>>(
        out); }); }
} // namespace launch_over_lines

namespace launch_overloaded {
__global__ void k(int *out) { out[threadIdx.x] = 1; }
__global__ void k(int *out, float) { out[threadIdx.x + 2] = 2; }
CONSTRUCT(launch_overloaded, "1 1 2 2") { return show<int>(4, [&](int *out) { k<<<1, 2>>>(out); k<<<1, 2>>>(out, 1.0f); }); }
} // namespace launch_overloaded

namespace launch_parameter_named_like_builtin {
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
static void run(int *out, int blockDim) { k<<<1, blockDim>>>(out); }
CONSTRUCT(launch_parameter_named_like_builtin, "0 1 2 3") { return show<int>(4, [&](int *out) { run(out, 4); }); }
} // namespace launch_parameter_named_like_builtin

namespace launch_plain {
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_plain, "0 1 2 3") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace launch_plain

namespace launch_spaces {
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_spaces, "0 1 2 3") { return show<int>(4, [&](int *out) { k <<< 1, 4 >>> (out); }); }
} // namespace launch_spaces

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

namespace launch_stream {
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_stream, "0 1 2 3") { return show<int>(4, [&](int *out) { cudaStream_t s; cudaStreamCreate(&s); k<<<1, 4, 0, s>>>(out); cudaStreamSynchronize(s); cudaStreamDestroy(s); }); }
} // namespace launch_stream

namespace launch_struct_argument {
struct pair { int a, b; };
__global__ void k(int *out, pair p) { out[threadIdx.x] = p.a + p.b + threadIdx.x; }
CONSTRUCT(launch_struct_argument, "3 4 5 6") { return show<int>(4, [&](int *out) { pair p = {1, 2}; k<<<1, 4>>>(out, p); }); }
} // namespace launch_struct_argument

namespace launch_table_of_kernels {
__global__ void one(int *out) { out[0] = 1; }
__global__ void two(int *out) { out[1] = 2; }
CONSTRUCT(launch_table_of_kernels, "1 2 0 0") { return show<int>(4, [&](int *out) { void (*table[])(int *) = {one, two}; for (int i = 0; i < 2; i++) table[i]<<<1, 1>>>(out); }); }
} // namespace launch_table_of_kernels

namespace launch_template_deduced {
template <typename T> __global__ void k(T *out, T x) { out[threadIdx.x] = x; }
CONSTRUCT(launch_template_deduced, "2 2 2 2") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out, 2); }); }
} // namespace launch_template_deduced

namespace launch_template_explicit {
template <int N> __global__ void k(int *out) { out[threadIdx.x] = N; }
CONSTRUCT(launch_template_explicit, "5 5 5 5") { return show<int>(4, [&](int *out) { k<5><<<1, 4>>>(out); }); }
} // namespace launch_template_explicit

namespace launch_template_expression {
template <int N, bool B> __global__ void k(int *out) { out[threadIdx.x] = B ? N : 0; }
CONSTRUCT(launch_template_expression, "6 6 6 6") { return show<int>(4, [&](int *out) { k<(4 > 3 ? 6 : 7), (1 < 2)><<<1, 4>>>(out); }); }
} // namespace launch_template_expression

namespace launch_template_partly {
template <int N, typename T> __global__ void k(T *out) { out[threadIdx.x] = N; }
CONSTRUCT(launch_template_partly, "7 7 7 7") { return show<int>(4, [&](int *out) { k<7><<<1, 4>>>(out); }); }
} // namespace launch_template_partly

namespace launch_too_large_is_an_error {
__global__ void k(int *out) { out[threadIdx.x] = 1; }
CONSTRUCT(launch_too_large_is_an_error, "refused") {
    k<<<1, 2048>>>(nullptr);
    cudaError_t error = cudaGetLastError(); // InvalidValue with CUDA 13, InvalidConfiguration before it and in the manual
    printf("%s\n", error == cudaErrorInvalidConfiguration || error == cudaErrorInvalidValue ? "refused" : cudaGetErrorName(error));
    return 0;
}
} // namespace launch_too_large_is_an_error

namespace launch_variables_named_like_builtins {
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_variables_named_like_builtins, "0 1 2 3") { return show<int>(4, [&](int *out) { dim3 gridDim(1), blockDim(4); k<<<gridDim, blockDim>>>(out); }); }
} // namespace launch_variables_named_like_builtins

namespace cuda_arch_macro {
__global__ void k(int *out) {
#if __CUDA_ARCH__ >= 700
    out[threadIdx.x] = 1;
#endif
}
CONSTRUCT(cuda_arch_macro, "1 1 1 1") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace cuda_arch_macro

namespace cudacc_macro {
#ifndef __CUDACC__
#error not compiled as CUDA
#endif
__global__ void k(int *out) { out[threadIdx.x] = 1; }
CONSTRUCT(cudacc_macro, "1 1 1 1") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace cudacc_macro

namespace launch_digit_separators {
__global__ void k(int *out) { out[threadIdx.x] = 1'000; }
CONSTRUCT(launch_digit_separators, "1000 1000 1000 1000") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace launch_digit_separators

namespace launch_in_macro {
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
#define LAUNCH(kernel, threads, ...) \
    kernel<<<1, threads>>>(__VA_ARGS__)
CONSTRUCT(launch_in_macro, "0 1 2 3") { return show<int>(4, [&](int *out) { LAUNCH(k, 4, out); }); }
} // namespace launch_in_macro

namespace launch_pasted_name {
__global__ void my_kernel(int *out) { out[threadIdx.x] = threadIdx.x; }
#define LAUNCH(name) name##_kernel<<<1, 4>>>(out)
CONSTRUCT(launch_pasted_name, "0 1 2 3") { return show<int>(4, [&](int *out) { LAUNCH(my); }); }
} // namespace launch_pasted_name

namespace launch_raw_string_beside {
static const char *text = R"(a <<< b >>> "c")";
__global__ void k(int *out) { out[threadIdx.x] = 1; }
CONSTRUCT(launch_raw_string_beside, "1 1 1 1") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(text[2] == '<' ? out : nullptr); }); }
} // namespace launch_raw_string_beside

namespace pragma_unroll {
__global__ void k(int *out) {
    int sum = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) sum += i;
    out[threadIdx.x] = sum;
}
CONSTRUCT(pragma_unroll, "6 6 6 6") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace pragma_unroll
