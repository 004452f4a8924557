// expect: 2 3 4 3 30
#include "construct.h"
#include "ptx_wrappers.cuh"

template <class F> __device__ float apply(F f, float x) { return f(x); }

__global__ void k(int *out) {
    __shared__ __align__(16) uint32_t tile[64];
    tile[threadIdx.x] = threadIdx.x;
    tile[32 + threadIdx.x] = 1;
    meet();
    uint32_t one[1], two[2];
    load_rows(one, tile + threadIdx.x % 8 * 4);
    meet_as<int>();
    load_rows(two, tile + threadIdx.x % 16 * 4);
    meet_as<float>();
    tile[threadIdx.x] = one[0] + two[0] + two[1];
    meet_declared_first();
    meet_in_template(1);
    if (threadIdx.x > 0) return;
    out[0] = apply(twice, 1.0f);
    out[1] = (int)pair{1.0f, 2.0f}.sum();
    out[2] = (int)apply(twice, 2.0f);
    out[3] = tile[1];
    out[4] = tile[15] - 1;
}

int main() { return show<int>(5, [](int *out) { k<<<1, 32>>>(out); }); }
