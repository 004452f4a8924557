// Split keys: how many splits, and the kernel that combines their parts of O.
#ifndef SPLITS_CUH
#define SPLITS_CUH

#include <math.h>

#include "device.cuh"
#include "tensor.cuh"

// In units of the time in which each block of a full card receives a tile of K and V, fitted to 100 shapes on an H200: for
// the first tile of a wave to arrive; for a tile of a block that has its multiprocessor to itself; how much more when two
// blocks share it; how much more, as a factor, for each further row tile of the block; to start the second kernel; for
// each split in it; for a part of O as large as a tile, to be written and read.
constexpr float FILL = 1.2f, ALONE = 0.4f, SHARED = 0.36f, ROW_TILE = 0.26f, START = 3.1f, VISIT = 0.046f, PART = 9.0f;
constexpr int MOST_SPLITS = 512;

// The number of splits with the least time. One split has `blocks` blocks with `rows` rows each; `per` blocks run at once
// on a multiprocessor. A tile of a wave takes as long as memory needs for the bytes of all its blocks, or as the
// multiprocessor with the most blocks needs to compute, whichever is longer.
inline int best_splits(int blocks, int rows, int N_kv, int Bc, int multiprocessors, int per) {
    int slots = multiprocessors * per, tiles = ceil_div(N_kv, Bc), best = 1;
    float least = INFINITY, row_tiles = rows <= 16 ? 1.0f : rows <= 32 ? 2.0f : 4.0f;
    auto computing = [&](int n) { // n blocks on one multiprocessor; where four fit, a tile is half as large
        return (ALONE + SHARED * (float)(n - 1) * 2.0f / (float)per) * (1.0f + ROW_TILE * (row_tiles - 1.0f));
    };
    for (int s = 1; s <= tiles && s <= MOST_SPLITS; s++) {
        int full = blocks * s / slots, rest = blocks * s % slots; // full waves, and the blocks of the last one
        float last = rest > 0 ? fmaxf(computing(ceil_div(rest, multiprocessors)), (float)rest / (float)slots) : 0.0f;
        float time = (float)ceil_div(tiles, s) * ((float)full * fmaxf(computing(per), 1.0f) + last);
        time += FILL * (float)ceil_div(blocks * s, slots);
        float parts = (float)(blocks * s) * (float)rows / ((float)slots * (float)Bc);
        if (s > 1) time += START + VISIT * (float)s + PART * parts;
        if (time < least) least = time, best = s;
    }
    return best;
}

// O = sum over the splits of 2^(L_s - L) O_s, with 2^L = sum of 2^L_s. One block per row: each warp takes every
// WARPS-th split, each lane 4 columns.
template <int WARPS, class T>
static __global__ __launch_bounds__(WARPS *WARP) void combine_kernel(const float *O_part, // (splits, rows, d)
                                                                     const float *L_part, // (splits, rows)
                                                                     T *O,                // (rows, d)
                                                                     float *L,            // (rows)
                                                                     int splits, int d) {
    __shared__ float4 sum_smem[WARPS][WARP];
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, col = 4 * lane;
    size_t row = blockIdx.x, rows = gridDim.x;
    float m = -INFINITY, l = 0.0f, sum[4] = {};
    for (int s = lane; s < splits; s += WARP) m = fmaxf(m, L_part[s * rows + row]);
    m = warp_reduce_max(m);
    if (m == -INFINITY) m = 0.0f; // the row attends to no key, or all that count are NaN
    for (int s = lane; s < splits; s += WARP) l += exp2_approx(L_part[s * rows + row] - m);
    l = warp_reduce_sum(l);
    bool any = l != 0.0f; // the row attends to a key in some split
    if (col < d && any)
#pragma unroll 8
        for (int s = warp; s < splits; s += WARPS) {
            float weight = exp2_approx(L_part[s * rows + row] - m), part[4];
            load4(part, O_part + (s * rows + row) * d + col);
            for (int c = 0; c < 4; c++) sum[c] += weight * part[c];
        }
    sum_smem[warp][lane] = make_float4(sum[0], sum[1], sum[2], sum[3]);
    __syncthreads(); // every warp's sum is there
    if ((int)threadIdx.x < d) {
        float total = 0.0f;
        for (int w = 0; w < WARPS; w++) total += ((const float *)sum_smem[w])[threadIdx.x];
        O[row * d + threadIdx.x] = (T)(any ? total / l : 0.0f);
    }
    if (threadIdx.x == 0) L[row] = any ? (m + log2f(l)) * LN_2 : -INFINITY;
}

#endif
