#include "construct.h"

namespace launch_parameter_named_like_builtin {
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
static void run(int *out, int blockDim) { k<<<1, blockDim>>>(out); }
CONSTRUCT(launch_parameter_named_like_builtin, "0 1 2 3") { return show<int>(4, [&](int *out) { run(out, 4); }); }
} // namespace launch_parameter_named_like_builtin

namespace launch_variables_named_like_builtins {
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
CONSTRUCT(launch_variables_named_like_builtins, "0 1 2 3") { return show<int>(4, [&](int *out) { dim3 gridDim(1), blockDim(4); k<<<gridDim, blockDim>>>(out); }); }
} // namespace launch_variables_named_like_builtins
