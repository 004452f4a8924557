// What the planted faults with tensor maps share.
#ifndef TENSORS_H
#define TENSORS_H

#include "faults.h"

#include "hopper.cuh"

// A tile is 8 rows of 32 ints, 1024 bytes; `in` is a tensor of 24 such rows.
enum { TILE = 256, ROWS = 8, COLUMNS = 32, TILE_BYTES = TILE * 4 };

struct shape {
    CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_INT32;
    int columns = COLUMNS, rows = 24, stride = 4 * COLUMNS, box_rows = ROWS;
    CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
};

static CUtensorMap map_of(const int *in, shape s = {}) {
    CUtensorMap map = {};
    void *function = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    cuuint64_t sizes[] = {(cuuint64_t)s.columns, (cuuint64_t)s.rows, 1},
               strides[] = {(cuuint64_t)s.stride, (cuuint64_t)s.stride * s.rows};
    cuuint32_t box[] = {(cuuint32_t)s.columns, (cuuint32_t)s.box_rows, 1}, every[] = {1, 1, 1};
    CUresult result = ((decltype(&cuTensorMapEncodeTiled))function)(
        &map, s.type, 3, (void *)in, sizes, strides, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, s.swizzle,
        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    cr_assert_eq(result, CUDA_SUCCESS);
    return map;
}

#define MAP const __grid_constant__ CUtensorMap map
extern __shared__ __align__(1024) int smem[]; // the tile, and what else a kernel needs

__device__ static void ready(uint64_t *barrier, int count, bool fences = true) {
    if (threadIdx.x == 0) {
        mbarrier_init(barrier, count);
        if (fences) fence_mbarrier_init();
    }
    __syncthreads();
}

enum { ONES_BYTES = 64 * 128 }; // a tile of 64 rows of 64 elements of 16 bits

// A ring of stages: one is full when its copy has landed, and empty when all who read it have said so.
constexpr int STAGES = 2, ROUNDS = 6;

struct ring {
    uint64_t full[STAGES], empty[STAGES];
};

__device__ static void start_ring(ring *r, int readers) {
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            mbarrier_init(r->full + s, 1);
            mbarrier_init(r->empty + s, readers);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
}

#endif
