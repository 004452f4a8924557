/* Kernels whose requests, sectors and wavefronts are known exactly; pointers are to device memory. */
#ifndef METER_KERNELS_H
#define METER_KERNELS_H

#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MATRIX = 512 }; /* rows and columns of the matrix that is transposed, by blocks of 32 x 8 threads */
enum transpose { TRANSPOSE_NAIVE, TRANSPOSE_TILE_32, TRANSPOSE_TILE_33, TRANSPOSE_WITHOUT_BARRIER };
void run_transpose_of(enum transpose kind, const float *in, float *out);

/* One warp; each lane stores to the word (wide: the float2) number lane * stride and reads it back. */
void run_shared_stride(int *out, int stride);
void run_shared_pick(const int *pick, int *out); /* lane reads word pick[lane] of 1024 words */
void run_shared_wide(float *out, int stride);
void run_shared_float2(const int *pick, float *out); /* lane reads float2 number pick[lane] of 64 */
void run_shared_float4(const int *pick, float *out); /* lane reads float4 number pick[lane] of 560 */

/* One warp: out[lane] = in[lane * stride + offset], and out[lane * stride + offset] = in[lane] */
void run_global_load(const int *in, int *out, int stride, int offset);
void run_global_store(const int *in, int *out, int stride, int offset);
void run_global_float4(const float *in, float *out);
void run_global_float4_pick(const int *pick, const float *in, float *out); /* lane reads float4 number pick[lane] */

void run_vector_atomics(float *sums); /* two warps: 1, 2, 3, 4 added to each four of 128 floats */
void run_atomics_on(int *global, int same); /* one warp: each lane its own word, or all the first; shared ones too */
void run_events(int *out);                  /* 2 blocks of 64: 3 barriers, 5 shuffles a warp */
void run_divergence(const int *in, int *out);
/* One warp copies the first `columns` of each row of a (rows, 64) matrix, then all lanes store once. */
void run_ragged_rows(const int *in, int *out, int rows, int columns);
void run_trailing_branch(const int *in, int *out, int rounds); /* one warp: all load, then lane 0 stores; and again */
void run_local_array(const int *in, int *out); /* 64 threads, arrays of 16 ints */
void run_async(const float *in, float *out);   /* one warp copies 16 bytes a lane, then 4 bytes a lane */
/* One warp copies, loads and stores; it waits for the copy at the end, or `at_once`. */
void run_async_overlapped(const float *in, float *out, int at_once);
/* One warp copies two rows of 64 floats to rows of `stride` floats. */
void run_async_rows(const float *in, float *out, int stride);
void run_async_words(const float *in, float *out, int shift); /* one warp copies 32 floats, the first one to tile[shift] */
void run_async_strided(const char *in, char *out, int bytes, int stride); /* one warp, a lane's bytes `stride` apart */
void run_async_words_or_zeros(const float *in, float *out, int count); /* `count` lanes copy, the others write 0 */
void run_load_or_zeros(const float *in, float *out, int count); /* `count` lanes load 16 bytes each */
void run_add(const int *in, int *out, int blocks); /* out[i] += in[i], blocks of 64 */
void run_warp_of_ten(const int *in, int *out);     /* 10 threads: a warp without the other lanes */

#ifdef __cplusplus
}
#endif

#endif
