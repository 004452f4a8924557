#include "construct.h"

namespace launch_array_in_struct {
struct four { int x[4]; };
__global__ void k(int *out, four f) { out[threadIdx.x] = f.x[threadIdx.x]; }
CONSTRUCT(launch_array_in_struct, "1 2 3 4") { return show<int>(4, [&](int *out) { four f = {{1, 2, 3, 4}}; k<<<1, 4>>>(out, f); }); }
} // namespace launch_array_in_struct

namespace launch_converts_arguments {
__global__ void k(float *out, float x, size_t n) { if (threadIdx.x < n) out[threadIdx.x] = x; }
CONSTRUCT(launch_converts_arguments, "2.5 2.5 2.5 2.5") { return show<float>(4, [&](float *out) { k<<<1, 4>>>(out, 2.5, 4); }); }
} // namespace launch_converts_arguments

namespace launch_default_argument {
__global__ void k(int *out, int x = 3) { out[threadIdx.x] = x; }
CONSTRUCT(launch_default_argument, "3 3 3 3") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace launch_default_argument

namespace launch_in_conditional {
__global__ void k(int *out) { out[threadIdx.x] = 1; }
CONSTRUCT(launch_in_conditional, "1 1 1 1") { return show<int>(4, [&](int *out) { if (out != nullptr) k<<<1, 4>>>(out); else k<<<1, 2>>>(out); }); }
} // namespace launch_in_conditional

namespace launch_literal_zero {
__global__ void literal_zero(int *out, const int *absent, int *also, long by) { out[threadIdx.x] = absent == also ? by * (1 - threadIdx.x % 2) : -1; }
CONSTRUCT(launch_literal_zero, "5 0 5 0") { return show<int>(4, [&](int *out) { literal_zero<<<1, 4>>>(out, 0, 0, 5); }); }
} // namespace launch_literal_zero

namespace launch_null_argument {
__global__ void k(int *out, const float *x) { out[threadIdx.x] = x == nullptr; }
CONSTRUCT(launch_null_argument, "1 1 1 1") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out, NULL); }); }
} // namespace launch_null_argument

namespace launch_over_lines {
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_over_lines, "0 1 2 3") { return show<int>(4, [&](int *out) { k<<<
        dim3(1),
        dim3(4)
    >>>(
        out); }); }
} // namespace launch_over_lines

namespace launch_plain {
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_plain, "0 1 2 3") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace launch_plain

namespace launch_spaces {
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_spaces, "0 1 2 3") { return show<int>(4, [&](int *out) { k <<< 1, 4 >>> (out); }); }
} // namespace launch_spaces

namespace launch_stream {
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_stream, "0 1 2 3") { return show<int>(4, [&](int *out) { cudaStream_t s; cudaStreamCreate(&s); k<<<1, 4, 0, s>>>(out); cudaStreamSynchronize(s); cudaStreamDestroy(s); }); }
} // namespace launch_stream

namespace launch_struct_argument {
struct pair { int a, b; };
__global__ void k(int *out, pair p) { out[threadIdx.x] = p.a + p.b + threadIdx.x; }
CONSTRUCT(launch_struct_argument, "3 4 5 6") { return show<int>(4, [&](int *out) { pair p = {1, 2}; k<<<1, 4>>>(out, p); }); }
} // namespace launch_struct_argument
