/* cuTensorMapEncodeTiled(), and the lookup by which programs find it that do not link the driver's library. What a map may be is
 * checked as the driver does (CUDA Driver API, "Tensor Map Object Management"). */
#include "api.h"
#include "cuda.h"
#include "tensor_map.h"

/* The driver says no more than CUDA_ERROR_INVALID_VALUE. */
static CUresult refuse(const char *why) {
    fprintf(stderr, "simulated device: cuTensorMapEncodeTiled(): %s\n", why);
    return CUDA_ERROR_INVALID_VALUE;
}

static const uint8_t element_bytes[] = {
    [CU_TENSOR_MAP_DATA_TYPE_UINT8] = 1,    [CU_TENSOR_MAP_DATA_TYPE_UINT16] = 2,      [CU_TENSOR_MAP_DATA_TYPE_UINT32] = 4,
    [CU_TENSOR_MAP_DATA_TYPE_INT32] = 4,    [CU_TENSOR_MAP_DATA_TYPE_UINT64] = 8,      [CU_TENSOR_MAP_DATA_TYPE_INT64] = 8,
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT16] = 2,  [CU_TENSOR_MAP_DATA_TYPE_FLOAT32] = 4,     [CU_TENSOR_MAP_DATA_TYPE_FLOAT64] = 8,
    [CU_TENSOR_MAP_DATA_TYPE_BFLOAT16] = 2, [CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ] = 4, [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32] = 4,
};

static const char *wrong_sizes(const struct tensor_map *map, const cuuint64_t *strides, const cuuint32_t *box,
                               const cuuint32_t *element_strides) {
    for (int d = 0; d < map->rank; d++) {
        if (map->sizes[d] == 0 || map->sizes[d] > 1ull << 32) return "a size of the tensor is 0 or more than 2^32";
        if (box[d] == 0 || box[d] > 256) return "a side of the box is not from 1 to 256";
        if (element_strides[d] == 0 || element_strides[d] > 8) return "a stride of elements is not from 1 to 8";
        if (element_strides[d] != 1) return "the simulated device has no strides of elements but 1";
        if (d + 1 == map->rank) break;
        if (strides[d] % 16 != 0 || strides[d] >= 1ull << 40) return "a stride is no multiple of 16 bytes below 2^40";
    }
    unsigned span = map->swizzle * 16, row = box[0] * map->element_bytes;
    if (row % 16 != 0) return "a row of the box is no multiple of 16 bytes";
    if (map->swizzle > 1 && row > span) return "a row of the box is wider than the swizzle";
    return NULL;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *result, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    (void)promotion;
    static const uint8_t swizzles[] = {1, 2, 4, 8};
    if (result == NULL || (uintptr_t)result % TENSOR_MAP_ALIGNMENT != 0)
        return refuse("the map is not at a multiple of 64 bytes");
    if (rank < 1 || rank > MOST_DIMENSIONS) return refuse("there are tensors of 1 to 5 dimensions");
    if ((uintptr_t)address % 16 != 0) return refuse("the tensor does not begin at a multiple of 16 bytes");
    if ((unsigned)type >= sizeof element_bytes || (unsigned)swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
        return refuse("an unknown type or swizzle");
    if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
        return refuse("the simulated device has neither interleaved tensors nor a fill by NaN");
    struct tensor_map map = {.magic = TENSOR_MAP_MAGIC,
                             .rank = (uint8_t)rank,
                             .element_bytes = element_bytes[type],
                             .swizzle = swizzles[swizzle],
                             .address = (uintptr_t)address};
    for (unsigned d = 0; d < rank; d++) {
        map.sizes[d] = sizes[d];
        map.strides[d] = d == 0 ? map.element_bytes : strides[d - 1];
        map.box[d] = (uint16_t)box[d];
    }
    const char *why = wrong_sizes(&map, strides, box, element_strides);
    if (why != NULL) return refuse(why);
    memset(result, 0, sizeof *result);
    memcpy(result, &map, sizeof map);
    return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found) {
    if (symbol == NULL || function == NULL) return api_remember(cudaErrorInvalidValue);
    if (api_call_is_to_fail()) return api_remember(cudaErrorInvalidValue);
    bool is_known = strcmp(symbol, "cuTensorMapEncodeTiled") == 0;
    *function = is_known && version >= 12000 ? (void *)(uintptr_t)cuTensorMapEncodeTiled : NULL;
    if (found != NULL)
        *found = !is_known         ? cudaDriverEntryPointSymbolNotFound
                 : version < 12000 ? cudaDriverEntryPointVersionNotSufficent
                                   : cudaDriverEntryPointSuccess;
    return simt_sticky_error();
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *found) {
    return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, found);
}
