// Indices; and names of the program that are also CUDA's or a library's: the library's reduce() comes with cooperative_groups/reduce.h only.
#include "construct.h"
#include <cooperative_groups.h>
constexpr int warpSize = 16; // of its own: in place of the built-in one

namespace dim3_from_three {
__global__ void k(int *out) { if (blockIdx.y == 0 && blockIdx.z == 0) out[0] = gridDim.x * gridDim.y * gridDim.z; }
CONSTRUCT(dim3_from_three, "6 0 0 0") { return show<int>(4, [&](int *out) { dim3 g = {1, 2, 3}; k<<<g, 1>>>(out); }); }
} // namespace dim3_from_three

namespace index_copied {
__global__ void k(int *out) { uint3 t = threadIdx; dim3 d = blockDim; out[t.x] = d.x - 1; }
CONSTRUCT(index_copied, "3 3 3 3") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace index_copied

namespace index_grid {
__global__ void k(int *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x * 2 + threadIdx.x; }
CONSTRUCT(index_grid, "0 1 2 3") { return show<int>(4, [&](int *out) { k<<<2, 2>>>(out); }); }
} // namespace index_grid

namespace index_grid_stride {
__global__ void k(int *out, int n) { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = 1; }
CONSTRUCT(index_grid_stride, "1 1 1 1") { return show<int>(4, [&](int *out) { k<<<1, 3>>>(out, 4); }); }
} // namespace index_grid_stride

namespace index_two_dimensions {
__global__ void k(int *out) { out[threadIdx.y * blockDim.x + threadIdx.x] = 10 * threadIdx.y + threadIdx.x; }
CONSTRUCT(index_two_dimensions, "0 1 10 11") { return show<int>(4, [&](int *out) { k<<<1, dim3(2, 2)>>>(out); }); }
} // namespace index_two_dimensions

namespace own_warp_size {
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x % warpSize + ::warpSize; }
CONSTRUCT(own_warp_size, "17") {
    cudaDeviceProp p;
    must(cudaGetDeviceProperties(&p, 0), "cudaGetDeviceProperties");
    int got[20], *device;
    must(cudaMalloc(&device, sizeof got), "cudaMalloc");
    k<<<1, 20>>>(device);
    must(cudaMemcpy(got, device, sizeof got, cudaMemcpyDeviceToHost), "cudaMemcpy");
    printf("%d\n", p.warpSize == 32 ? got[17] : -1);
    return 0;
}
} // namespace own_warp_size

using namespace cooperative_groups;

template <typename Group, typename T, typename F> __device__ T reduce(const Group &group, T value, F operation) {
    return operation(group.size(), value);
}
struct plus { __device__ int operator()(int a, int b) const { return a + b; } };
__global__ void k(int *out) {
    thread_block_tile<4> tile = tiled_partition<4>(this_thread_block());
    out[threadIdx.x] = reduce(tile, 6 + 5 * (int)threadIdx.x, plus());
}
CONSTRUCT(groups_own_reduce, "10 15 20 25") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
