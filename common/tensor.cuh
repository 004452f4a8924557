/* Tensor cores with 16-bit elements: what chapters 10 and 11 share.
 *
 * mma.sync m16n8k16 computes C (16 x 8, fp32) += A (16 x 16) B (16 x 8) in one warp. Each lane holds parts of the three
 * matrices in registers: its fragments. With g = lane / 4 and t = lane % 4:
 *
 *       A: 4 registers, 2 elements each       B: 2 registers, 2 elements each        C: 4 registers, 1 float each
 *               k                                      n                                     n
 *             2t,2t+1  2t+8,2t+9                       g                                  2t   2t+1
 *         g  [  A0   |   A2  ]               2t,2t+1  [ B0 ]                          g  [ C0 | C1 ]
 *       g+8  [  A1   |   A3  ]               2t+8,+9  [ B1 ]                        g+8  [ C2 | C3 ]
 *
 * A row of C lies in the 4 lanes of a quad (lanes with one g). Two neighbouring C tiles, their pairs rounded to 16 bits, are
 * an A: A0 = C0 C1 and A1 = C2 C3 of the left tile, A2 and A3 of the right one.
 *
 * A 16 x 16 piece of a row-major matrix in shared memory is four 8 x 8 quadrants, one in each of four registers. In which order
 * depends on its part in the product, because the registers of a B must be neighbours:
 *
 *       A, and B from rows that are k (P V: a row is a key)      B from rows that are n (Q K^T: a row is a key)
 *                    [ 0 | 2 ]                                                [ 0 | 1 ]
 *                    [ 1 | 3 ]                                                [ 2 | 3 ]
 *
 * A piece for B serves two mma: registers 0 and 1 for the first 8 columns of C, 2 and 3 for the next 8. For P V each quadrant
 * is transposed, since a register of B holds two neighbours in k. */
#ifndef TENSOR_CUH
#define TENSOR_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "device.cuh"

constexpr float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;

// Two floats rounded to nearest, ties to even, in one register: `low` in the lower half.
template <class T> __device__ uint32_t pack(float low, float high);

template <> __device__ inline uint32_t pack<__nv_bfloat16>(float low, float high) {
    __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *(uint32_t *)&pair;
}

template <> __device__ inline uint32_t pack<__half>(float low, float high) {
    __half2 pair = __floats2half2_rn(low, high);
    return *(uint32_t *)&pair;
}

// Reductions over a quad: the lanes that share rows of C. Every lane gets the result; all 32 lanes must call.
__device__ inline float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(FULL_WARP, x, 1));
    return fmaxf(x, __shfl_xor_sync(FULL_WARP, x, 2));
}

__device__ inline float quad_sum(float x) {
    x += __shfl_xor_sync(FULL_WARP, x, 1);
    return x + __shfl_xor_sync(FULL_WARP, x, 2);
}

#endif
