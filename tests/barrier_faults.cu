/* Planted faults with barriers that lie in shared memory, pipelines and barriers of the grid, and their correct twins: as those
 * of race_faults.cu. */
#include "faults.h"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>

#ifdef __CUDACC__
#pragma nv_diag_suppress static_var_with_dynamic_init
#endif
namespace cg = cooperative_groups;
typedef cuda::barrier<cuda::thread_scope_block> block_barrier;

template <bool CORRECT> __global__ void mbarrier_without_wait(const int *in, int *out) {
    __shared__ block_barrier all;
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    if (t == 0) init(&all, T);
    __syncthreads();
    tile[t] = in[t]; // here
    if (CORRECT)
        all.arrive_and_wait();
    else
        (void)all.arrive();
    out[t] = tile[T - 1 - t]; // here
}
FAULT(mbarrier_without_wait, cudaErrorLaunchFailure, "race on tile[", FIRST(T, in[T - 1 - i]),
      mbarrier_without_wait<CORRECT><<<1, T>>>(in, out))

/* The other threads may come to the barrier before thread 0 has made it one. */
template <bool CORRECT> __global__ void mbarrier_used_before_init(const int *in, int *out) {
    __shared__ block_barrier all;
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    if (t == 0) init(&all, T); // here
    if (CORRECT) __syncthreads();
    tile[t] = in[t];
    all.arrive_and_wait(); // here
    out[t] = tile[T - 1 - t];
}
FAULT(mbarrier_used_before_init, cudaErrorLaunchFailure, "race on all|that no thread has initialised", FIRST(T, in[T - 1 - i]),
      mbarrier_used_before_init<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void mbarrier_never_initialised(const int *in, int *out) {
    __shared__ block_barrier all;
    int t = (int)threadIdx.x;
    if (CORRECT && t == 0) init(&all, T);
    __syncthreads();
    all.arrive_and_wait(); // here
    out[t] = in[t];
}
FAULT(mbarrier_never_initialised, cudaErrorLaunchFailure, "no thread has initialised", FIRST(T, in[i]),
      mbarrier_never_initialised<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void mbarrier_expects_too_many(const int *in, int *out) {
    __shared__ block_barrier all;
    int t = (int)threadIdx.x;
    if (t == 0) init(&all, CORRECT ? T : T + 1);
    __syncthreads();
    all.arrive_and_wait(); // here
    out[t] = in[t];
}
FAULT(mbarrier_expects_too_many, cudaErrorLaunchFailure, "does the barrier expect more of them?", FIRST(T, in[i]),
      mbarrier_expects_too_many<CORRECT><<<1, T>>>(in, out))

/* The last thread to arrive opens the next phase, and waits for it alone. */
template <bool CORRECT> __global__ void mbarrier_expects_too_few(const int *in, int *out) {
    __shared__ block_barrier all;
    int t = (int)threadIdx.x;
    if (t == 0) init(&all, CORRECT ? T : T - 1);
    __syncthreads();
    all.arrive_and_wait(); // here
    out[t] = in[t];
}
FAULT(mbarrier_expects_too_few, cudaErrorLaunchFailure, "1 threads wait at barrier::wait()", FIRST(T, in[i]),
      mbarrier_expects_too_few<CORRECT><<<1, T>>>(in, out))

/* Between the arrival and the wait, others still read. */
template <bool CORRECT> __global__ void mbarrier_write_before_wait(const int *in, int *out) {
    __shared__ block_barrier all;
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    if (t == 0) init(&all, T);
    tile[t] = in[t];
    __syncthreads();
    int mirrored = tile[T - 1 - t]; // here
    block_barrier::arrival_token token = all.arrive();
    if (CORRECT) all.wait(std::move(token));
    tile[t] = 2 * mirrored; // here
    if (!CORRECT) all.wait(std::move(token));
    __syncthreads();
    out[t] = tile[t];
}
FAULT(mbarrier_write_before_wait, cudaErrorLaunchFailure, "race on tile[", FIRST(T, 2 * in[T - 1 - i]),
      mbarrier_write_before_wait<CORRECT><<<1, T>>>(in, out))

/* Who waits for `all` learns what was before the arrivals there, not what came after. */
template <bool CORRECT> __global__ void mbarrier_read_after_arrival(const int *in, int *out) {
    __shared__ block_barrier all, read;
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    if (t == 0) init(&all, T), init(&read, T);
    tile[t] = in[t];
    __syncthreads();
    auto arrived = all.arrive();
    int value = tile[T - 1 - t]; // here
    auto done = read.arrive();
    all.wait(std::move(arrived));
    if (CORRECT) read.wait(std::move(done));
    tile[t] = 2 * value; // here
    __syncthreads();
    out[t] = tile[t];
}
FAULT(mbarrier_read_after_arrival, cudaErrorLaunchFailure, "race on tile[", FIRST(T, 2 * in[T - 1 - i]),
      mbarrier_read_after_arrival<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void mbarrier_copy_not_awaited(const int *in, int *out) {
    __shared__ block_barrier all;
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    if (t == 0) init(&all, T);
    __syncthreads();
    cuda::memcpy_async(&tile[t], &in[t], sizeof(int), all); // here
    if (CORRECT) all.arrive_and_wait();
    out[t] = tile[t]; // here
}
FAULT(mbarrier_copy_not_awaited, cudaErrorLaunchFailure, "is under way", FIRST(T, in[i]),
      mbarrier_copy_not_awaited<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void pipeline_without_consumer_wait(const int *in, int *out) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    auto pipe = cuda::make_pipeline();
    pipe.producer_acquire();
    cuda::memcpy_async(&tile[t], &in[t], sizeof(int), pipe); // here
    pipe.producer_commit();
    if (CORRECT) pipe.consumer_wait();
    out[t] = tile[t]; // here
    pipe.consumer_release();
}
FAULT(pipeline_without_consumer_wait, cudaErrorLaunchFailure, "is under way", FIRST(T, in[i]),
      pipeline_without_consumer_wait<CORRECT><<<1, T>>>(in, out))

/* A pipeline of one thread orders nothing between threads. */
template <bool CORRECT> __global__ void pipeline_without_barrier(const int *in, int *out) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    auto pipe = cuda::make_pipeline();
    pipe.producer_acquire();
    cuda::memcpy_async(&tile[t], &in[t], sizeof(int), pipe);
    pipe.producer_commit();
    pipe.consumer_wait();
    if (CORRECT) __syncthreads();
    out[t] = tile[T - 1 - t]; // here
    pipe.consumer_release();
}
FAULT(pipeline_without_barrier, cudaErrorLaunchFailure, "tile[", FIRST(T, in[T - 1 - i]),
      pipeline_without_barrier<CORRECT><<<1, T>>>(in, out))

/* The stage is given back while it is still read. */
template <bool CORRECT> __global__ void pipeline_released_too_early(const int *in, int *out) {
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ int tile[2][T];
    int t = (int)threadIdx.x, sum = 0, fetched = 0;
    cg::thread_block block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    for (int batch = 0; batch < 4; batch++) {
        for (; fetched < 4 && fetched < batch + 2; fetched++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, tile[fetched % 2], in + T * fetched, sizeof tile[0], pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        if (!CORRECT) pipe.consumer_release();
        sum += tile[batch % 2][T - 1 - t]; // here
        if (CORRECT) pipe.consumer_release();
    }
    out[t] = sum;
}
FAULT(pipeline_released_too_early, cudaErrorLaunchFailure, "tile[",
      FIRST(T, in[T - 1 - i] + in[2 * T - 1 - i] + in[3 * T - 1 - i] + in[4 * T - 1 - i]),
      pipeline_released_too_early<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void group_copy_without_wait(const int *in, int *out) {
    __shared__ int tile[T];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, tile, in, sizeof tile); // here
    if (CORRECT) cg::wait(block);
    out[threadIdx.x] = tile[threadIdx.x]; // here
}
FAULT(group_copy_without_wait, cudaErrorLaunchFailure, "is under way", FIRST(T, in[i]),
      group_copy_without_wait<CORRECT><<<1, T>>>(in, out))

template <typename Kernel> static void launch_cooperative(Kernel kernel, int blocks, const int *in, int *out) {
    void *arguments[] = {&in, &out};
    cudaLaunchCooperativeKernel(kernel, dim3(blocks), dim3(T), arguments, 0, 0);
}

template <bool CORRECT> __global__ void grid_without_sync(const int *in, int *out) {
    int t = (int)(blockIdx.x * blockDim.x + threadIdx.x), last = (int)(gridDim.x * blockDim.x) - 1;
    out[t] = in[t]; // here
    if (CORRECT) cg::this_grid().sync();
    int mirrored = out[last - t]; // here
    cg::this_grid().sync();
    out[t] = mirrored;
}
FAULT(grid_without_sync, cudaErrorLaunchFailure, "race on", FIRST(2 * T, in[2 * T - 1 - i]),
      launch_cooperative(grid_without_sync<CORRECT>, 2, in, out))

template <bool CORRECT> __global__ void grid_sync_left_out_by_a_block(const int *in, int *out) {
    if (!CORRECT && blockIdx.x == 1) return;
    out[blockIdx.x * T + threadIdx.x] = in[threadIdx.x];
    cg::this_grid().sync(); // here
}
FAULT(grid_sync_left_out_by_a_block, cudaErrorLaunchFailure, "1 of 2 blocks wait", FIRST(2 * T, in[i % T]),
      launch_cooperative(grid_sync_left_out_by_a_block<CORRECT>, 2, in, out))

template <bool CORRECT> __global__ void grid_sync_in_plain_launch(const int *in, int *out) {
    out[blockIdx.x * T + threadIdx.x] = in[threadIdx.x];
    cg::this_grid().sync(); // here
}
FAULT(grid_sync_in_plain_launch, cudaErrorLaunchFailure, "not launched by cudaLaunchCooperativeKernel()",
      FIRST(2 * T, in[i % T]), if (CORRECT) launch_cooperative(grid_sync_in_plain_launch<CORRECT>, 2, in, out);
      else grid_sync_in_plain_launch<CORRECT><<<2, T>>>(in, out))
