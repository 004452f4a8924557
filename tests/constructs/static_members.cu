#include "construct.h"
#include <cuda_fp16.h>

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
