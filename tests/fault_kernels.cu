/* A fault and its twin are one template: with CORRECT it has what it needs. The lines that a report of the fault must
 * name end in "// here"; test_faults.c reads them from this file. */
#include "fault_kernels.h"

#include <cassert>
#include <cstdio>
#include <cstring>
#include <cuda_pipeline.h>

#include "ptx.cuh"
extern "C" {
#include "simulated.h"
}

enum { T = 128 }; /* threads of a block, where not said otherwise */

__device__ static int global_thread() { return (int)(blockIdx.x * blockDim.x + threadIdx.x); }

/* ---- barriers of a block ----------------------------------------------------------------------------------------- */

template <bool CORRECT> __global__ void store_then_read_static(const int *in, int *out) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    tile[t] = in[t]; // here
    if (CORRECT) __syncthreads();
    out[t] = tile[T - 1 - t]; // here
}
FAULT(store_then_read_static, cudaErrorLaunchFailure, "race on tile[", FIRST(T, in[T - 1 - i]),
      store_then_read_static<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void store_then_read_dynamic(const int *in, int *out) {
    extern __shared__ int dynamic[];
    int t = (int)threadIdx.x;
    dynamic[t] = in[t]; // here
    if (CORRECT) __syncthreads();
    out[t] = dynamic[T - 1 - t]; // here
}
FAULT(store_then_read_dynamic, cudaErrorLaunchFailure, "race on byte", FIRST(T, in[T - 1 - i]),
      store_then_read_dynamic<CORRECT><<<1, T, T * sizeof(int)>>>(in, out))

template <bool CORRECT> __global__ void read_then_overwrite_static(const int *in, int *out) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    tile[t] = in[t];
    __syncthreads();
    int mirrored = tile[T - 1 - t]; // here
    if (CORRECT) __syncthreads();
    tile[t] = 2 * mirrored; // here
    __syncthreads();
    out[t] = tile[T - 1 - t];
}
FAULT(read_then_overwrite_static, cudaErrorLaunchFailure, "race on tile[", FIRST(T, 2 * in[i]),
      read_then_overwrite_static<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void read_then_overwrite_dynamic(const int *in, int *out) {
    extern __shared__ int dynamic[];
    int t = (int)threadIdx.x;
    dynamic[t] = in[t];
    __syncthreads();
    int mirrored = dynamic[T - 1 - t]; // here
    if (CORRECT) __syncthreads();
    dynamic[t] = 2 * mirrored; // here
    __syncthreads();
    out[t] = dynamic[T - 1 - t];
}
FAULT(read_then_overwrite_dynamic, cudaErrorLaunchFailure, "race on byte", FIRST(T, 2 * in[i]),
      read_then_overwrite_dynamic<CORRECT><<<1, T, T * sizeof(int)>>>(in, out))

template <bool CORRECT> __global__ void tile_reused_in_loop_static(const int *in, int *out) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x, sum = 0;
    for (int k = 0; k < 4; k++) {
        tile[t] = in[k * T + t]; // here
        __syncthreads();
        sum += tile[T - 1 - t]; // here
        if (CORRECT) __syncthreads();
    }
    out[t] = sum;
}
FAULT(tile_reused_in_loop_static, cudaErrorLaunchFailure, "race on tile[",
      FIRST(T, in[T - 1 - i] + in[2 * T - 1 - i] + in[3 * T - 1 - i] + in[4 * T - 1 - i]),
      tile_reused_in_loop_static<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void tile_reused_in_loop_dynamic(const int *in, int *out) {
    extern __shared__ int dynamic[];
    int t = (int)threadIdx.x, sum = 0;
    for (int k = 0; k < 4; k++) {
        dynamic[t] = in[k * T + t]; // here
        __syncthreads();
        sum += dynamic[T - 1 - t]; // here
        if (CORRECT) __syncthreads();
    }
    out[t] = sum;
}
FAULT(tile_reused_in_loop_dynamic, cudaErrorLaunchFailure, "race on byte",
      FIRST(T, in[T - 1 - i] + in[2 * T - 1 - i] + in[3 * T - 1 - i] + in[4 * T - 1 - i]),
      tile_reused_in_loop_dynamic<CORRECT><<<1, T, T * sizeof(int)>>>(in, out))

template <bool CORRECT> __global__ void transpose_without_barrier(const int *in, int *out) {
    __shared__ int tile[16][17];
    int x = (int)threadIdx.x, y = (int)threadIdx.y;
    tile[y][x] = in[16 * y + x]; // here
    if (CORRECT) __syncthreads();
    out[16 * y + x] = tile[x][y]; // here
}
FAULT(transpose_without_barrier, cudaErrorLaunchFailure, "race on tile[", FIRST(256, in[i % 16 * 16 + i / 16]),
      transpose_without_barrier<CORRECT><<<1, dim3(16, 16)>>>(in, out))

/* One barrier a round is enough with two tiles, none is not. */
template <bool CORRECT> __global__ void double_buffer_without_barrier(const int *in, int *out) {
    __shared__ int tiles[2][T];
    int t = (int)threadIdx.x, sum = 0;
    tiles[0][t] = in[t];
    __syncthreads();
    for (int k = 0; k < 4; k++) {
        sum += tiles[k % 2][T - 1 - t]; // here
        if (k < 3) tiles[(k + 1) % 2][t] = in[(k + 1) * T + t]; // here
        if (CORRECT) __syncthreads();
    }
    out[t] = sum;
}
FAULT(double_buffer_without_barrier, cudaErrorLaunchFailure, "race on tiles[",
      FIRST(T, in[T - 1 - i] + in[2 * T - 1 - i] + in[3 * T - 1 - i] + in[4 * T - 1 - i]),
      double_buffer_without_barrier<CORRECT><<<1, T>>>(in, out))

/* ---- lanes of one warp ------------------------------------------------------------------------------------------- */

template <bool CORRECT> __global__ void lanes_store_then_read(const int *in, int *out) {
    __shared__ int row[32];
    int lane = (int)threadIdx.x;
    row[lane] = in[lane]; // here
    if (CORRECT) __syncwarp();
    out[lane] = row[31 - lane]; // here
}
FAULT(lanes_store_then_read, cudaErrorLaunchFailure, "race on row[", FIRST(32, in[31 - i]),
      lanes_store_then_read<CORRECT><<<1, 32>>>(in, out))

template <bool CORRECT> __global__ void lanes_read_then_overwrite(const int *in, int *out) {
    __shared__ int row[32];
    int lane = (int)threadIdx.x;
    row[lane] = in[lane];
    __syncwarp();
    int next = row[(lane + 1) % 32]; // here
    if (CORRECT) __syncwarp();
    row[lane] = next; // here
    __syncwarp();
    out[lane] = row[(lane + 1) % 32];
}
FAULT(lanes_read_then_overwrite, cudaErrorLaunchFailure, "race on row[", FIRST(32, in[(i + 2) % 32]),
      lanes_read_then_overwrite<CORRECT><<<1, 32>>>(in, out))

template <bool CORRECT> __global__ void lane_broadcast(const int *in, int *out) {
    __shared__ int of_warp[T / 32];
    int t = (int)threadIdx.x;
    if (t % 32 == 0) of_warp[t / 32] = in[t]; // here
    if (CORRECT) __syncwarp();
    out[t] = of_warp[t / 32]; // here
}
FAULT(lane_broadcast, cudaErrorLaunchFailure, "race on of_warp[", FIRST(T, in[i / 32 * 32]),
      lane_broadcast<CORRECT><<<1, T>>>(in, out))

/* The lower half waits for itself; the upper half's values are not among what it may read. */
template <bool CORRECT> __global__ void half_warp_without_syncwarp(const int *in, int *out) {
    __shared__ int row[32];
    int lane = (int)threadIdx.x;
    row[lane] = in[lane]; // here
    __syncwarp(lane < 16 ? 0x0000ffffu : 0xffff0000u);
    if (CORRECT) __syncwarp();
    out[lane] = row[31 - lane]; // here
}
FAULT(half_warp_without_syncwarp, cudaErrorLaunchFailure, "race on row[", FIRST(32, in[31 - i]),
      half_warp_without_syncwarp<CORRECT><<<1, 32>>>(in, out))

/* One of the readers overwrites what it has read; the others may be slower than it. */
template <bool CORRECT> __global__ void reader_of_lanes_overwrites(const int *in, int *out) {
    __shared__ int cell;
    int lane = (int)threadIdx.x;
    if (lane == 0) cell = in[5];
    __syncwarp();
    out[lane] = in[lane] - cell; // here
    if (CORRECT) __syncwarp();
    if (lane == 30) cell = 7; // here
    __syncwarp();
    out[32 + lane] = cell;
}
FAULT(reader_of_lanes_overwrites, cudaErrorLaunchFailure, "race on cell", FIRST(64, i < 32 ? in[i] - in[5] : 7),
      reader_of_lanes_overwrites<CORRECT><<<1, 32>>>(in, out))

/* The same with a single reader in another warp. */
template <bool CORRECT> __global__ void reader_of_warps_overwrites(const int *in, int *out) {
    __shared__ int cell;
    int t = (int)threadIdx.x;
    if (t == 0) cell = in[5];
    __syncthreads();
    if (t == 0 || t == T - 1) out[t] = in[t] - cell; // here
    if (CORRECT) __syncthreads();
    if (t == 0) cell = 7; // here
    __syncthreads();
    out[T + t] = cell;
}
FAULT(reader_of_warps_overwrites, cudaErrorLaunchFailure, "race on cell",
      FIRST(2 * T, i >= T ? 7 : i == 0 || i == T - 1 ? in[i] - in[5] : 0),
      reader_of_warps_overwrites<CORRECT><<<1, T>>>(in, out))

/* The thread that overwrites has read, too, in another line than the others: this line is not theirs. */
template <bool CORRECT> __global__ void reader_overwrites_what_it_read(const int *in, int *out) {
    __shared__ int cell;
    int t = (int)threadIdx.x;
    if (t == 0) cell = in[5];
    __syncthreads();
    if (t == 0) out[0] = in[0] - cell;
    if (t == 0 && !CORRECT) cell = 7; // here
    if (t > 0) out[t] = in[t] - cell; // here
}
FAULT(reader_overwrites_what_it_read, cudaErrorLaunchFailure, "race on cell", FIRST(T, in[i] - in[5]),
      reader_overwrites_what_it_read<CORRECT><<<1, T>>>(in, out))

/* ---- two writers, or a writer and a reader ----------------------------------------------------------------------- */

template <bool CORRECT> __global__ void lanes_write_write(const int *in, int *out) {
    __shared__ int cell;
    int t = (int)threadIdx.x;
    if (t == 3) cell = in[3]; // here
    if (t == (CORRECT ? 3 : 5)) cell = in[5]; // here
    __syncthreads();
    out[t] = cell;
}
FAULT(lanes_write_write, cudaErrorLaunchFailure, "race on cell", FIRST(32, in[5]),
      lanes_write_write<CORRECT><<<1, 32>>>(in, out))

template <bool CORRECT> __global__ void warps_write_write(const int *in, int *out) {
    __shared__ int cell;
    int t = (int)threadIdx.x;
    if (t == 3) cell = in[3]; // here
    if (t == (CORRECT ? 3 : 37)) cell = in[5]; // here
    __syncthreads();
    out[t] = cell;
}
FAULT(warps_write_write, cudaErrorLaunchFailure, "a __syncthreads() is missing", FIRST(T, in[5]),
      warps_write_write<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void warps_write_read_global(const int *in, int *out) {
    int t = (int)threadIdx.x;
    out[t] = in[t]; // here
    if (CORRECT) __syncthreads();
    out[T + t] = out[(t + 32) % T]; // here
}
FAULT(warps_write_read_global, cudaErrorLaunchFailure, "a __syncthreads() is missing",
      FIRST(2 * T, i < T ? in[i] : in[(i - T + 32) % T]), warps_write_read_global<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void warps_read_write_global(const int *in, int *out) {
    int t = (int)threadIdx.x;
    int other = out[(t + 32) % T]; // here
    if (CORRECT) __syncthreads();
    out[t] = other + in[t]; // here
}
FAULT(warps_read_write_global, cudaErrorLaunchFailure, "a __syncthreads() is missing", FIRST(T, in[i]),
      warps_read_write_global<CORRECT><<<1, T>>>(in, out))

/* Blocks of 64 threads whose parts overlap by one element. */
template <bool CORRECT> __global__ void blocks_write_write(const int *in, int *out) {
    int i = (int)blockIdx.x * (CORRECT ? 64 : 63) + (int)threadIdx.x;
    out[i] = in[i]; // here
}
FAULT(blocks_write_write, cudaErrorLaunchFailure, "blocks run in any order", FIRST(256, in[i]),
      blocks_write_write<CORRECT><<<4, 64>>>(in, out))

/* Two phases in one launch; the twin takes two launches. */
template <bool CORRECT> __global__ void blocks_write_read(const int *in, int *out, bool first, bool second) {
    int i = global_thread();
    if (first) out[i] = in[i]; // here
    if (second) out[256 + i] = out[(i + 64) % 256]; // here
}
FAULT(blocks_write_read, cudaErrorLaunchFailure, "blocks run in any order",
      FIRST(512, i < 256 ? in[i] : in[(i - 256 + 64) % 256]),
      if (CORRECT) blocks_write_read<CORRECT><<<4, 64>>>(in, out, true, false);
      blocks_write_read<CORRECT><<<4, 64>>>(in, out, !CORRECT, true))

/* Moves all elements down by one: in place, a block overwrites what the block before it is to read. */
template <bool CORRECT> __global__ void blocks_read_write(int *values, int *moved) {
    int i = global_thread();
    int next = values[i + 1]; // here
    __syncthreads();
    (CORRECT ? moved : values)[i] = next; // here
}
FAULT(blocks_read_write, cudaErrorLaunchFailure, "blocks run in any order", FIRST(256, in[i + 1]),
      blocks_read_write<CORRECT><<<4, 64>>>(const_cast<int *>(in), out))

/* ---- atomics ----------------------------------------------------------------------------------------------------- */

template <bool CORRECT> __global__ void count_without_atomic_shared(const int *in, int *out) {
    __shared__ int bins[8];
    int t = (int)threadIdx.x;
    if (t < 8) bins[t] = 0;
    __syncthreads();
    if (CORRECT) atomicAdd(&bins[in[t] & 7], 1);
    else bins[in[t] & 7]++; // here
    __syncthreads();
    if (t < 8) out[t] = bins[t];
}
static int count_of(const int *in, int bin, int count) {
    int found = 0;
    for (int i = 0; i < count; i++) found += (in[i] & 7) == bin;
    return found;
}
FAULT(count_without_atomic_shared, cudaErrorLaunchFailure, "race on bins[", FIRST(8, count_of(in, i, T)),
      count_without_atomic_shared<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void count_without_atomic_global(const int *in, int *out) {
    int i = global_thread();
    if (CORRECT) atomicAdd(&out[in[i] & 7], 1);
    else out[in[i] & 7] = out[in[i] & 7] + 1; // here
}
FAULT(count_without_atomic_global, cudaErrorLaunchFailure, "blocks run in any order", FIRST(8, count_of(in, i, 16)),
      count_without_atomic_global<CORRECT><<<16, 1>>>(in, out))

static int sum_of(const int *in, int count) {
    int sum = 0;
    for (int i = 0; i < count; i++) sum += in[i];
    return sum;
}

template <bool CORRECT> __global__ void atomic_against_plain_read(const int *in, int *out) {
    __shared__ int total;
    int t = (int)threadIdx.x;
    if (t == 0) total = 0;
    __syncthreads();
    atomicAdd(&total, in[t]); // here
    if (CORRECT) __syncthreads();
    out[t] = total; // here
}
FAULT(atomic_against_plain_read, cudaErrorLaunchFailure, "race on total", FIRST(T, sum_of(in, T)),
      atomic_against_plain_read<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void atomic_against_plain_store(const int *in, int *out) {
    __shared__ int total;
    int t = (int)threadIdx.x;
    if (t == 0) total = 0; // here
    if (CORRECT) __syncthreads();
    atomicAdd(&total, in[t]); // here
    __syncthreads();
    out[t] = total;
}
FAULT(atomic_against_plain_store, cudaErrorLaunchFailure, "race on total", FIRST(T, sum_of(in, T)),
      atomic_against_plain_store<CORRECT><<<1, T>>>(in, out))

/* ---- reductions, flags, stencils --------------------------------------------------------------------------------- */

template <bool CORRECT> __global__ void tree_reduction_without_barrier(const int *in, int *out) {
    __shared__ int sums[T];
    int t = (int)threadIdx.x;
    sums[t] = in[t];
    __syncthreads();
    for (int stride = T / 2; stride > 0; stride /= 2) {
        if (t < stride) sums[t] += sums[t + stride]; // here
        if (CORRECT) __syncthreads();
    }
    if (t == 0) out[0] = sums[0];
}
FAULT(tree_reduction_without_barrier, cudaErrorLaunchFailure, "race on sums[", FIRST(1, sum_of(in, T)),
      tree_reduction_without_barrier<CORRECT><<<1, T>>>(in, out))

__device__ static int warp_sum(int value) {
    for (int bit = 16; bit > 0; bit /= 2) value += __shfl_xor_sync(0xffffffffu, value, bit);
    return value;
}

template <bool CORRECT> __global__ void reduction_without_first_barrier(const int *in, int *out) {
    __shared__ int of_warp[T / 32];
    int t = (int)threadIdx.x, sum = warp_sum(in[t]), total = 0;
    if (t % 32 == 0) of_warp[t / 32] = sum; // here
    if (CORRECT) __syncthreads();
    for (int w = 0; w < T / 32; w++) total += of_warp[w]; // here
    out[t] = total;
}
FAULT(reduction_without_first_barrier, cudaErrorLaunchFailure, "race on of_warp[", FIRST(T, sum_of(in, T)),
      reduction_without_first_barrier<CORRECT><<<1, T>>>(in, out))

/* The next sum overwrites what a slow warp of the last one has still to read. */
template <bool CORRECT> __global__ void reduction_without_second_barrier(const int *in, int *out) {
    __shared__ int of_warp[T / 32];
    int t = (int)threadIdx.x;
    for (int k = 0; k < 2; k++) {
        int sum = warp_sum(in[k * T + t]), total = 0;
        if (t % 32 == 0) of_warp[t / 32] = sum; // here
        __syncthreads();
        for (int w = 0; w < T / 32; w++) total += of_warp[w]; // here
        if (CORRECT) __syncthreads();
        out[k * T + t] = total;
    }
}
FAULT(reduction_without_second_barrier, cudaErrorLaunchFailure, "race on of_warp[",
      FIRST(2 * T, sum_of(in + i / T * T, T)), reduction_without_second_barrier<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void flag_without_barrier(const int *in, int *out) {
    __shared__ int pivot;
    int t = (int)threadIdx.x;
    if (t == 0) pivot = in[5]; // here
    if (CORRECT) __syncthreads();
    out[t] = in[t] - pivot; // here
}
FAULT(flag_without_barrier, cudaErrorLaunchFailure, "race on pivot", FIRST(T, in[i] - in[5]),
      flag_without_barrier<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void flag_of_last_thread_without_barrier(const int *in, int *out) {
    __shared__ int pivot;
    int t = (int)threadIdx.x;
    if (t == T - 1) pivot = in[5]; // here
    if (CORRECT) __syncthreads();
    out[t] = in[t] - pivot; // here
}
FAULT(flag_of_last_thread_without_barrier, cudaErrorLaunchFailure, "race on pivot", FIRST(T, in[i] - in[5]),
      flag_of_last_thread_without_barrier<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void stencil_without_barrier(const int *in, int *out) {
    __shared__ int row[T];
    int t = (int)threadIdx.x, left = t > 0 ? t - 1 : 0, right = t < T - 1 ? t + 1 : T - 1;
    row[t] = in[t]; // here
    if (CORRECT) __syncthreads();
    out[t] = row[left] + 2 * row[t] + row[right]; // here
}
FAULT(stencil_without_barrier, cudaErrorLaunchFailure, "race on row[",
      FIRST(T, in[i > 0 ? i - 1 : 0] + 2 * in[i] + in[i < T - 1 ? i + 1 : T - 1]),
      stencil_without_barrier<CORRECT><<<1, T>>>(in, out))

/* ---- outside of an array ----------------------------------------------------------------------------------------- */

template <bool CORRECT> __global__ void tail_read_global(const int *in, int *out, int n) {
    int i = global_thread();
    if (i < n - (CORRECT ? 1 : 0)) out[i] = in[i + 1] - in[i]; // here
}
FAULT(tail_read_global, cudaErrorIllegalAddress, "read of 4 bytes out of bounds",
      FIRST(ELEMENTS - 1, in[i + 1] - in[i]), tail_read_global<CORRECT><<<8, T>>>(in, out, ELEMENTS))

template <bool CORRECT> __global__ void tail_write_global(int *out, int n) {
    int i = global_thread();
    if (CORRECT ? i < n : i <= n) out[i] = 7 * i; // here
}
FAULT(tail_write_global, cudaErrorIllegalAddress, "write of 4 bytes out of bounds", FIRST(ELEMENTS, 7 * i), (void)in;
      tail_write_global<CORRECT><<<8, T>>>(out, ELEMENTS))

template <bool CORRECT> __global__ void tail_read_shared(const int *in, int *out) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    tile[t] = in[t];
    __syncthreads();
    if (t < T - (CORRECT ? 1 : 0)) out[t] = tile[t + 1] - in[t]; // here
}
FAULT(tail_read_shared, cudaErrorIllegalAddress, "index 128 is out of bounds", FIRST(T - 1, in[i + 1] - in[i]),
      tail_read_shared<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void tail_write_shared(const int *in, int *out) {
    __shared__ int tile[CORRECT ? T + 1 : T];
    int t = (int)threadIdx.x;
    if (t == 0) tile[0] = 0;
    tile[t + 1] = in[t]; // here
    __syncthreads();
    out[t] = tile[t];
}
FAULT(tail_write_shared, cudaErrorIllegalAddress, "index 128 is out of bounds", FIRST(T, i > 0 ? in[i - 1] : 0),
      tail_write_shared<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void tail_read_dynamic(const int *in, int *out) {
    extern __shared__ int dynamic[];
    int t = (int)threadIdx.x;
    dynamic[t] = in[t];
    __syncthreads();
    if (t < T - (CORRECT ? 1 : 0)) out[t] = dynamic[t + 1] - in[t]; // here
}
FAULT(tail_read_dynamic, cudaErrorIllegalAddress, "512 bytes: the third launch argument",
      FIRST(T - 1, in[i + 1] - in[i]), tail_read_dynamic<CORRECT><<<1, T, T * sizeof(int)>>>(in, out))

template <bool CORRECT> __global__ void negative_index_global(const int *in, int *out, int n) {
    int i = global_thread();
    if (i >= (CORRECT ? 1 : 0) && i < n) out[i] = in[i] - in[i - 1]; // here
}
FAULT(negative_index_global, cudaErrorIllegalAddress, "4 bytes before the start",
      FIRST(ELEMENTS, i > 0 ? in[i] - in[i - 1] : 0), negative_index_global<CORRECT><<<8, T>>>(in, out, ELEMENTS))

template <bool CORRECT> __global__ void negative_index_shared(const int *in, int *out) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    tile[t] = in[t];
    __syncthreads();
    if (t >= (CORRECT ? 1 : 0)) out[t] = in[t] - tile[t - 1]; // here
}
FAULT(negative_index_shared, cudaErrorIllegalAddress, "index -1 is out of bounds",
      FIRST(T, i > 0 ? in[i] - in[i - 1] : 0), negative_index_shared<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void wrong_row_stride(const int *in, int *out) {
    int row = (int)blockIdx.x, column = (int)threadIdx.x;
    out[100 * row + column] = in[(CORRECT ? 100 : 101) * row + column]; // here
}
FAULT(wrong_row_stride, cudaErrorIllegalAddress, "read of 4 bytes out of bounds", FIRST(ELEMENTS, in[i]),
      wrong_row_stride<CORRECT><<<10, 100>>>(in, out))

template <bool CORRECT> __global__ void atomic_past_the_end(const int *in, int *out, int n) {
    int i = global_thread();
    if (CORRECT ? i < n : i <= n) atomicAdd(&out[i], i < n ? in[i] : 1); // here
}
FAULT(atomic_past_the_end, cudaErrorIllegalAddress, "atomic operation of 4 bytes out of bounds", FIRST(ELEMENTS, in[i]),
      atomic_past_the_end<CORRECT><<<8, T>>>(in, out, ELEMENTS))

/* What a message counts in: the width of the access, or what the allocation was named with; an array's own elements. */
template <bool CORRECT> __global__ void shorts_past_the_end(const short *in, int *out, int n) {
    int i = global_thread();
    if (i < n) out[i] = in[2 * i + (CORRECT ? 0 : 2)]; // here
}
FAULT(shorts_past_the_end, cudaErrorIllegalAddress, "has 4000 bytes: element 2000, counted in 2-byte elements",
      FIRST(ELEMENTS, (short)in[i]), shorts_past_the_end<CORRECT><<<8, T>>>((const short *)in, out, ELEMENTS))

template <bool CORRECT> __global__ void named_shorts_past_the_end(const short *in, int *out, int n) {
    int i = global_thread();
    if (i < n) out[i] = *(const int *)(in + 2 * i + (CORRECT ? 0 : 2)); // here
}
FAULT(named_shorts_past_the_end, cudaErrorIllegalAddress, "byte 4000 of shorts, which has 4000 bytes: element 2000, counted in 2-byte elements",
      FIRST(ELEMENTS, in[i]), if (simt_name_memory != nullptr) simt_name_memory(in, "shorts", sizeof(short), 1);
      named_shorts_past_the_end<CORRECT><<<8, T>>>((const short *)in, out, ELEMENTS))

template <bool CORRECT> __global__ void named_shorts_before_the_start(const short *in, int *out, int n) {
    int i = global_thread();
    if (i < n) out[i] = i == 0 ? in[CORRECT ? 0 : -3] : in[2 * i]; // here
}
FAULT(named_shorts_before_the_start, cudaErrorIllegalAddress, "6 bytes before the start of shorts, which has 4000 bytes: element -3, counted in 2-byte",
      FIRST(ELEMENTS, (short)in[i]), if (simt_name_memory != nullptr) simt_name_memory(in, "shorts", sizeof(short), 1);
      named_shorts_before_the_start<CORRECT><<<8, T>>>((const short *)in, out, ELEMENTS))

template <bool CORRECT> __global__ void race_on_named_short(const int *in, short *out) {
    int t = (int)threadIdx.x;
    if (t % 64 == 37) out[CORRECT ? t : 37] = (short)in[t]; // here
}
FAULT(race_on_named_short, cudaErrorLaunchFailure, "race on shorts[37], counted in 2-byte elements",
      FIRST(T, i == 18 || i == 50 ? (int)((unsigned)in[2 * i + 1] << 16) : 0),
      if (simt_name_memory != nullptr) simt_name_memory(out, "shorts", sizeof(short), 0);
      race_on_named_short<CORRECT><<<1, T>>>(in, (short *)out))

template <bool CORRECT> __global__ void pointer_past_a_tile(const int *in, int *out) {
    __shared__ int tile[4][32];
    int t = (int)threadIdx.x, *first = tile[0];
    first[t] = in[t];
    __syncthreads();
    if (t < T - (CORRECT ? 1 : 0)) out[t] = first[t + 1] - in[t]; // here
}
FAULT(pointer_past_a_tile, cudaErrorIllegalAddress, "1 element past the end of the __shared__ array tile[4][32] of 512 bytes",
      FIRST(T - 1, in[i + 1] - in[i]), pointer_past_a_tile<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void pointer_before_a_tile(const int *in, int *out) {
    __shared__ int tile[4][32];
    int t = (int)threadIdx.x, *first = tile[0];
    first[t] = in[t];
    __syncthreads();
    if (t >= (CORRECT ? 1 : 0)) out[t] = in[t] - first[t - 1]; // here
}
FAULT(pointer_before_a_tile, cudaErrorIllegalAddress, "bounds: 1 element before the start of the __shared__ array tile[4][32]",
      FIRST(T, i > 0 ? in[i] - in[i - 1] : 0), pointer_before_a_tile<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void dynamic_beside_static(const int *in, int *out) {
    extern __shared__ int dynamic[];
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    tile[t] = 1;
    dynamic[t] = in[t]; // here
    if (CORRECT) __syncthreads();
    out[t] = tile[t] + dynamic[T - 1 - t]; // here
}
FAULT(dynamic_beside_static, cudaErrorLaunchFailure, "of the block's dynamic shared memory (512 bytes: the third launch argument): this",
      FIRST(T, 1 + in[T - 1 - i]), dynamic_beside_static<CORRECT><<<1, T, T * sizeof(int)>>>(in, out))

template <bool CORRECT> __global__ void cube_without_barrier(const int *in, int *out) {
    __shared__ short cube[2][4][T];
    int t = (int)threadIdx.x;
    cube[1][2][t] = (short)in[t]; // here
    if (CORRECT) __syncthreads();
    out[t] = cube[1][2][T - 1 - t]; // here
}
FAULT(cube_without_barrier, cudaErrorLaunchFailure, "race on cube[1][2][", FIRST(T, (short)in[T - 1 - i]),
      cube_without_barrier<CORRECT><<<1, T>>>(in, out))

/* ---- alignment --------------------------------------------------------------------------------------------------- */

template <bool CORRECT> __global__ void misaligned_float4_load(const float *in, float *out) {
    int t = (int)threadIdx.x;
    float4 four = *reinterpret_cast<const float4 *>(in + 4 * t + (CORRECT ? 0 : 1)); // here
    *reinterpret_cast<float4 *>(out + 4 * t) = four;
}
FAULT(misaligned_float4_load, cudaErrorMisalignedAddress, "multiple of 16", FIRST(4 * T, in[i]),
      misaligned_float4_load<CORRECT><<<1, T>>>((const float *)in, (float *)out))

template <bool CORRECT> __global__ void misaligned_float4_store(const float *in, float *out) {
    int t = (int)threadIdx.x;
    float4 four = *reinterpret_cast<const float4 *>(in + 4 * t);
    *reinterpret_cast<float4 *>(out + 4 * t + (CORRECT ? 0 : 2)) = four; // here
}
FAULT(misaligned_float4_store, cudaErrorMisalignedAddress, "multiple of 16", FIRST(4 * T, in[i]),
      misaligned_float4_store<CORRECT><<<1, T>>>((const float *)in, (float *)out))

/* A row padded by one float begins at no multiple of 16 bytes. */
template <bool CORRECT> __global__ void misaligned_float4_shared(const float *in, float *out) {
    __shared__ __align__(16) float tile[4][CORRECT ? 36 : 33];
    int row = (int)threadIdx.x / 32, column = (int)threadIdx.x % 32;
    tile[row][column] = in[threadIdx.x];
    __syncthreads();
    if (column >= 8) return;
    float4 four = *reinterpret_cast<const float4 *>(&tile[row][4 * column]); // here
    *reinterpret_cast<float4 *>(out + 32 * row + 4 * column) = four;
}
FAULT(misaligned_float4_shared, cudaErrorMisalignedAddress, "multiple of 16", FIRST(T, in[i]),
      misaligned_float4_shared<CORRECT><<<1, T>>>((const float *)in, (float *)out))

/* Columns 4 t to 4 t + 3 of a row that does not begin at a multiple of 16 bytes. */
template <bool CORRECT> __global__ void misaligned_float4_add(const int *in, int *out) {
    float *sums = (float *)(out + ELEMENTS / 2) + 4 * threadIdx.x;
    const int *four = in + 4 * threadIdx.x;
    reduce_add4(sums + (CORRECT ? 0 : 1), make_float4(four[0], four[1], four[2], four[3])); // here
    for (int i = 0; i < 4; i++) out[4 * threadIdx.x + i] = (int)sums[i], sums[i] = 0.0f;
}
FAULT(misaligned_float4_add, cudaErrorMisalignedAddress, "multiple of 16", FIRST(256, in[i]),
      misaligned_float4_add<CORRECT><<<1, 64>>>(in, out))

template <bool CORRECT> __global__ void misaligned_long_add(const int *in, int *out) {
    int i = CORRECT ? 2 * (int)threadIdx.x : 2 * (int)threadIdx.x + 1;
    atomicAdd(reinterpret_cast<unsigned long long *>(out + i), (unsigned long long)in[threadIdx.x]); // here
}
FAULT(misaligned_long_add, cudaErrorMisalignedAddress, "multiple of 8",
      FIRST(2 * T, i % 2 == 0 ? in[i / 2] : in[i / 2] < 0 ? -1 : 0), misaligned_long_add<CORRECT><<<1, T>>>(in, out))

/* __ldg() of what the same thread has stored: ordered by the program, but the cache does not know. */
template <bool CORRECT> __global__ void cached_read_of_written(const int *in, int *out) {
    out[threadIdx.x] = in[threadIdx.x];
    int own = CORRECT ? out[threadIdx.x] : __ldg(out + threadIdx.x); // here
    out[threadIdx.x] = own + __ldg(in + threadIdx.x);
}
FAULT(cached_read_of_written, cudaErrorLaunchFailure, "__ldg() reads", FIRST(T, 2 * in[i]),
      cached_read_of_written<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void cached_read_of_written_bytes(const int *in, int *out) {
    signed char *own = (signed char *)(out + T) + threadIdx.x;
    *own = (signed char)in[threadIdx.x];
    out[threadIdx.x] = CORRECT ? *own : __ldg(own); // here
    *own = 0;
}
FAULT(cached_read_of_written_bytes, cudaErrorLaunchFailure, "__ldg() reads", FIRST(T, (signed char)in[i]),
      cached_read_of_written_bytes<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void misaligned_float2_load(const float *in, float *out) {
    int t = (int)threadIdx.x;
    float2 two = *reinterpret_cast<const float2 *>(in + 2 * t + (CORRECT ? 0 : 1)); // here
    *reinterpret_cast<float2 *>(out + 2 * t) = two;
}
FAULT(misaligned_float2_load, cudaErrorMisalignedAddress, "multiple of 8", FIRST(2 * T, in[i]),
      misaligned_float2_load<CORRECT><<<1, T>>>((const float *)in, (float *)out))

template <bool CORRECT> __global__ void misaligned_float2_shared(const float *in, float *out) {
    __shared__ __align__(16) float tile[4][CORRECT ? 34 : 33];
    int row = (int)threadIdx.x / 32, column = (int)threadIdx.x % 32;
    tile[row][column] = in[threadIdx.x];
    __syncthreads();
    if (column >= 16) return;
    float2 two = *reinterpret_cast<const float2 *>(&tile[row][2 * column]); // here
    *reinterpret_cast<float2 *>(out + 32 * row + 2 * column) = two;
}
FAULT(misaligned_float2_shared, cudaErrorMisalignedAddress, "multiple of 8", FIRST(T, in[i]),
      misaligned_float2_shared<CORRECT><<<1, T>>>((const float *)in, (float *)out))

/* ---- memory that nobody has written ------------------------------------------------------------------------------ */

static int *new_ints(int count) {
    int *memory = nullptr;
    cudaMalloc(&memory, (size_t)count * sizeof(int));
    return memory;
}

template <bool CORRECT> __global__ void unwritten_global(const int *fresh, const int *in, int *out) {
    int t = (int)threadIdx.x;
    out[t] = in[t] + fresh[t]; // here
}
FAULT(unwritten_global, cudaErrorLaunchFailure, "nobody has written", FIRST(T, in[i]), int *fresh = new_ints(T);
      if (CORRECT) cudaMemset(fresh, 0, T * sizeof(int));
      unwritten_global<CORRECT><<<1, T>>>(fresh, in, out))

template <bool CORRECT> __global__ void partly_written_global(const int *fresh, const int *in, int *out) {
    int t = (int)threadIdx.x;
    out[t] = in[t] + fresh[T - 1 - t]; // here
}
FAULT(partly_written_global, cudaErrorLaunchFailure, "nobody has written", FIRST(T, in[i]), int *fresh = new_ints(T);
      cudaMemset(fresh, 0, (CORRECT ? T : T - 1) * sizeof(int));
      partly_written_global<CORRECT><<<1, T>>>(fresh, in, out))

template <bool CORRECT> __global__ void unwritten_shared_tail(const int *in, int *out, int n) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    if (t < n) tile[t] = in[t];
    else if (CORRECT) tile[t] = 0;
    __syncthreads();
    out[t] = tile[T - 1 - t]; // here
}
FAULT(unwritten_shared_tail, cudaErrorLaunchFailure, "nobody has written",
      FIRST(T, T - 1 - i < 100 ? in[T - 1 - i] : 0), unwritten_shared_tail<CORRECT><<<1, T>>>(in, out, 100))

/* The sum starts out as whatever is there. */
template <bool CORRECT> __global__ void unwritten_sum(const int *in, int *out) {
    __shared__ int sums[T];
    int t = (int)threadIdx.x;
    if (CORRECT) sums[t] = 0;
    for (int k = 0; k < 4; k++) sums[t] += in[k * T + t]; // here
    out[t] = sums[t];
}
FAULT(unwritten_sum, cudaErrorLaunchFailure, "nobody has written",
      FIRST(T, in[i] + in[T + i] + in[2 * T + i] + in[3 * T + i]), unwritten_sum<CORRECT><<<1, T>>>(in, out))

/* The nonsense that it read leads outside of the array: the read is the fault. */
template <bool CORRECT> __global__ void unwritten_index(const int *fresh, const int *in, int *out) {
    int t = (int)threadIdx.x;
    int index = fresh[t]; // here
    out[index] = in[t];
}
FAULT(unwritten_index, cudaErrorLaunchFailure, "nobody has written", FIRST(1, in[0]), int *fresh = new_ints(1);
      if (CORRECT) cudaMemset(fresh, 0, sizeof(int)); unwritten_index<CORRECT><<<1, 1>>>(fresh, in, out))

/* ---- barriers and shuffles that not all take --------------------------------------------------------------------- */

template <bool CORRECT> __global__ void barrier_in_branch(const int *in, int *out) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    if (t < 64) tile[t] = in[t];
    if (CORRECT || t < 64) __syncthreads(); // here
    if (t >= 64) tile[t] = in[t];
    __syncthreads(); // here
    out[t] = tile[T - 1 - t];
}
FAULT(barrier_in_branch, cudaErrorLaunchFailure, "divergent barrier", FIRST(T, in[T - 1 - i]),
      barrier_in_branch<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void barrier_in_unequal_loops(const int *in, int *out) {
    __shared__ int ring[T];
    int t = (int)threadIdx.x, rounds = CORRECT ? 3 : 3 + t / 64, value = in[t];
    for (int k = 0; k < rounds; k++) {
        ring[t] = value;
        __syncthreads(); // here
        value = ring[(t + 1) % T];
        __syncthreads();
    }
    __syncthreads(); // here
    out[t] = value;
}
FAULT(barrier_in_unequal_loops, cudaErrorLaunchFailure, "divergent barrier", FIRST(T, in[(i + 3) % T]),
      barrier_in_unequal_loops<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void return_before_barrier(const int *in, int *out, int n) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    if (!CORRECT && t >= n) return;
    tile[t] = in[t];
    __syncthreads(); // here
    if (t < n) out[t] = tile[n - 1 - t];
}
FAULT(return_before_barrier, cudaErrorLaunchFailure, "returned", FIRST(100, in[99 - i]),
      return_before_barrier<CORRECT><<<1, T>>>(in, out, 100))

/* The second warp of 48 threads has 16 lanes. */
template <bool CORRECT> __global__ void shuffle_from_absent_lane(const int *in, int *out) {
    int t = (int)threadIdx.x, value = in[t];
    unsigned mask = CORRECT && t >= 32 ? 0x0000ffffu : 0xffffffffu;
    out[t] = __shfl_down_sync(mask, value, 8, CORRECT ? 16 : 32); // here
}
FAULT(shuffle_from_absent_lane, cudaErrorLaunchFailure, "which is not there",
      FIRST(48, i % 16 < 8 ? in[i + 8] : in[i]), shuffle_from_absent_lane<CORRECT><<<1, 48>>>(in, out))

template <bool CORRECT> __global__ void shuffle_in_branch(const int *in, int *out) {
    int t = (int)threadIdx.x, value = in[t];
    if (t % 2 == 0) value += __shfl_xor_sync(CORRECT ? 0x55555555u : 0xffffffffu, value, 2); // here
    __syncthreads(); // here
    out[t] = value;
}
FAULT(shuffle_in_branch, cudaErrorLaunchFailure, "that not all of its threads take",
      FIRST(T, i % 2 == 0 ? in[i] + in[i ^ 2] : in[i]), shuffle_in_branch<CORRECT><<<1, T>>>(in, out))

/* ---- asynchronous copies ----------------------------------------------------------------------------------------- */

template <bool CORRECT> __global__ void async_read_before_wait(const int *in, int *out) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    __pipeline_memcpy_async(&tile[t], &in[t], sizeof(int)); // here
    __pipeline_commit();
    if (CORRECT) __pipeline_wait_prior(0);
    out[t] = tile[t]; // here
}
FAULT(async_read_before_wait, cudaErrorLaunchFailure, "is under way", FIRST(T, in[i]),
      async_read_before_wait<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void async_read_without_barrier(const int *in, int *out) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    __pipeline_memcpy_async(&tile[t], &in[t], sizeof(int)); // here
    __pipeline_commit();
    __pipeline_wait_prior(0);
    if (CORRECT) __syncthreads();
    out[t] = tile[T - 1 - t]; // here
}
FAULT(async_read_without_barrier, cudaErrorLaunchFailure, "race on tile[", FIRST(T, in[T - 1 - i]),
      async_read_without_barrier<CORRECT><<<1, T>>>(in, out))

/* Two stages: while one is added up, the next is on its way. */
template <bool CORRECT> __global__ void async_waits_for_too_few(const int *in, int *out) {
    __shared__ int stages[2][T];
    int t = (int)threadIdx.x, sum = 0;
    __pipeline_memcpy_async(&stages[0][t], &in[t], sizeof(int)); // here
    __pipeline_commit();
    for (int k = 0; k < 4; k++) {
        if (k < 3) __pipeline_memcpy_async(&stages[(k + 1) % 2][t], &in[(k + 1) * T + t], sizeof(int));
        __pipeline_commit();
        __pipeline_wait_prior(CORRECT ? 1 : 2);
        __syncthreads();
        sum += stages[k % 2][T - 1 - t]; // here
        __syncthreads();
    }
    out[t] = sum;
}
FAULT(async_waits_for_too_few, cudaErrorLaunchFailure, "is under way",
      FIRST(T, in[T - 1 - i] + in[2 * T - 1 - i] + in[3 * T - 1 - i] + in[4 * T - 1 - i]),
      async_waits_for_too_few<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void async_commit_forgotten(const int *in, int *out) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    __pipeline_memcpy_async(&tile[t], &in[t], sizeof(int)); // here
    if (CORRECT) __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[t] = tile[T - 1 - t]; // here
}
FAULT(async_commit_forgotten, cudaErrorLaunchFailure, "is under way", FIRST(T, in[T - 1 - i]),
      async_commit_forgotten<CORRECT><<<1, T>>>(in, out))

/* A copy into a stage that other threads may still be reading. */
template <bool CORRECT> __global__ void async_buffer_overwritten(const int *in, int *out) {
    __shared__ int tile[T];
    int t = (int)threadIdx.x, sum = 0;
    for (int k = 0; k < 4; k++) {
        __pipeline_memcpy_async(&tile[t], &in[k * T + t], sizeof(int)); // here
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        sum += tile[T - 1 - t]; // here
        if (CORRECT) __syncthreads();
    }
    out[t] = sum;
}
FAULT(async_buffer_overwritten, cudaErrorLaunchFailure, "race on tile[",
      FIRST(T, in[T - 1 - i] + in[2 * T - 1 - i] + in[3 * T - 1 - i] + in[4 * T - 1 - i]),
      async_buffer_overwritten<CORRECT><<<1, T>>>(in, out))

/* ---- memory that is not the kernel's ----------------------------------------------------------------------------- */

template <bool CORRECT> __global__ void write_to_input(int *in, int *out) {
    int t = (int)threadIdx.x;
    (CORRECT ? out : in)[t] = 2 * in[t]; // here
}
FAULT(write_to_input, cudaErrorLaunchFailure, "an input that kernels may only read", FIRST(T, 2 * in[i]),
      if (simt_name_memory != nullptr) simt_name_memory(in, "the_input", sizeof *in, 1);
      write_to_input<CORRECT><<<1, T>>>(const_cast<int *>(in), out))

template <bool CORRECT> __global__ void use_after_free(const int *block, int *out) {
    int t = (int)threadIdx.x;
    out[t] = block[t]; // here
}
FAULT(use_after_free, cudaErrorIllegalAddress, "freed", FIRST(T, in[i]), int *copy = new_ints(T);
      cudaMemcpy(copy, in, T * sizeof(int), cudaMemcpyDeviceToDevice); if (!CORRECT) cudaFree(copy);
      use_after_free<CORRECT><<<1, T>>>(copy, out); if (CORRECT) cudaFree(copy))

template <bool CORRECT> __global__ void host_pointer(const int *table, const int *in, int *out) {
    int t = (int)threadIdx.x;
    out[t] = in[t] * table[t % 4]; // here
}
static int table_of_host[4] = {1, 10, 100, 1000};
FAULT(host_pointer, cudaErrorIllegalAddress, "host pointer",
      FIRST(T, in[i] * (i % 4 == 0 ? 1 : i % 4 == 1 ? 10 : i % 4 == 2 ? 100 : 1000)), int *copy = new_ints(4);
      cudaMemcpy(copy, table_of_host, sizeof table_of_host, cudaMemcpyHostToDevice);
      host_pointer<CORRECT><<<1, T>>>(CORRECT ? copy : table_of_host, in, out))

/* ---- correct, though it may not look so -------------------------------------------------------------------------- */

__global__ void shuffle_reduction(const int *in, int *out) {
    __shared__ int of_warp[T / 32];
    int t = (int)threadIdx.x, sum = warp_sum(in[blockIdx.x * T + t]);
    if (t % 32 == 0) of_warp[t / 32] = sum;
    __syncthreads();
    if (t >= 32) return;
    sum = warp_sum(t < T / 32 ? of_warp[t] : 0);
    if (t == 0) atomicAdd(out, sum);
}
PATTERN(shuffle_reduction, FIRST(1, sum_of(in, 4 * T)), shuffle_reduction<<<4, T>>>(in, out))

__global__ void warp_reduction_in_shared(const int *in, int *out) {
    __shared__ int sums[T];
    int t = (int)threadIdx.x, lane = t % 32;
    sums[t] = in[t];
    __syncwarp();
    for (int stride = 16; stride > 0; stride /= 2) {
        int sum = lane < stride ? sums[t] + sums[t + stride] : 0;
        __syncwarp();
        if (lane < stride) sums[t] = sum;
        __syncwarp();
    }
    if (lane == 0) out[t / 32] = sums[t];
}
PATTERN(warp_reduction_in_shared, FIRST(4, sum_of(in + 32 * i, 32)), warp_reduction_in_shared<<<1, T>>>(in, out))

/* Two tiles, one barrier a round: the tile that is written is not the one that slow threads may still read. */
__global__ void double_buffering(const int *in, int *out) {
    __shared__ int tiles[2][T];
    int t = (int)threadIdx.x, sum = 0;
    for (int k = 0; k < 6; k++) {
        tiles[k % 2][t] = in[k * T + t];
        __syncthreads();
        sum += tiles[k % 2][T - 1 - t];
    }
    out[t] = sum;
}
static int mirrored_sum(const int *in, int i, int rounds) {
    int sum = 0;
    for (int k = 0; k < rounds; k++) sum += in[k * T + T - 1 - i];
    return sum;
}
PATTERN(double_buffering, FIRST(T, mirrored_sum(in, i, 6)), double_buffering<<<1, T>>>(in, out))

__global__ void padded_transpose(const int *in, int *out) {
    __shared__ int tile[16][17];
    int x = (int)threadIdx.x;
    for (int y = (int)threadIdx.y; y < 16; y += (int)blockDim.y) tile[y][x] = in[16 * y + x];
    __syncthreads();
    for (int y = (int)threadIdx.y; y < 16; y += (int)blockDim.y) out[16 * y + x] = tile[x][y];
}
PATTERN(padded_transpose, FIRST(256, in[i % 16 * 16 + i / 16]), padded_transpose<<<1, dim3(16, 4)>>>(in, out))

__global__ void histogram(const int *in, int *out, int n) {
    __shared__ int bins[8];
    int t = (int)threadIdx.x;
    if (t < 8) bins[t] = 0;
    __syncthreads();
    for (int i = global_thread(); i < n; i += (int)(gridDim.x * blockDim.x)) atomicAdd(&bins[in[i] & 7], 1);
    __syncthreads();
    if (t < 8) atomicAdd(&out[t], bins[t]);
}
PATTERN(histogram, FIRST(8, count_of(in, i, ELEMENTS)), histogram<<<5, T>>>(in, out, ELEMENTS))

/* out[1 ...]: the blocks' sums; out[900]: how many blocks are done. */
__global__ void last_block_adds_up(const int *in, volatile int *out, int *done) {
    __shared__ bool is_last;
    int t = (int)threadIdx.x, sum = warp_sum(in[global_thread()]);
    if (t == 0) {
        out[1 + blockIdx.x] = sum;
        __threadfence();
        is_last = atomicAdd(done, 1) == (int)gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    int total = warp_sum(t < (int)gridDim.x ? out[1 + t] : 0);
    if (t == 0) out[0] = total;
}
PATTERN(last_block_adds_up,
        FIRST(901, i == 0     ? sum_of(in, 320)
                   : i <= 10  ? sum_of(in + 32 * (i - 1), 32)
                   : i == 900 ? 10
                              : 0),
        last_block_adds_up<<<10, 32>>>(in, out, out + 900))

/* What the lock guards is plain memory. */
__global__ void spin_lock_around_plain_data(const int *in, int *out, int *lock) {
    if (threadIdx.x != 0) return;
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    out[0] += in[blockIdx.x];
    out[1] += 1;
    __threadfence();
    atomicExch(lock, 0);
}
PATTERN(spin_lock_around_plain_data, FIRST(2, i == 0 ? sum_of(in, 20) : 20), int *lock = new_ints(1);
        cudaMemset(lock, 0, sizeof(int)); spin_lock_around_plain_data<<<20, 32>>>(in, out, lock))

/* The first warp fills, fences and raises a flag; the second waits for the flag. */
__global__ void flag_between_warps(const int *in, int *out) {
    __shared__ int row[32];
    __shared__ volatile int ready;
    int t = (int)threadIdx.x;
    if (t == 0) ready = 0;
    __syncthreads();
    if (t < 32) {
        row[t] = in[t];
        __threadfence();
        __syncwarp();
        if (t == 0) ready = 1;
    } else {
        while (ready == 0) {
        }
        __threadfence();
        out[t - 32] = row[63 - t];
    }
}
PATTERN(flag_between_warps, FIRST(32, in[31 - i]), flag_between_warps<<<1, 64>>>(in, out))

/* Every thread that finds an even number says so in one word: a race that is meant, and marked by `volatile`. */
__global__ void volatile_flag(const int *in, volatile int *found) {
    int i = global_thread();
    if (*found == 0 && in[i] % 2 == 0) *found = 1;
}
PATTERN(volatile_flag, FIRST(1, count_of(in, 0, 256) + count_of(in, 2, 256) > 0), volatile_flag<<<4, 64>>>(in, out))

__global__ void broadcast_read(const int *in, int *out) {
    __shared__ int row[T];
    int t = (int)threadIdx.x, sum = 0;
    row[t] = in[t];
    __syncthreads();
    for (int j = 0; j < 8; j++) sum += row[j] * in[100 + j];
    out[blockIdx.x * T + t] = sum + row[t];
}
static int product_of_eight(const int *in) {
    int sum = 0;
    for (int j = 0; j < 8; j++) sum += in[j] * in[100 + j];
    return sum;
}
PATTERN(broadcast_read, FIRST(3 * T, product_of_eight(in) + in[i % T]), broadcast_read<<<3, T>>>(in, out))

/* All threads read each word, in several warps and twice, before one of them changes it. */
__global__ void readers_then_writer(const int *in, int *out) {
    __shared__ int row[T];
    int t = (int)threadIdx.x, sum = 0;
    row[t] = in[t];
    for (int k = 0; k < 3; k++) {
        __syncthreads();
        sum += row[k] + row[(t + k) % T] + row[k];
        __syncthreads();
        if (t == k) row[k] = 0;
        if (t == 64 + k) row[64 + k] = k;
    }
    __syncthreads();
    out[t] = row[t] + 0 * sum;
}
PATTERN(readers_then_writer, FIRST(T, i < 3 ? 0 : i >= 64 && i < 67 ? i - 64 : in[i]),
        readers_then_writer<<<1, T>>>(in, out))

/* Each half of a warp hands values on within itself, in a branch of its own. */
__global__ void half_warps_apart(const int *in, int *out) {
    __shared__ int row[T];
    int t = (int)threadIdx.x, lane = t % 32, first = t - lane % 16;
    row[t] = in[t];
    if (lane < 16) {
        __syncwarp(0x0000ffffu);
        int next = row[first + (lane + 1) % 16];
        __syncwarp(0x0000ffffu);
        row[t] = next;
        __syncwarp(0x0000ffffu);
        out[t] = row[first + (lane + 1) % 16];
    } else {
        __syncwarp(0xffff0000u);
        out[t] = row[first + 15 - lane % 16];
    }
}
PATTERN(half_warps_apart, FIRST(T, i % 32 < 16 ? in[i / 16 * 16 + (i + 2) % 16] : in[i / 16 * 16 + 15 - i % 16]),
        half_warps_apart<<<1, T>>>(in, out))

/* A shuffle makes the lanes meet, as __syncwarp() does. */
__global__ void shuffle_orders_lanes(const int *in, int *out) {
    __shared__ int row[32];
    int lane = (int)threadIdx.x;
    row[lane] = in[lane];
    int sum = warp_sum(in[lane]);
    out[lane] = sum + row[31 - lane];
}
PATTERN(shuffle_orders_lanes, FIRST(32, sum_of(in, 32) + in[31 - i]), shuffle_orders_lanes<<<1, 32>>>(in, out))

__global__ void ballot_orders_lanes(const int *in, int *out) {
    __shared__ int row[32];
    int lane = (int)threadIdx.x;
    row[lane] = in[lane];
    unsigned odd = __ballot_sync(0xffffffffu, in[lane] & 1);
    out[lane] = row[31 - lane] + __popc(odd);
}
static int odd_in(const int *in, int count) {
    int odd = 0;
    for (int i = 0; i < count; i++) odd += in[i] & 1;
    return odd;
}
PATTERN(ballot_orders_lanes, FIRST(32, in[31 - i] + odd_in(in, 32)), ballot_orders_lanes<<<1, 32>>>(in, out))

/* Groups of eight lanes meet at their own pace, then pairs of groups. */
__global__ void groups_of_eight(const int *in, int *out) {
    __shared__ int row[32];
    int lane = (int)threadIdx.x, group = lane / 8;
    unsigned own = 0xffu << 8 * group, pair = 0xffffu << 16 * (group / 2);
    row[lane] = in[lane];
    __syncwarp(own);
    int next = row[8 * group + (lane + 1) % 8];
    __syncwarp(own);
    row[lane] = next;
    __syncwarp(pair);
    out[lane] = row[lane ^ 8];
}
PATTERN(groups_of_eight, FIRST(32, in[(i ^ 8) / 8 * 8 + (i + 1) % 8]), groups_of_eight<<<1, 32>>>(in, out))

/* An atomic counter gives each thread a place of its own. All multiples of 4 are kept; their order is open, so only a
 * mark is written. */
__global__ void compaction_by_tickets(const int *in, int *out, int *count) {
    int i = global_thread();
    if (in[i] % 4 == 0) out[atomicAdd(count, 1)] = 1;
}
static int multiples_of_4(const int *in, int count) {
    int found = 0;
    for (int i = 0; i < count; i++) found += in[i] % 4 == 0;
    return found;
}
PATTERN(compaction_by_tickets, FIRST(ELEMENTS, i == 999 ? multiples_of_4(in, 512) : i < multiples_of_4(in, 512)),
        compaction_by_tickets<<<8, 64>>>(in, out, out + 999))

/* Neighbours own the bytes of one word. */
__global__ void bytes_side_by_side(const int *in, int *out) {
    __shared__ unsigned char bytes[T];
    int t = (int)threadIdx.x;
    bytes[t] = (unsigned char)(in[t] & 15);
    __syncthreads();
    reinterpret_cast<unsigned char *>(out)[t] = bytes[t ^ 1];
}
static int byte_of(const int *in, int i) { return in[i ^ 1] & 15; }
PATTERN(bytes_side_by_side,
        FIRST(T / 4, byte_of(in, 4 * i) | byte_of(in, 4 * i + 1) << 8 | byte_of(in, 4 * i + 2) << 16 |
                         byte_of(in, 4 * i + 3) << 24),
        bytes_side_by_side<<<1, T>>>(in, out))

/* One piece of shared memory, first as doubles, then as ints. */
__global__ void tile_of_two_types(const int *in, int *out) {
    __shared__ __align__(16) double numbers[T];
    int *ints = reinterpret_cast<int *>(numbers), t = (int)threadIdx.x;
    numbers[t] = 0.5 * in[t];
    __syncthreads();
    int twice = (int)(4.0 * numbers[T - 1 - t]);
    __syncthreads();
    ints[t] = twice;
    __syncthreads();
    out[t] = ints[(t + 1) % T];
}
PATTERN(tile_of_two_types, FIRST(T, 2 * in[T - 1 - (i + 1) % T]), tile_of_two_types<<<1, T>>>(in, out))

__global__ void two_launches(const int *in, int *out, int shift) {
    int i = global_thread();
    out[i] += in[(i + shift) % 512];
}
PATTERN(two_launches, FIRST(512, in[i] + in[(i + 64) % 512]), two_launches<<<8, 64>>>(in, out, 0);
        two_launches<<<4, 128>>>(in, out, 64))

/* 16 x 16 by 16 x 16, each thread a row's four neighbours. */
__global__ void float4_tile_product(const float *in, float *out) {
    __shared__ __align__(16) float A[16][20], B[16][20];
    int t = (int)threadIdx.x, row = t / 4, column = 4 * (t % 4);
    *reinterpret_cast<float4 *>(&A[row][column]) = *reinterpret_cast<const float4 *>(in + 16 * row + column);
    *reinterpret_cast<float4 *>(&B[row][column]) = make_float4((float)(row == column), (float)(row == column + 1),
                                                                (float)(row == column + 2), (float)(row == column + 3));
    __syncthreads();
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int k = 0; k < 16; k++) {
        float4 b = *reinterpret_cast<const float4 *>(&B[k][column]);
        sum = make_float4(sum.x + A[row][k] * b.x, sum.y + A[row][k] * b.y, sum.z + A[row][k] * b.z,
                          sum.w + A[row][k] * b.w);
    }
    *reinterpret_cast<float4 *>(out + 16 * row + column) = sum;
}
__global__ void ints_to_floats(const int *in, float *out) { out[threadIdx.x] = (float)in[threadIdx.x]; }
__global__ void floats_to_ints(const float *in, int *out) { out[threadIdx.x] = (int)in[threadIdx.x]; }
PATTERN(float4_tile_product, FIRST(256, in[i]), float *numbers = (float *)new_ints(512);
        ints_to_floats<<<1, 256>>>(in, numbers); float4_tile_product<<<1, 64>>>(numbers, numbers + 256);
        floats_to_ints<<<1, 256>>>(numbers + 256, out))

/* Copies of 16 bytes, three stages, one barrier a round. */
__global__ void async_double_buffer(const int *in, int *out) {
    __shared__ __align__(16) int stages[3][T];
    int t = (int)threadIdx.x, sum = 0;
    for (int k = 0; k < 2; k++) {
        if (t < T / 4) __pipeline_memcpy_async(&stages[k][4 * t], &in[k * T + 4 * t], 16);
        __pipeline_commit();
    }
    for (int k = 0; k < 6; k++) {
        __pipeline_wait_prior(1);
        __syncthreads();
        if (t < T / 4 && k + 2 < 6)
            __pipeline_memcpy_async(&stages[(k + 2) % 3][4 * t], &in[(k + 2) * T + 4 * t], 16);
        __pipeline_commit();
        sum += stages[k % 3][T - 1 - t];
    }
    out[t] = sum;
}
PATTERN(async_double_buffer, FIRST(T, mirrored_sum(in, i, 6)), async_double_buffer<<<1, T>>>(in, out))

/* Lanes that have returned are waited for by no warp barrier. */
__global__ void returned_lanes(const int *in, int *out) {
    __shared__ int row[32];
    int lane = (int)threadIdx.x;
    row[lane] = in[lane];
    if (lane >= 20) return;
    __syncwarp(0x000fffffu);
    int next = row[(lane + 1) % 20];
    __syncwarp(0x000fffffu);
    row[lane] = next;
    __syncwarp(0x000fffffu);
    out[lane] = row[(lane + 1) % 20];
}
PATTERN(returned_lanes, FIRST(20, in[(i + 2) % 20]), returned_lanes<<<1, 32>>>(in, out))

/* ---- structs that functions return ------------------------------------------------------------------------------- */

struct triple {
    int a, b, c;
};
__device__ __noinline__ struct triple triple_of(const int *in, int i) {
    struct triple t = {in[i], 2 * in[i], i};
    return t;
}

template <bool CORRECT> __global__ void returned_struct_past_the_end(const int *in, struct triple *out, int n) {
    int i = (int)threadIdx.x + (CORRECT ? 0 : n - T + 1);
    if (i <= n) out[i] = triple_of(in, i); // here
}
FAULT(returned_struct_past_the_end, cudaErrorIllegalAddress, "out of bounds",
      FIRST(3 * T, i % 3 == 0 ? in[i / 3] : i % 3 == 1 ? 2 * in[i / 3] : i / 3),
      returned_struct_past_the_end<CORRECT><<<1, T>>>(in, (struct triple *)out, ELEMENTS / 3))

template <bool CORRECT> __global__ void returned_struct_to_shared(const int *in, int *out) {
    __shared__ struct triple row[T];
    int t = (int)threadIdx.x;
    row[t] = triple_of(in, t); // here
    if (CORRECT) __syncthreads();
    out[t] = row[T - 1 - t].b; // here
}
FAULT(returned_struct_to_shared, cudaErrorLaunchFailure, "race on row[", FIRST(T, 2 * in[T - 1 - i]),
      returned_struct_to_shared<CORRECT><<<1, T>>>(in, out))

__device__ struct triple sum_to(const int *in, int i) {
    if (i < 0) return {0, 0, 0};
    struct triple sum = sum_to(in, i - 1);
    return {sum.a + in[i], sum.b + 1, i};
}
__global__ void returned_structs(const int *in, struct triple *out) {
    __shared__ struct triple row[32];
    int t = (int)threadIdx.x;
    row[t] = sum_to(in, t % 4);
    __syncthreads();
    struct triple other = row[t ^ 1];
    out[t] = sum_to(in, other.c);
    out[t].b += out[t].a - other.a;
}
static int sum_of_first(const int *in, int last) { return last < 0 ? 0 : in[last] + sum_of_first(in, last - 1); }
PATTERN(returned_structs,
        FIRST(96, i % 3 == 0   ? sum_of_first(in, (i / 3 ^ 1) % 4)
                  : i % 3 == 1 ? (i / 3 ^ 1) % 4 + 1
                               : (i / 3 ^ 1) % 4),
        returned_structs<<<1, 32>>>(in, (struct triple *)out))

/* ---- volatile in shared memory ----------------------------------------------------------------------------------- */

/* As it was written for cards whose warps moved in step. */
template <bool CORRECT> __global__ void volatile_reduction(const int *in, int *out) {
    __shared__ int sums[64];
    int t = (int)threadIdx.x;
    sums[t] = in[t];
    __syncthreads();
    if (t < 32) {
        volatile int *own = sums;
        for (int step = 32; step > 0; step /= 2) {
            int other = own[t + step];
            if (CORRECT) __syncwarp();
            own[t] = own[t] + other; // here
            if (CORRECT) __syncwarp();
        }
        if (t == 0) out[0] = own[0];
    }
}
FAULT(volatile_reduction, cudaErrorLaunchFailure, "race on sums[", FIRST(1, sum_of(in, 64)),
      volatile_reduction<CORRECT><<<1, 64>>>(in, out))

template <bool CORRECT> __global__ void volatile_neighbour(const int *in, int *out) {
    __shared__ volatile int row[32];
    int t = (int)threadIdx.x;
    row[t] = in[t]; // here
    if (CORRECT) __syncwarp();
    out[t] = row[31 - t]; // here
}
FAULT(volatile_neighbour, cudaErrorLaunchFailure, "race on row[", FIRST(32, in[31 - i]),
      volatile_neighbour<CORRECT><<<1, 32>>>(in, out))

/* Lane 0 fills, fences and raises a flag; the other lanes of its warp wait for the flag. */
__global__ void volatile_flag_between_lanes(const int *in, int *out) {
    __shared__ int value;
    __shared__ volatile int ready;
    int t = (int)threadIdx.x;
    if (t == 0) ready = 0;
    __syncwarp();
    if (t == 0) {
        value = in[7];
        __threadfence_block();
        ready = 1;
    } else {
        while (ready == 0) {
        }
        __threadfence_block();
    }
    out[t] = value + in[t];
}
PATTERN(volatile_flag_between_lanes, FIRST(32, in[7] + in[i]), volatile_flag_between_lanes<<<1, 32>>>(in, out))

/* Warps tell one another by volatile words; what they tell is in the word. */
__global__ void volatile_flags_of_warps(const int *in, int *out) {
    __shared__ volatile int found;
    int t = (int)threadIdx.x;
    if (t == 0) found = 0;
    __syncthreads();
    if (t % 32 == 0 && in[t] != 1 << 30) found = 1;
    __syncthreads();
    out[t] = found;
}
PATTERN(volatile_flags_of_warps, FIRST(T, 1), volatile_flags_of_warps<<<1, T>>>(in, out))

/* ---- elements of 1 and 2 bytes ----------------------------------------------------------------------------------- */

template <bool CORRECT> __global__ void bytes_store_then_read(const int *in, int *out) {
    __shared__ unsigned char row[T];
    int t = (int)threadIdx.x;
    row[t] = (unsigned char)(in[t] & 127); // here
    if (CORRECT) __syncthreads();
    out[t] = row[T - 1 - t]; // here
}
FAULT(bytes_store_then_read, cudaErrorLaunchFailure, "race on row[", FIRST(T, in[T - 1 - i] & 127),
      bytes_store_then_read<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void bytes_read_then_overwrite(const int *in, int *out) {
    __shared__ signed char row[T];
    int t = (int)threadIdx.x;
    row[t] = (signed char)(in[t] & 63);
    __syncthreads();
    int other = row[t ^ 1]; // here
    if (CORRECT) __syncthreads();
    row[t] = (signed char)(other + 1); // here
    __syncthreads();
    out[t] = row[t];
}
FAULT(bytes_read_then_overwrite, cudaErrorLaunchFailure, "race on row[", FIRST(T, (in[i ^ 1] & 63) + 1),
      bytes_read_then_overwrite<CORRECT><<<1, T>>>(in, out))

/* Global memory, and a byte that another warp writes. */
template <bool CORRECT> __global__ void bytes_between_warps(const int *in, unsigned char *bytes, int *out) {
    int t = (int)threadIdx.x;
    bytes[t] = (unsigned char)(in[t] & 127); // here
    if (CORRECT) __syncthreads();
    out[t] = bytes[(t + 64) % T]; // here
}
FAULT(bytes_between_warps, cudaErrorLaunchFailure, "race on", FIRST(T, in[(i + 64) % T] & 127),
      bytes_between_warps<CORRECT><<<1, T>>>(in, (unsigned char *)new_ints(T), out))

/* Every block writes the byte that the next one's first byte is, or its own only. */
template <bool CORRECT> __global__ void bytes_of_blocks(const int *in, unsigned char *bytes) {
    int t = (int)threadIdx.x, width = (int)blockDim.x + (CORRECT ? 0 : 1);
    for (int i = t; i < width; i += (int)blockDim.x)
        bytes[blockIdx.x * blockDim.x + i] = (unsigned char)(in[i % 31] & 127); // here
}
FAULT(bytes_of_blocks, cudaErrorLaunchFailure, "blocks run in any order", FIRST(0, in[i]),
      bytes_of_blocks<CORRECT><<<5, 31>>>(in, (unsigned char *)new_ints(T)); (void)out)

template <bool CORRECT> __global__ void halves_store_then_read(const int *in, int *out) {
    __shared__ short row[T];
    int t = (int)threadIdx.x;
    row[t] = (short)in[t]; // here
    if (CORRECT) __syncthreads();
    out[t] = row[t ^ 1]; // here
}
FAULT(halves_store_then_read, cudaErrorLaunchFailure, "race on row[", FIRST(T, in[i ^ 1]),
      halves_store_then_read<CORRECT><<<1, T>>>(in, out))

/* A word is cleared while other threads have written its bytes. */
template <bool CORRECT> __global__ void word_over_bytes(const int *in, int *out) {
    __shared__ int words[T / 4];
    unsigned char *bytes = reinterpret_cast<unsigned char *>(words);
    int t = (int)threadIdx.x;
    if (t < T / 4) words[t] = 0; // here
    if (CORRECT) __syncthreads();
    bytes[T - 1 - t] = (unsigned char)(in[t] & 127); // here
    __syncthreads();
    out[t] = bytes[t];
}
FAULT(word_over_bytes, cudaErrorLaunchFailure, "race on words[", FIRST(T, in[T - 1 - i] & 127),
      word_over_bytes<CORRECT><<<1, T>>>(in, out))

/* Blocks share words and no bytes. */
__global__ void bytes_of_all_blocks(const int *in, unsigned char *out) {
    int i = global_thread();
    if (i < 333) out[i] = (unsigned char)(in[i] & 127);
    if (i < 333) out[i] = (unsigned char)(out[i] + 1);
}
static int four_bytes(const int *in, int i) {
    int word = 0;
    for (int k = 0; k < 4; k++)
        if (4 * i + k < 333) word |= ((in[4 * i + k] & 127) + 1) << 8 * k;
    return word;
}
PATTERN(bytes_of_all_blocks, FIRST(84, four_bytes(in, i)), bytes_of_all_blocks<<<12, 31>>>(in, (unsigned char *)out))

/* The same shared memory as bytes, halves and words, with barriers between. */
__global__ void bytes_then_words(const int *in, int *out) {
    __shared__ int words[32];
    unsigned char *bytes = reinterpret_cast<unsigned char *>(words);
    short *halves = reinterpret_cast<short *>(words);
    int t = (int)threadIdx.x;
    for (int round = 0; round < 3; round++) {
        bytes[t] = (unsigned char)(in[t] & 15);
        __syncthreads();
        if (t < 64) halves[t] = (short)(halves[t] * 2);
        __syncthreads();
        if (t < 32) words[t] += 0x01010101;
        __syncthreads();
        out[t] = bytes[T - 1 - t];
        __syncthreads();
    }
}
PATTERN(bytes_then_words, FIRST(T, 2 * (in[T - 1 - i] & 15) + 1), bytes_then_words<<<1, T>>>(in, out))

/* ---- the host takes a device pointer for its own ------------------------------------------------------------------ */

__global__ void plus_one(int *out) { out[threadIdx.x]++; }

template <bool CORRECT> static void host_reads_device(const int *in, int *out) {
    int first = 0;
    plus_one<<<1, 1>>>(out);
    if (CORRECT)
        cudaMemcpy(&first, in, sizeof first, cudaMemcpyDeviceToHost);
    else
        first = in[3]; // here
    cudaMemcpy(out, &first, sizeof first, cudaMemcpyHostToDevice);
}
FAULT(host_reads_device, FAULT_OF_HOST, "the host reads device memory at", FIRST(1, in[0]),
      host_reads_device<CORRECT>(in, out))

/* Before anything was launched. */
template <bool CORRECT> static void host_writes_device(const int *in, int *out) {
    int value = 5;
    (void)in;
    if (CORRECT)
        cudaMemcpy(out, &value, sizeof value, cudaMemcpyHostToDevice);
    else
        out[0] = value; // here
}
FAULT(host_writes_device, FAULT_OF_HOST, "the host writes device memory at", FIRST(1, 5),
      host_writes_device<CORRECT>(in, out))

/* Inside a function of the C library: the line is that of the call. */
template <bool CORRECT> static void host_copies_device(const int *in, int *out) {
    static int values[ELEMENTS];
    if (CORRECT)
        cudaMemcpy(values, in, sizeof values, cudaMemcpyDeviceToHost);
    else
        memcpy(values, in, sizeof values); // here
    cudaMemcpy(out, values, sizeof values, cudaMemcpyHostToDevice);
}
FAULT(host_copies_device, FAULT_OF_HOST, "the host reads device memory at", FIRST(ELEMENTS, in[i]),
      host_copies_device<CORRECT>(in, out))

template <bool CORRECT> __global__ void copy_to(const int *in, int *out) {
    __shared__ int row[T];
    row[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = row[T - 1 - threadIdx.x];
}
template <bool CORRECT> static void host_calls_kernel(const int *in, int *out) {
    void (*kernel)(const int *, int *) = copy_to<CORRECT>; // nvcc would refuse the call of a name
    if (CORRECT)
        kernel<<<1, T>>>(in, out);
    else
        kernel(in, out); // here
}
FAULT(host_calls_kernel, FAULT_OF_HOST, "without <<<grid, block>>>", FIRST(T, in[T - 1 - i]),
      host_calls_kernel<CORRECT>(in, out))

/* As where a student's constant is 0: the number of blocks cannot be computed. The program ends by the signal, as it does on
 * a card, but says where. */
template <bool CORRECT> static void host_divides_by_zero(const int *in, int *out) {
    volatile int threads = CORRECT ? T : 0;
    int blocks = T / threads; // here
    copy_to<CORRECT><<<blocks, threads>>>(in, out);
}
FAULT(host_divides_by_zero, SIGNAL_OF_HOST, "integer division by zero on the host", FIRST(T, in[T - 1 - i]),
      host_divides_by_zero<CORRECT>(in, out))

template <bool CORRECT> __global__ void assertion_fails(const int *in, int *out) {
    int t = (int)threadIdx.x;
    assert(CORRECT || t != 77); // here
    out[t] = in[t];
}
FAULT(assertion_fails, cudaErrorAssert, "thread (77,0,0)", FIRST(T, in[i]), assertion_fails<CORRECT><<<1, T>>>(in, out))

/* Rows of 20 elements, 32 threads each: the last twelve reach the next row. */
template <bool CORRECT> __global__ void row_without_bounds_check(const int *in, int *out) {
    int row = (int)blockIdx.x, col = (int)threadIdx.x;
    if (CORRECT ? col < 20 : col < 32) out[row * 20 + col] = in[col] + row; // here
}
FAULT(row_without_bounds_check, cudaErrorLaunchFailure, "does an index leave its row", FIRST(200, in[i % 20] + i / 20),
      row_without_bounds_check<CORRECT><<<10, 32>>>(in, out))

__global__ void copy_ints(const int *in, int *out) { out[threadIdx.x % T] = in[threadIdx.x % T]; }
__global__ void double_ints(const int *copied, int *out) { out[threadIdx.x] = 2 * copied[threadIdx.x]; }
void launch_copy_then_double(int threads, const int *in, int *out) {
    int *copied = new_ints(T);
    copy_ints<<<1, threads>>>(in, copied);
    double_ints<<<1, T>>>(copied, out);
}
