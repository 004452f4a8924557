#include "construct.h"
#include "headers.cuh"
#include <thread>
#include <cuda_fp16.h>

namespace device_header_in_project {
__global__ void k(int *out) {
    remember(threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = doubled(recall(threadIdx.x));
}
CONSTRUCT(device_header_in_project, "0 2 4 6") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace device_header_in_project

namespace device_method {
struct adder {
    int by;
    __device__ int operator()(int x) const { return x + by; }
};
__global__ void k(int *out, adder a) { out[threadIdx.x] = a(threadIdx.x); }
CONSTRUCT(device_method, "2 3 4 5") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out, adder{2}); }); }
} // namespace device_method

namespace forceinline_function {
__device__ __forceinline__ int next(int x) { return x + 1; }
__global__ void k(int *out) { out[threadIdx.x] = next(threadIdx.x); }
CONSTRUCT(forceinline_function, "1 2 3 4") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace forceinline_function

namespace host_device_function {
__host__ __device__ int square(int x) { return x * x; }
__global__ void k(int *out) { out[threadIdx.x] = square(threadIdx.x); }
CONSTRUCT(host_device_function, "0 1 4 9") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace host_device_function

namespace host_threads {
__global__ void add(int *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i]++;
}

/* A stream, an array and 20 launches of its own; *least is 20 if all went well. */
static void work(int *least) {
    const int n = 3000;
    int *x = nullptr;
    cudaStream_t stream;
    std::vector<int> host(n);
    must(cudaStreamCreate(&stream), "cudaStreamCreate");
    must(cudaMalloc(&x, n * sizeof(int)), "cudaMalloc");
    must(cudaMemsetAsync(x, 0, n * sizeof(int), stream), "cudaMemsetAsync");
    for (int i = 0; i < 20; i++) add<<<(n + 255) / 256, 256, 0, stream>>>(x, n);
    must(cudaGetLastError(), "launch");
    must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    must(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost), "cudaMemcpy");
    must(cudaFree(x), "cudaFree");
    *least = host[0];
    for (int value : host)
        if (value != 20) *least = value;
}
CONSTRUCT(host_threads, "20 20 20 20") {
    int least[4] = {};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) threads.emplace_back(work, &least[i]);
    for (std::thread &thread : threads) thread.join();
    printf("%d %d %d %d\n", least[0], least[1], least[2], least[3]);
    return 0;
}
} // namespace host_threads

