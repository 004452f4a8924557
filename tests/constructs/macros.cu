#include "construct.h"

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
