/* Of the driver API: types, the calls that programs of the runtime API make, and tensor maps. It loads no modules. */
#pragma once
#include "cuda_runtime.h"
#define CUDA_VERSION CUDART_VERSION
typedef int CUdevice;
typedef enum cudaDeviceAttr CUdevice_attribute;
typedef struct CUctx_st *CUcontext;
typedef cudaStream_t CUstream;
typedef cudaEvent_t CUevent;
typedef unsigned long long CUdeviceptr;
typedef enum cudaError_enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_NOT_SUPPORTED = 801
} CUresult; /* the numbers of cudaError_t */
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;

/* ---- tensor maps: what cp.async.bulk.tensor copies by ---- */
#ifndef SIMT_TENSOR_MAP_ALIGNMENT /* 16 in confined code, whose stack frames are aligned to no more (confined/confine.awk) */
#define SIMT_TENSOR_MAP_ALIGNMENT 128
#endif
typedef struct CUtensorMap_st {
    cuuint64_t opaque[16] __attribute__((aligned(SIMT_TENSOR_MAP_ALIGNMENT)));
} CUtensorMap;
/* clang-format off */
typedef enum {
    CU_TENSOR_MAP_DATA_TYPE_UINT8, CU_TENSOR_MAP_DATA_TYPE_UINT16, CU_TENSOR_MAP_DATA_TYPE_UINT32, CU_TENSOR_MAP_DATA_TYPE_INT32,
    CU_TENSOR_MAP_DATA_TYPE_UINT64, CU_TENSOR_MAP_DATA_TYPE_INT64, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT64, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ,
    CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ
} CUtensorMapDataType;
typedef enum {
    CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_INTERLEAVE_16B, CU_TENSOR_MAP_INTERLEAVE_32B
} CUtensorMapInterleave;
typedef enum {
    CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_128B
} CUtensorMapSwizzle;
typedef enum {
    CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
    CU_TENSOR_MAP_L2_PROMOTION_L2_256B
} CUtensorMapL2promotion;
typedef enum { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA } CUtensorMapFloatOOBfill;
/* clang-format on */
#ifdef __cplusplus
extern "C"
#endif
    CUresult
    cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *sizes,
                           const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *element_strides,
                           CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                           CUtensorMapFloatOOBfill fill);

/* ---- calls that are the runtime's by other names; its one context is current always ---- */
#define SIMT_DRIVER(name, parameters, call)                                                                                    \
    static inline CUresult name parameters { return (CUresult)(call); }
static inline CUresult simt_context(CUcontext *context) {
    *context = (CUcontext)(uintptr_t)1;
    return CUDA_SUCCESS;
}
static inline CUresult simt_properties(struct cudaDeviceProp *properties, CUdevice device) {
    return (CUresult)cudaGetDeviceProperties(properties, device);
}
static inline CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    struct cudaDeviceProp properties;
    CUresult error = simt_properties(&properties, device);
    if (error == CUDA_SUCCESS && length > 0) snprintf(name, (size_t)length, "%s", properties.name);
    return error;
}
static inline CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    struct cudaDeviceProp properties;
    CUresult error = simt_properties(&properties, device);
    if (error == CUDA_SUCCESS) *bytes = properties.totalGlobalMem;
    return error;
}
static inline CUresult cuGetErrorName(CUresult error, const char **name) {
    *name = cudaGetErrorName((cudaError_t)error);
    return CUDA_SUCCESS;
}
static inline CUresult cuGetErrorString(CUresult error, const char **text) {
    *text = cudaGetErrorString((cudaError_t)error);
    return CUDA_SUCCESS;
}
SIMT_DRIVER(cuInit, (unsigned flags), flags == 0 ? cudaSuccess : cudaErrorInvalidValue)
SIMT_DRIVER(cuDriverGetVersion, (int *version), cudaDriverGetVersion(version))
SIMT_DRIVER(cuDeviceGetCount, (int *count), cudaGetDeviceCount(count))
SIMT_DRIVER(cuDeviceGet, (CUdevice * device, int number),
            (*device = number, cudaDeviceGetAttribute(&number, cudaDevAttrWarpSize, number)))
SIMT_DRIVER(cuDeviceGetAttribute, (int *value, CUdevice_attribute of, CUdevice device),
            cudaDeviceGetAttribute(value, of, device))
SIMT_DRIVER(cuCtxCreate, (CUcontext * context, unsigned flags, CUdevice device),
            ((void)flags, simt_context(context), cudaSetDevice(device)))
SIMT_DRIVER(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), ((void)device, simt_context(context)))
SIMT_DRIVER(cuDevicePrimaryCtxRelease, (CUdevice device), ((void)device, cudaSuccess))
SIMT_DRIVER(cuCtxDestroy, (CUcontext context), ((void)context, cudaSuccess))
SIMT_DRIVER(cuCtxSetCurrent, (CUcontext context), ((void)context, cudaSuccess))
SIMT_DRIVER(cuCtxGetCurrent, (CUcontext * context), simt_context(context))
SIMT_DRIVER(cuCtxGetDevice, (CUdevice * device), cudaGetDevice(device))
SIMT_DRIVER(cuCtxSynchronize, (void), cudaDeviceSynchronize())
SIMT_DRIVER(cuStreamSynchronize, (CUstream stream), cudaStreamSynchronize(stream))
SIMT_DRIVER(cuMemGetInfo, (size_t * free_bytes, size_t *total), cudaMemGetInfo(free_bytes, total))
SIMT_DRIVER(cuMemAlloc, (CUdeviceptr * pointer, size_t bytes), cudaMalloc((void **)pointer, bytes))
SIMT_DRIVER(cuMemFree, (CUdeviceptr pointer), cudaFree((void *)pointer))
SIMT_DRIVER(cuMemcpyHtoD, (CUdeviceptr to, const void *from, size_t bytes),
            cudaMemcpy((void *)to, from, bytes, cudaMemcpyHostToDevice))
SIMT_DRIVER(cuMemcpyDtoH, (void *to, CUdeviceptr from, size_t bytes),
            cudaMemcpy(to, (void *)from, bytes, cudaMemcpyDeviceToHost))
SIMT_DRIVER(cuMemcpyDtoD, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
            cudaMemcpy((void *)to, (void *)from, bytes, cudaMemcpyDeviceToDevice))
#define CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK cudaDevAttrMaxThreadsPerBlock
#define CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK cudaDevAttrMaxSharedMemoryPerBlock
#define CU_DEVICE_ATTRIBUTE_WARP_SIZE cudaDevAttrWarpSize
#define CU_DEVICE_ATTRIBUTE_CLOCK_RATE cudaDevAttrClockRate
#define CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT cudaDevAttrMultiProcessorCount
#define CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE cudaDevAttrMemoryClockRate
#define CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH cudaDevAttrGlobalMemoryBusWidth
#define CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR cudaDevAttrComputeCapabilityMajor
#define CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR cudaDevAttrComputeCapabilityMinor
