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

// ---- 04_fa1_fwd: copy rows [first, first + count) of a (rows, d) matrix to a tile in shared memory, `stride` floats a row;
// rows past the end become zeros. All warps of the block take part, a row each in turn. No barrier.

template <int WARPS>
__device__ inline void load_tile(float *tile, int stride, const float *matrix, int first, int count, int rows, int d) {
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    for (int r = warp; r < count; r += WARPS)
        for (int c = lane; c < d; c += WARP)
            tile[r * stride + c] = first + r < rows ? matrix[(size_t)(first + r) * d + c] : 0.0f;
}

#endif