namespace if_constexpr {
template <typename T> __global__ void k(T *out) {
    if constexpr (sizeof(T) == 4) out[threadIdx.x] = 1;
}
CONSTRUCT(if_constexpr, "1 1 1 1") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace if_constexpr

namespace lambda_in_kernel {
__global__ void k(int *out) {
    auto twice = [](int x) { return 2 * x; };
    out[threadIdx.x] = twice(threadIdx.x);
}
CONSTRUCT(lambda_in_kernel, "0 2 4 6") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace lambda_in_kernel

namespace noinline_function {
__device__ __noinline__ int next(int x) { return x + 1; }
__global__ void k(int *out) { out[threadIdx.x] = next(threadIdx.x); }
CONSTRUCT(noinline_function, "1 2 3 4") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace noinline_function

namespace operator_brackets {
struct list {
    int x[4];
    __device__ int &operator[](int i) { return x[i]; }
};
__global__ void k(int *out) {
    list l;
    for (int i = 0; i < 4; i++) l[i] = i + 1;
    out[threadIdx.x] = l[threadIdx.x];
}
CONSTRUCT(operator_brackets, "1 2 3 4") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace operator_brackets

namespace operator_on_float4 {
__device__ float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
__global__ void k(float *out) {
    float4 a = make_float4(1, 2, 3, 4), b = make_float4(9, 8, 7, 6), c = a + b;
    out[0] = c.x, out[1] = c.y, out[2] = c.z, out[3] = c.w;
}
CONSTRUCT(operator_on_float4, "10 10 10 10") { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
} // namespace operator_on_float4

namespace recursive_function {
__device__ int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }
__global__ void k(int *out) { out[threadIdx.x] = factorial(threadIdx.x); }
CONSTRUCT(recursive_function, "1 1 2 6") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace recursive_function

namespace restrict_pointers {
__global__ void k(int *__restrict__ out, const int *__restrict__ in) { out[threadIdx.x] = in[threadIdx.x] + 1; }
CONSTRUCT(restrict_pointers, "1 2 3 4") { return show<int>(4, [&](int *out) { int h[4] = {0, 1, 2, 3}, *in; cudaMalloc(&in, 16); cudaMemcpy(in, h, 16, cudaMemcpyHostToDevice); k<<<1, 4>>>(out, in); cudaFree(in); }); }
} // namespace restrict_pointers

namespace template_device_function {
template <typename T> __device__ T larger(T a, T b) { return a > b ? a : b; }
__global__ void k(int *out) { out[threadIdx.x] = larger(5, (int)threadIdx.x); }
CONSTRUCT(template_device_function, "5 5 5 5") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace template_device_function

namespace static_in_a_function {
__device__ int next() {
    static int count = 3;
    static const int steps[] = {1, 2};
    return atomicAdd(&count, steps[1]);
}
__global__ void k(int *out) { out[threadIdx.x] = next(); }
CONSTRUCT(static_in_a_function, "3 5 7 9") {
    return show<int>(4, [&](int *out) {
        for (int i = 0; i < 4; i++) k<<<1, 1>>>(out + i);
    });
}
} // namespace static_in_a_function

namespace static_const_member {
template <typename T> struct sum {
    static const T identity = T(0), one = T(1);
    const static int width = 4;
    static const char *name;
    __device__ T operator()(T a, T b) const { return a + b; }
};
template <typename T> const char *sum<T>::name = "sum";
__global__ void k(float *out) {
    float x = threadIdx.x < 2 ? 3.0f : sum<float>::identity;
    out[threadIdx.x] = sum<float>()(x, sum<float>::one);
}
CONSTRUCT(static_const_member, "4 4 1 1") { return show<float>(sum<int>::width, [&](float *out) { k<<<1, 4>>>(out); }); }
} // namespace static_const_member

namespace static_function_of_a_local_class {
__global__ void k(float *y) {
    struct local {
        static __device__ float twice(float x) { return 2 * x; }
        static __device__ float plus(float x, float by = 1) noexcept { return x + by; }
    };
    static float kept(3.0f);
    static decltype(kept) more{0};
    float (*volatile f)(float) = local::twice;
    y[threadIdx.x] = f(local::plus(kept, atomicAdd(&more, 1.0f) + 1));
}
CONSTRUCT(static_function_of_a_local_class, "8") { return show<float>(1, [&](float *out) { k<<<1, 1>>>(out); }); }
} // namespace static_function_of_a_local_class

namespace nv_half_name {
__global__ void k(__nv_half *y) { y[threadIdx.x] = __float2half(1); }
CONSTRUCT(nv_half_name, "1 1") { return show<__nv_half>(2, [&](__nv_half *out) { k<<<1, 2>>>(out); }); }
} // namespace nv_half_name

// Names that several namespaces have, and what looks like a call of a function that runs elsewhere.

namespace first {
__shared__ float kept[4];
__global__ void k(float *out, const float *in, int n) {
    kept[threadIdx.x] = in == nullptr ? n : 0;
    out[threadIdx.x] = kept[threadIdx.x];
}
} // namespace first
namespace second {
__shared__ int kept[2];
__global__ void k(float *out, int n) {
    kept[threadIdx.x] = n + 1;
    out[threadIdx.x] = kept[threadIdx.x];
}
} // namespace second

namespace local_of_a_name_elsewhere {
__global__ void k(int *out) { int kept = 5; out[threadIdx.x] = kept; }
CONSTRUCT(local_of_a_name_elsewhere, "5 5") { return show<int>(2, [&](int *out) { k<<<1, 2>>>(out); }); }
} // namespace local_of_a_name_elsewhere

namespace shared_in_namespaces {
CONSTRUCT(shared_in_namespaces, "3 3 4 4") {
    return show<float>(4, [&](float *out) {
        first::k<<<1, 2>>>(out, 0, 3);
        second::k<<<1, 2>>>(out + 2, 3);
    });
}
} // namespace shared_in_namespaces

namespace first {
CONSTRUCT(overloads_in_namespaces, "5 5") {
    return show<float>(2, [&](float *out) { k<<<1, 2>>>(out, 0, 5); });
}
} // namespace first

namespace using_a_namespace {
using namespace first;
CONSTRUCT(using_a_namespace, "6 6") {
    return show<float>(2, [&](float *out) { k<<<1, 2>>>(out, (const float *)nullptr, 6); });
}
} // namespace using_a_namespace

namespace host_or_device {
__device__ int twice(int x) { return 2 * x; }
__host__ __device__ int both(int x) {
    return x == 1 ? 2 : x;
}
struct thing {
    int size() { return 2; }
    static int twice(int x) { return x; }
};
__global__ void k(int *out) {
    const int n = 2;
    int table[n] = {1, 2}, more[n + 1];
    more[n] = twice(both(table[threadIdx.x]) / 2);
    out[threadIdx.x] = more[n];
}
CONSTRUCT(host_or_device, "2 2") {
    int n = thing().size(), table[n];
    table[0] = thing::twice(both(n));
    return show<int>(table[0], [&](int *out) { k<<<1, 2>>>(out); });
}
} // namespace host_or_device
