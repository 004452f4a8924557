/* stamp_kernels.cu, for test_stamps.c. */
#ifndef STAMP_KERNELS_H
#define STAMP_KERNELS_H

#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

void run_store(int *data, int threads);
void run_load(int *data, int *out, int threads); /* thread i reads what thread threads - 1 - i stored */
void run_nothing(void);
void run_far_apart(int *out, int barriers, int ordered);
void run_far_apart_global(int *out, int barriers);
void run_alternating(int *out, int blocks);
void run_every(int *out, unsigned distance, unsigned blocks); /* the first block of so many writes one word */
void run_grid(const unsigned grid[3]);
cudaError_t run_grid_barriers(int *data, int rounds); /* 8 elements for each round */

#ifdef __cplusplus
}
#endif

#endif
