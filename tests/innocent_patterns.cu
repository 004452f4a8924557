/* Kernels that are correct, though they may not look so: none is accused. */
#include "faults.h"

#include <cuda_pipeline.h>

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
