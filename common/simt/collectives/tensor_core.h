/* The arithmetic of tensor cores for wgmma.c. */
#ifndef SIMT_TENSOR_CORE_H
#define SIMT_TENSOR_CORE_H

#include "machine.h"

/* C (16, columns) = A B, or with `add` C += A B. A (16, 16); B by its columns, of 16 each; C[lane] has four elements of each 8
 * columns, in the order of mma.sync. */
void mma_warp(bool bfloat16, uint16_t A[16][16], uint16_t (*B)[16], int columns, bool add, float *const C[WARP_SIZE]);

#endif
