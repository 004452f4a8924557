#include "construct.h"
#include <algorithm>
#include <cstring>
#include <iostream>
#include <cuda_fp16.h>
using namespace std;

namespace std_memcpy {
__global__ void k(float *out) {
    float4 x = make_float4(1, 2, 3, 4), y;
    memcpy(&y, &x, sizeof y);
    y.x = max(y.x, 7.0f) + min(1, 2);
    std::memcpy(out, &y, sizeof y);
}
CONSTRUCT(std_memcpy, "8 2 3 4") { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
} // namespace std_memcpy

namespace std_names {
__global__ void copy(int *out, int count) { // std::copy and std::count are others
    if (threadIdx.x < count) out[threadIdx.x] = 5;
}
CONSTRUCT(std_names, "5 5 5 0") {
    return show<int>(4, [&](int *out) {
        const int count = 3;
        ::std_names::copy<<<1, 4>>>(out, count);
    });
}
} // namespace std_names

namespace half_directed {
__global__ void k(float *out) {
    out[0] = __half2float(__int2half_rd(2049)), out[1] = __half2float(__int2half_ru(2049));
    out[2] = __half2float(__int2half_rz(-2049)), out[3] = __half2int_rd(__float2half(-1.5f));
}
CONSTRUCT(half_directed, "2048 2050 -2048 -2") { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
} // namespace half_directed

namespace occupancy_variable_shared {
__global__ void k(float *out) { if (threadIdx.x < 2) out[threadIdx.x] = blockDim.x; }
CONSTRUCT(occupancy_variable_shared, "128 128") {
    return show<float>(2, [&](float *out) {
        int grid, block;
        must(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, k, [](int threads) { return threads * sizeof(float); }, 128),
             "occupancy");
        if (grid < 1) exit(1);
        k<<<1, block>>>(out);
    });
}
} // namespace occupancy_variable_shared
