#include "construct.h"
#include <cuda_awbarrier_primitives.h>
#include <cuda/barrier>
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <cuda/pipeline>
#pragma nv_diag_suppress static_var_with_dynamic_init

namespace awbarrier_primitives {
__global__ void k(int *out) {
    __shared__ __mbarrier_t all;
    __shared__ int tile[8];
    if (threadIdx.x == 0) __mbarrier_init(&all, blockDim.x);
    __syncthreads();
    tile[threadIdx.x] = threadIdx.x;
    __mbarrier_token_t token = __mbarrier_arrive(&all);
    while (!__mbarrier_test_wait(&all, token)) {}
    tile[7 - threadIdx.x] += 10;
    __mbarrier_arrive(&all);
    while (!__mbarrier_test_wait_parity(&all, true)) {} // phase 1
    out[threadIdx.x] = __mbarrier_test_wait_parity(&all, false) ? -1 : tile[7 - threadIdx.x]; // phase 2 is not over
}
CONSTRUCT(awbarrier_primitives, "17 16 15 14 13 12 11 10") { return show<int>(8, [&](int *out) { k<<<1, 8>>>(out); }); }
} // namespace awbarrier_primitives

namespace barrier_arrive_and_wait {
__global__ void k(int *out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> all;
    __shared__ int tile[8];
    if (threadIdx.x == 0) init(&all, blockDim.x);
    __syncthreads();
    tile[threadIdx.x] = threadIdx.x;
    all.arrive_and_wait();
    out[threadIdx.x] = tile[7 - threadIdx.x];
}
CONSTRUCT(barrier_arrive_and_wait, "7 6 5 4 3 2 1 0") { return show<int>(8, [&](int *out) { k<<<1, 8>>>(out); }); }
} // namespace barrier_arrive_and_wait

namespace barrier_copy_of_group {
__global__ void k(int *out, const int *in) {
    __shared__ cuda::barrier<cuda::thread_scope_block> all;
    __shared__ alignas(16) int tile[8];
    auto block = cooperative_groups::this_thread_block();
    if (block.thread_rank() == 0) init(&all, block.size());
    block.sync();
    cuda::memcpy_async(block, tile, in, sizeof(int) * 8, all);
    all.arrive_and_wait();
    out[threadIdx.x] = tile[7 - threadIdx.x];
}
CONSTRUCT(barrier_copy_of_group, "8 7 6 5 4 3 2 1") { return show<int>(8, [&](int *out) { int h[8] = {1, 2, 3, 4, 5, 6, 7, 8}, *in; cudaMalloc(&in, 32); cudaMemcpy(in, h, 32, cudaMemcpyHostToDevice); k<<<1, 8>>>(out, in); cudaFree(in); }); }
} // namespace barrier_copy_of_group

namespace barrier_of_two_warps {
typedef cuda::barrier<cuda::thread_scope_block> block_barrier;
__global__ void k(int *out) { // the first warp produces, the second consumes, four times
    __shared__ block_barrier full, empty;
    __shared__ int item[32];
    if (threadIdx.x == 0) init(&full, blockDim.x), init(&empty, blockDim.x);
    __syncthreads();
    for (int round = 0; round < 4; round++) {
        if (threadIdx.x < 32) {
            item[threadIdx.x] = 2 * round;
            (void)full.arrive();
            empty.arrive_and_wait();
        } else {
            full.arrive_and_wait();
            if (threadIdx.x == 63) out[round] = item[5];
            (void)empty.arrive();
        }
    }
}
CONSTRUCT(barrier_of_two_warps, "0 2 4 6") { return show<int>(4, [&](int *out) { k<<<1, 64>>>(out); }); }
} // namespace barrier_of_two_warps

namespace barrier_split {
namespace cg = cooperative_groups;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;
__global__ void k(int *out) {
    __shared__ block_barrier all;
    __shared__ int sum;
    cg::thread_block block = cg::this_thread_block();
    if (block.thread_rank() == 0) {
        init(&all, block.size());
        sum = 0;
    }
    block.sync();
    atomicAdd(&sum, (int)threadIdx.x);
    block_barrier::arrival_token token = all.arrive();
    int own = 0; // work that needs nobody else
    all.wait(std::move(token));
    out[threadIdx.x] = sum + own;
}
CONSTRUCT(barrier_split, "28 28 28 28 28 28 28 28") { return show<int>(8, [&](int *out) { k<<<1, 8>>>(out); }); }
} // namespace barrier_split

