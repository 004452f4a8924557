#include "construct.h"
#include <math_constants.h>

namespace fast_functions {
__global__ void k(float *out) { out[0] = __expf(0.0f), out[1] = __logf(1.0f), out[2] = __cosf(0.0f), out[3] = __fdividef(4.0f, 2.0f); }
CONSTRUCT(fast_functions, "1 0 1 2") { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
} // namespace fast_functions

namespace infinity_and_nan {
__global__ void k(int *out) { out[threadIdx.x] = isinf(INFINITY) && isnan(nanf("")); }
CONSTRUCT(infinity_and_nan, "1 1 1 1") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace infinity_and_nan

namespace math_constants {
__global__ void k(int *out) { out[threadIdx.x] = CUDART_INF_F > 3e38f; }
CONSTRUCT(math_constants, "1 1 1 1") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace math_constants

namespace rounding_conversions {
__global__ void k(int *out) { out[0] = __float2int_rn(2.5f), out[1] = __float2int_rz(2.9f), out[2] = __float2int_ru(2.1f), out[3] = __float2int_rd(-2.1f); }
CONSTRUCT(rounding_conversions, "2 2 3 -3") { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
} // namespace rounding_conversions
