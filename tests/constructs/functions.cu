#include "construct.h"
#include "twice.cuh"
#include <thread>

namespace device_header_in_project {
__global__ void k(int *out) {
    remember(threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = twice(recall(threadIdx.x));
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