namespace counting_barrier {
__global__ void k(int *out) {
    int t = threadIdx.x, n = __syncthreads_count(t < 2), any = __syncthreads_or(t == 3), all = __syncthreads_and(t == 3);
    if (t == 0) out[0] = n, out[1] = any != 0, out[2] = all != 0, out[3] = n;
}
CONSTRUCT(counting_barrier, "2 1 0 2") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace counting_barrier

namespace syncwarp_orders {
__global__ void k(int *out) {
    __shared__ int tile[32];
    tile[threadIdx.x] = threadIdx.x;
    __syncwarp();
    if (threadIdx.x < 4) out[threadIdx.x] = tile[3 - threadIdx.x];
}
CONSTRUCT(syncwarp_orders, "3 2 1 0") { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace syncwarp_orders

namespace pipeline_copy {
__global__ void k(int *out, const int *in) {
    __shared__ int tile[4];
    __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[threadIdx.x] = tile[3 - threadIdx.x];
}
CONSTRUCT(pipeline_copy, "4 3 2 1") { return show<int>(4, [&](int *out) { int h[4] = {1, 2, 3, 4}, *in; cudaMalloc(&in, 16); cudaMemcpy(in, h, 16, cudaMemcpyHostToDevice); k<<<1, 4>>>(out, in); cudaFree(in); }); }
} // namespace pipeline_copy

namespace pipeline_of_block {
__global__ void k(int *out, const int *in) { // two threads, four batches of two, two stages
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ int tile[2][2];
    auto block = cooperative_groups::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int fetched = 0;
    for (int batch = 0; batch < 4; batch++) {
        for (; fetched < 4 && fetched < batch + 2; fetched++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, tile[fetched % 2], in + 2 * fetched, sizeof(int) * 2, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        out[2 * batch + threadIdx.x] = tile[batch % 2][1 - threadIdx.x];
        pipe.consumer_release();
    }
}
CONSTRUCT(pipeline_of_block, "2 1 4 3 6 5 8 7") { return show<int>(8, [&](int *out) { int h[8] = {1, 2, 3, 4, 5, 6, 7, 8}, *in; cudaMalloc(&in, 32); cudaMemcpy(in, h, 32, cudaMemcpyHostToDevice); k<<<1, 2>>>(out, in); cudaFree(in); }); }
} // namespace pipeline_of_block

namespace pipeline_of_roles {
__global__ void k(int *out, const int *in) { // the first warp copies, the second one uses
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ int tile[2];
    auto block = cooperative_groups::this_thread_block();
    bool produces = threadIdx.x < 32;
    auto role = produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    for (int i = 0; i < 8; i++) {
        if (produces) {
            pipe.producer_acquire();
            if (threadIdx.x == 0) cuda::memcpy_async(&tile[i % 2], &in[i], sizeof(int), pipe);
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            if (threadIdx.x == 40) out[i] = tile[i % 2];
            pipe.consumer_release();
        }
    }
}
CONSTRUCT(pipeline_of_roles, "1 2 3 4 5 6 7 8") { return show<int>(8, [&](int *out) { int h[8] = {1, 2, 3, 4, 5, 6, 7, 8}, *in; cudaMalloc(&in, 32); cudaMemcpy(in, h, 32, cudaMemcpyHostToDevice); k<<<1, 64>>>(out, in); cudaFree(in); }); }
} // namespace pipeline_of_roles

namespace pipeline_of_thread {
__global__ void k(int *out, const int *in) { // each thread copies for itself, one item ahead
    __shared__ int tile[2];
    cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
    const auto one = cuda::aligned_size_t<alignof(int)>(sizeof(int));
    pipe.producer_acquire();
    cuda::memcpy_async(&tile[0], &in[0], one, pipe);
    pipe.producer_commit();
    for (int i = 0; i < 8; i++) {
        if (i + 1 < 8) {
            pipe.producer_acquire();
            cuda::memcpy_async(&tile[(i + 1) % 2], &in[i + 1], one, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        out[i] = tile[i % 2] * tile[i % 2];
        pipe.consumer_release();
    }
}
CONSTRUCT(pipeline_of_thread, "1 4 9 16 25 36 49 64") { return show<int>(8, [&](int *out) { int h[8] = {1, 2, 3, 4, 5, 6, 7, 8}, *in; cudaMalloc(&in, 32); cudaMemcpy(in, h, 32, cudaMemcpyHostToDevice); k<<<1, 1>>>(out, in); cudaFree(in); }); }
} // namespace pipeline_of_thread

namespace pipeline_wait_prior {
__global__ void k(int *out, const int *in) {
    __shared__ int tile[8];
    auto pipe = cuda::make_pipeline();
    for (int i = 0; i < 5; i++) {
        pipe.producer_acquire();
        cuda::memcpy_async(&tile[i], &in[i], sizeof(int), pipe);
        pipe.producer_commit();
    }
    cuda::pipeline_consumer_wait_prior<0>(pipe);
    out[0] = tile[4];
}
CONSTRUCT(pipeline_wait_prior, "5") { return show<int>(1, [&](int *out) { int h[8] = {1, 2, 3, 4, 5, 6, 7, 8}, *in; cudaMalloc(&in, 32); cudaMemcpy(in, h, 32, cudaMemcpyHostToDevice); k<<<1, 1>>>(out, in); cudaFree(in); }); }
} // namespace pipeline_wait_prior
