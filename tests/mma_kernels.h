/* Kernels of one tensor-core instruction each: test_mma.c says what they must compute. One warp per block; pointers are to
 * device memory; 16-bit elements travel as their bits. */
#ifndef MMA_KERNELS_H
#define MMA_KERNELS_H

#include <cuda_runtime.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* C += A B, `rounds` times in a row, for each of `count` problems: C (16, 8) floats; A (16, K) and B (K, 8), K = 16 for the
 * first two and 8 for TF32, as the 32-bit words of a matrix of 16-bit elements or of floats; B transposed: (8, K). */
enum mma_format { MMA_HALF, MMA_BFLOAT16, MMA_TF32, MMA_FORMATS };
void run_mma(enum mma_format format, int count, int rounds, const uint32_t *A, const uint32_t *B, float *C);

/* Lane l names row pick[l] of in (64, 8); out: `matrices` registers per lane, (32, matrices). */
void run_ldmatrix(int matrices, int transposed, const uint16_t *in, const int *pick, uint32_t *out);
/* The other way: in (32, 4) registers, out (64, 8), of which the rows that are not picked keep 0xffff. */
void run_stmatrix(int transposed, const uint32_t *in, const int *pick, uint16_t *out);
/* One warp: row r of the matrices is r * stride_bytes into shared memory, at most 4096 bytes. */
void run_ldmatrix_stride(int matrices, int stride_bytes, uint32_t *out);
void run_stmatrix_stride(int stride_bytes, uint32_t *out);

/* D = A B + C by WMMA, D, C (16, 16) floats, A and B (16, 16), each in its own order of storage; through shared memory, or
 * straight from and to global memory. Rows are `stride` elements apart, in all matrices. */
void run_wmma(enum mma_format format, int A_by_columns, int B_by_columns, int C_by_columns, int in_shared, int stride,
              const uint16_t *A, const uint16_t *B, const float *C, float *D);

void run_exp2_approx(const float *in, float *out, int count); /* a multiple of 32 */

#ifdef __cplusplus
}
#endif

#endif
