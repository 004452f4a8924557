#include "construct.h"

namespace vector_double2 {
__global__ void k(int *out) {
    double2 v = make_double2(1.0, 2.0);
    out[threadIdx.x] = (int)(v.x + v.y);
}
CONSTRUCT(vector_double2, "3 3 3 3") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace vector_double2

namespace vector_float2 {
__global__ void k(float *out) {
    float2 a = {1, 2}, b = make_float2(3, 4);
    out[0] = a.x + a.y, out[1] = b.x + b.y;
}
CONSTRUCT(vector_float2, "3 7 0 0") { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
} // namespace vector_float2

namespace vector_float4_load {
__global__ void k(float *out, const float4 *in) { *(float4 *)out = *in; }
CONSTRUCT(vector_float4_load, "1 2 3 4") { return show<float>(4, [&](float *out) { float h[4] = {1, 2, 3, 4}; float4 *in; cudaMalloc(&in, 16); cudaMemcpy(in, h, 16, cudaMemcpyHostToDevice); k<<<1, 1>>>(out, in); cudaFree(in); }); }
} // namespace vector_float4_load

namespace vector_int3 {
__global__ void k(int *out) {
    int3 v = make_int3(1, 2, 3);
    out[threadIdx.x] = v.x + v.y + v.z;
}
CONSTRUCT(vector_int3, "6 6 6 6") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace vector_int3

namespace vector_one_brace {
__global__ void k(float *out) {
    float4 v = {1.0f};
    out[threadIdx.x] = v.x + v.y;
}
CONSTRUCT(vector_one_brace, "1 1 1 1") { return show<float>(4, [&](float *out) { k<<<1, 4>>>(out); }); }
} // namespace vector_one_brace

namespace vector_sizes {
__global__ void k(int *out) {
    out[0] = sizeof(float1), out[1] = sizeof(float2), out[2] = sizeof(float3), out[3] = sizeof(float4);
}
CONSTRUCT(vector_sizes, "4 8 12 16") { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
} // namespace vector_sizes

namespace vector_uchar4 {
__global__ void k(int *out) {
    uchar4 v = make_uchar4(1, 2, 3, 4);
    out[threadIdx.x] = v.x + v.y + v.z + v.w;
}
CONSTRUCT(vector_uchar4, "10 10 10 10") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace vector_uchar4

namespace vector_zero_braces {
__global__ void k(float *out) {
    float4 v = {};
    out[threadIdx.x] = v.x + v.w;
}
CONSTRUCT(vector_zero_braces, "0 0 0 0") { return show<float>(4, [&](float *out) { k<<<1, 4>>>(out); }); }
} // namespace vector_zero_braces
