#include "construct.h"

namespace launch_default_template_argument {
template <int N = 8> __global__ void k(int *out) { out[threadIdx.x] = N; }
CONSTRUCT(launch_default_template_argument, "8 8 8 8") { return show<int>(4, [&](int *out) { k<><<<1, 4>>>(out); }); }
} // namespace launch_default_template_argument

namespace launch_null_argument_template {
template <typename T> __global__ void k(T *out, const float *x) { out[threadIdx.x] = x == nullptr; }
CONSTRUCT(launch_null_argument_template, "1 1 1 1") { return show<int>(4, [&](int *out) { k<int><<<1, 4>>>(out, NULL); }); }
} // namespace launch_null_argument_template

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
