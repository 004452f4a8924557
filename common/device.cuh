/* Device helpers that more than one chapter uses, each under the chapter that introduces it. */
#ifndef DEVICE_CUH
#define DEVICE_CUH

constexpr int WARP = 32;
constexpr unsigned FULL_WARP = 0xffffffffu;

// ---- 02_tiled_matmul: reductions over a warp. Every lane gets the result; all 32 lanes must call. Each round adds the
// value of the lane whose number differs in one bit, so that after five rounds every lane has met all 32.

__device__ inline float warp_reduce_max(float x) {
    for (int bit = WARP / 2; bit > 0; bit /= 2) x = fmaxf(x, __shfl_xor_sync(FULL_WARP, x, bit));
    return x;
}

__device__ inline float warp_reduce_sum(float x) {
    for (int bit = WARP / 2; bit > 0; bit /= 2) x += __shfl_xor_sync(FULL_WARP, x, bit);
    return x;
}

#endif
