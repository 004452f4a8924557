#include "construct.h"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <utility>

namespace cooperative_launch_too_large {
__global__ void k(int *out) { cooperative_groups::this_grid().sync(), out[0] = 2; }
__global__ void one(int *out) { out[0] = 1; }
CONSTRUCT(cooperative_launch_too_large, "1") { return show<int>(1, [&](int *out) { void *arguments[] = {&out}; if (cudaLaunchCooperativeKernel((void *)k, dim3(1 << 20), dim3(256), arguments, 0, 0) == cudaErrorCooperativeLaunchTooLarge) { cudaGetLastError(); one<<<1, 1>>>(out); } }); }
} // namespace cooperative_launch_too_large

namespace grid_sync {
namespace cg = cooperative_groups;
__global__ void k(int *out) { // blocks exchange what they have written, twice
    cg::grid_group grid = cg::this_grid();
    unsigned i = grid.thread_rank(), last = grid.size() - 1;
    out[i] = grid.is_valid() ? (int)i : -1;
    grid.sync();
    int mirrored = out[last - i];
    grid.sync();
    out[i] = mirrored ^ 4;
}
CONSTRUCT(grid_sync, "3 2 1 0 7 6 5 4") { return show<int>(8, [&](int *out) { void *arguments[] = {&out}; must(cudaLaunchCooperativeKernel((void *)k, dim3(4), dim3(2), arguments, 0, 0), "launch"); }); }
} // namespace grid_sync

namespace groups_block {
namespace cg = cooperative_groups;
__global__ void k(int *out) {
    __shared__ int tile[4];
    cg::thread_block block = cg::this_thread_block();
    tile[block.thread_rank()] = block.thread_rank();
    block.sync();
    out[block.thread_rank()] = tile[block.size() - 1 - block.thread_rank()];
}
CONSTRUCT(groups_block, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace groups_block

namespace groups_copy {
namespace cg = cooperative_groups;
__global__ void k(int *out, const int *in) {
    __shared__ int tile[8];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, tile, in, sizeof(int) * 8);
    cg::wait(block);
    out[threadIdx.x] = tile[7 - threadIdx.x];
}
CONSTRUCT(groups_copy, "8 7 6 5 4 3 2 1") { return show<int>(8, [&](int *out) { int h[8] = {1, 2, 3, 4, 5, 6, 7, 8}, *in; cudaMalloc(&in, 32); cudaMemcpy(in, h, 32, cudaMemcpyHostToDevice); k<<<1, 8>>>(out, in); cudaFree(in); }); }
} // namespace groups_copy

namespace groups_meta_rank {
namespace cg = cooperative_groups;
/* The tile's place in the block; and in a larger tile: 0, 1, 0, 1. */
__global__ void k(int *out) {
    auto pair = cg::tiled_partition<2>(cg::this_thread_block());
    auto in_four = cg::tiled_partition<2>(cg::tiled_partition<4>(cg::this_thread_block()));
    out[threadIdx.x] = pair.meta_group_rank();
    out[8 + threadIdx.x] = in_four.meta_group_rank() + 2 * (threadIdx.x / 4) * (in_four.meta_group_size() == 2);
}
CONSTRUCT(groups_meta_rank, "0 0 1 1 2 2 3 3 0 0 1 1 2 2 3 3") { return show<int>(16, [&](int *out) { k<<<1, 8>>>(out); }); }
} // namespace groups_meta_rank

namespace groups_reduce {
namespace cg = cooperative_groups;
__global__ void k(int *out) {
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
    int sum = cg::reduce(warp, (int)threadIdx.x, cg::plus<int>());
    if (warp.thread_rank() == 0) *out = sum;
}
CONSTRUCT(groups_reduce, "496") { return show<int>(1, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace groups_reduce

namespace groups_tile {
namespace cg = cooperative_groups;
__global__ void k(int *out) {
    auto tile = cg::tiled_partition<4>(cg::this_thread_block());
    int sum = tile.thread_rank();
    for (int d = tile.size() / 2; d > 0; d /= 2) sum += tile.shfl_xor(sum, d);
    out[threadIdx.x] = sum;
}
CONSTRUCT(groups_tile, "6 6 6 6") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace groups_tile

namespace groups_arrive_and_wait {
namespace cg = cooperative_groups;
__global__ void k(int *out) {
    __shared__ int tile[4];
    auto block = cg::this_thread_block();
    tile[threadIdx.x] = threadIdx.x;
    auto token = block.barrier_arrive();
    int own = 1;
    block.barrier_wait(std::move(token));
    out[threadIdx.x] = tile[3 - threadIdx.x] + own;
}
CONSTRUCT(groups_arrive_and_wait, "4 3 2 1") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace groups_arrive_and_wait

namespace groups_partition {
namespace cg = cooperative_groups;
__global__ void k(int *out) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto fourth = cg::binary_partition(warp, threadIdx.x % 4 == 0);
    auto none = cg::binary_partition(warp, threadIdx.x > 99);
    auto label = cg::labeled_partition(warp, (int)threadIdx.x % 5);
    int sum = label.shfl(label.size() * 100 + label.meta_group_rank() * 10 + label.meta_group_size(), 0);
    if (threadIdx.x < 4) out[threadIdx.x] = fourth.size() * 100 + fourth.meta_group_rank() * 10 + fourth.meta_group_size();
    if (threadIdx.x < 4) out[4 + threadIdx.x] = sum + 1000 * (none.size() == 32 && none.meta_group_size() == 1);
}
CONSTRUCT(groups_partition, "812 2402 2402 2402 1705 1715 1625 1635") { return show<int>(8, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace groups_partition

namespace groups_of_several_warps {
namespace cg = cooperative_groups;
__global__ void k(int *out) {
    __shared__ cg::block_tile_memory<256> memory;
    __shared__ int values[256];
    auto block = cg::this_thread_block(memory);
    auto tile = cg::tiled_partition<64>(block);
    auto warp = cg::tiled_partition<32>(tile);
    values[threadIdx.x] = threadIdx.x;
    tile.sync();
    int neighbour = values[threadIdx.x ^ 32], sum = 0;
    for (int round = 0; round < 3; round++) sum += tile.shfl(neighbour, round);
    bool any = tile.any(threadIdx.x == 70), all = tile.all(threadIdx.x >= 64);
    if (tile.thread_rank() == 63)
        out[tile.meta_group_rank()] = sum * 1000 + any * 100 + all * 10 + warp.meta_group_rank() + (int)tile.meta_group_size();
}
CONSTRUCT(groups_of_several_warps, "99005 291115 483015 675015") { return show<int>(4, [&](int *out) { k<<<1, 256>>>(out); }); }
} // namespace groups_of_several_warps
