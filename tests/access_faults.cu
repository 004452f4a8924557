/* Accesses out of bounds, misaligned, of unwritten memory; barriers that not all take; asynchronous copies. */
#include "faults.h"

#include <cuda_pipeline.h>

#include "ptx.cuh"

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

/* Of 32 bytes that the device judges together, all others have read the first ones before. */
template <bool CORRECT> __global__ void tail_read_after_others(const int *in, int *out) {
    __shared__ int tile[12];
    const int *first = tile;
    int t = (int)threadIdx.x, sum = 0;
    if (t < 12) tile[t] = in[t];
    __syncthreads();
    for (int i = 8; i < (CORRECT || t < T - 1 ? 12 : 13); i++) sum += first[i]; // here
    out[t] = sum;
}
FAULT(tail_read_after_others, cudaErrorIllegalAddress, "read of 4 bytes out of bounds", FIRST(T, in[8] + in[9] + in[10] + in[11]),
      tail_read_after_others<CORRECT><<<1, T>>>(in, out))

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

/* Dynamic shared memory begins where its declaration promises, and no better; bytes are counted from there. */
template <bool CORRECT> __global__ void four_where_memory_begins(const int *in, int *out) {
    float *dynamic;
    if constexpr (CORRECT) {
        extern __shared__ float4 aligned[];
        dynamic = (float *)aligned;
    } else {
        extern __shared__ float not_aligned[];
        dynamic = not_aligned;
    }
    int t = threadIdx.x;
    if (t < 32) ((float4 *)dynamic)[t] = make_float4((float)in[t], 1.0f, 2.0f, 3.0f); // here
    __syncthreads();
    out[t] = (int)dynamic[t];
}
FAULT(four_where_memory_begins, cudaErrorMisalignedAddress, "declared at a multiple of 4, and with SIMT_SHARED_BASE=least",
      FIRST(T, i % 4 > 0 ? i % 4 : in[i / 4]), setenv("SIMT_SHARED_BASE", "least", 1);
      four_where_memory_begins<CORRECT><<<1, T, T * sizeof(float)>>>(in, out))

template <bool CORRECT> __global__ void tail_where_memory_begins(const int *in, int *out) {
    extern __shared__ int dynamic[];
    __shared__ int tile[T];
    int t = (int)threadIdx.x;
    dynamic[t] = tile[t] = in[t];
    __syncthreads();
    if (t < T - (CORRECT ? 1 : 0)) out[t] = dynamic[t + 1] - tile[t]; // here
}
FAULT(tail_where_memory_begins, cudaErrorIllegalAddress, "byte 512 of the block's dynamic shared memory (512 bytes",
      FIRST(T - 1, in[i + 1] - in[i]), setenv("SIMT_SHARED_BASE", "least", 1);
      tail_where_memory_begins<CORRECT><<<1, T, T * sizeof(int)>>>(in, out))

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

template <bool CORRECT> __global__ void unwritten_global(const int *fresh, const int *in, int *out) {
    int t = (int)threadIdx.x;
    out[t] = in[t] + fresh[t]; // here
}
FAULT(unwritten_global, cudaErrorLaunchFailure, "nobody has written", FIRST(T, in[i]), int *fresh = new_ints(T);
      if (CORRECT) cudaMemset(fresh, 0, T * sizeof(int));
      unwritten_global<CORRECT><<<1, T>>>(fresh, in, out))

/* As tail_read_after_others, in global memory. */
template <bool CORRECT> __global__ void unwritten_after_others(const int *fresh, int *out) {
    int sum = 0;
    for (int i = 0; i < (CORRECT || global_thread() < 7 * T - 1 ? 7 : 8); i++) sum += fresh[i]; // here
    out[global_thread()] = sum;
}
FAULT(unwritten_after_others, cudaErrorLaunchFailure, "nobody has written",
      FIRST(7 * T, in[0] + in[1] + in[2] + in[3] + in[4] + in[5] + in[6]), int *fresh = new_ints(8);
      cudaMemcpy(fresh, in, 7 * sizeof *in, cudaMemcpyDeviceToDevice); unwritten_after_others<CORRECT><<<7, T>>>(fresh, out))

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
