#include "construct.h"

namespace shared_template_default {
extern __shared__ int tile[];
template <int FIRST, int FACTOR = 2> __global__ void k(int *out) {
    tile[threadIdx.x] = FACTOR * (FIRST + threadIdx.x);
    out[threadIdx.x] = tile[threadIdx.x];
}
CONSTRUCT(shared_template_default, "4 6 8 10") {
    return show<int>(4, [&](int *out) { k<2><<<1, 4, 16>>>(out); });
}
} // namespace shared_template_default

namespace shared_template_size {
template <int N> __global__ void k(int *out) {
    __shared__ int tile[N];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[N - 1 - threadIdx.x];
}
CONSTRUCT(shared_template_size, "3 2 1 0") { return show<int>(4, [&](int *out) { k<4><<<1, 4>>>(out); }); }
} // namespace shared_template_size

namespace shared_template_type {
template <typename T> __global__ void k(T *out) {
    __shared__ T tile[4];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[3 - threadIdx.x];
}
CONSTRUCT(shared_template_type, "3 2 1 0") { return show<float>(4, [&](float *out) { k<<<1, 4>>>(out); }); }
} // namespace shared_template_type
