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

namespace active_mask {
namespace cg = cooperative_groups;

/* One atomic addition for all lanes that took the branch. */
__device__ void count(int *sum) {
    unsigned active = __activemask();
    int leader = __ffs(active) - 1, before = 0;
    if ((int)(threadIdx.x % 32) == leader) before = atomicAdd(sum, __popc(active));
    before = __shfl_sync(active, before, leader);
}

__global__ void k(const int *in, int *out) {
    int t = threadIdx.x;
    if (in[t] % 3 == 0) count(out);
    if (in[t] % 3 == 0) {
        cg::coalesced_group group = cg::coalesced_threads();
        atomicAdd(out + 1, group.thread_rank() == 0 ? 2 * (int)group.size() : 0);
    }
    __syncwarp();
    for (int round = 0; round < 2; round++) /* the last ten lanes leave the loop after the first round */
        if (round < (t < 22 ? 2 : 1)) count(out + 2 + round);
}
CONSTRUCT(active_mask, "11 22 32 22") {
    int host[32], *in = nullptr;
    for (int i = 0; i < 32; i++) host[i] = i;
    must(cudaMalloc(&in, sizeof host), "cudaMalloc");
    must(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice), "cudaMemcpy");
    return show<int>(4, [&](int *out) { k<<<1, 32>>>(in, out); });
}
} // namespace active_mask

namespace any_and_all {
__global__ void k(int *out) {
    int any = __any_sync(~0u, threadIdx.x == 5), all = __all_sync(~0u, threadIdx.x == 5);
    if (threadIdx.x == 0) out[0] = any, out[1] = all, out[2] = 1;
}
CONSTRUCT(any_and_all, "1 0 1 0") { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace any_and_all

namespace ballots {
__global__ void k(int *out) {
    unsigned odd = __ballot_sync(~0u, threadIdx.x % 2 == 0);
    if (threadIdx.x < 4) out[threadIdx.x] = odd & 0xffff;
}
CONSTRUCT(ballots, "21845 21845 21845 21845") { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace ballots

namespace match_any {
__global__ void k(int *out) {
    unsigned same = __match_any_sync(~0u, threadIdx.x % 2);
    if (threadIdx.x < 4) out[threadIdx.x] = same & 15;
}
CONSTRUCT(match_any, "5 10 5 10") { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace match_any

namespace reduce_sync {
__global__ void k(int *out) {
    unsigned t = threadIdx.x, sum = __reduce_add_sync(~0u, t), most = __reduce_max_sync(~0u, t), least = __reduce_min_sync(~0u, t);
    if (t == 0) out[0] = sum, out[1] = most, out[2] = least, out[3] = most;
}
CONSTRUCT(reduce_sync, "496 31 0 31") { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace reduce_sync

namespace shuffle_double {
__global__ void k(double *out) {
    double x = __shfl_sync(~0u, threadIdx.x == 0 ? 1.5 : 0.0, 0);
    if (threadIdx.x < 4) out[threadIdx.x] = x;
}
CONSTRUCT(shuffle_double, "1.5 1.5 1.5 1.5") { return show<double>(4, [&](double *out) { k<<<1, 32>>>(out); }); }
} // namespace shuffle_double

namespace shuffle_down {
__global__ void k(int *out) {
    int sum = threadIdx.x < 4 ? threadIdx.x : 0;
    for (int d = 2; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
    if (threadIdx.x < 4) out[threadIdx.x] = sum;
}
CONSTRUCT(shuffle_down, "6 6 5 3") { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace shuffle_down

namespace shuffle_up_width {
__global__ void k(int *out) {
    int other = __shfl_up_sync(~0u, (int)threadIdx.x, 1, 4);
    if (threadIdx.x < 4) out[threadIdx.x] = other;
}
CONSTRUCT(shuffle_up_width, "0 0 1 2") { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace shuffle_up_width

namespace shuffle_xor {
__global__ void k(int *out) {
    int other = __shfl_xor_sync(~0u, (int)threadIdx.x, 3);
    if (threadIdx.x < 4) out[threadIdx.x] = other;
}
CONSTRUCT(shuffle_xor, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace shuffle_xor

namespace warp_size {
__global__ void k(int *out) { out[threadIdx.x] = warpSize; }
CONSTRUCT(warp_size, "32 32 32 32") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace warp_size
