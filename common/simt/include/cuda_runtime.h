/* The CUDA runtime API that the simulated device offers, under its own names, values and signatures, so that the same
 * host code (C or C++) and the same kernels build against this header or against the toolkit's.
 *
 * Everything runs synchronously: a launch has finished when it returns, and its failure is reported, as on a card, by
 * the next call that waits. As on a card too, an error inside a kernel is sticky: every later call returns it, until
 * cudaDeviceReset().
 */
#pragma once
#define __DRIVER_TYPES_H__ /* by these names NVIDIA's samples know what is included */
#define __CUDA_RUNTIME_H__

#include <stddef.h>
#include <stdio.h>
#include "vector_types.h"

__BEGIN_DECLS

/* X(error, its number, what cudaGetErrorString() says of it) */
#define SIMT_ERRORS(X)                                                                                                         \
    X(cudaSuccess, 0, "no error")                                                                                              \
    X(cudaErrorInvalidValue, 1, "invalid argument")                                                                            \
    X(cudaErrorMemoryAllocation, 2, "out of memory")                                                                           \
    X(cudaErrorInitializationError, 3, "initialization error")                                                                 \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                                                      \
    X(cudaErrorInvalidPitchValue, 12, "invalid pitch argument")                                                                \
    X(cudaErrorInvalidSymbol, 13, "invalid device symbol")                                                                     \
    X(cudaErrorInvalidDevicePointer, 17, "invalid device pointer")                                                             \
    X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                                                \
    X(cudaErrorInsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version")                         \
    X(cudaErrorMissingConfiguration, 52, "__global__ function call is not configured")                                         \
    X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                                                           \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                                                            \
    X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                                                   \
    X(cudaErrorPeerAccessUnsupported, 217, "peer access is not supported between these two devices")                           \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                                                          \
    X(cudaErrorNotReady, 600, "device not ready")                                                                              \
    X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                                                \
    X(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")                                           \
    X(cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated")                                                  \
    X(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")                                                \
    X(cudaErrorPeerAccessNotEnabled, 705, "peer access has not been enabled")                                                  \
    X(cudaErrorAssert, 710, "device-side assert triggered")                                                                    \
    X(cudaErrorHostMemoryAlreadyRegistered, 712, "part or all of the requested memory range is already mapped")                \
    X(cudaErrorHostMemoryNotRegistered, 713, "pointer does not correspond to a registered memory region")                      \
    X(cudaErrorIllegalInstruction, 715, "an illegal instruction was encountered")                                              \
    X(cudaErrorMisalignedAddress, 716, "misaligned address")                                                                   \
    X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                                                               \
    X(cudaErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch")                                        \
    X(cudaErrorNotSupported, 801, "operation not supported")                                                                   \
    X(cudaErrorUnknown, 999, "unknown error")
#define SIMT_ENUMERATOR(name, value, more) name = value,
typedef enum cudaError { SIMT_ERRORS(SIMT_ENUMERATOR) } cudaError_t;

enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9,
    cudaFuncAttributeNonPortableClusterSizeAllowed = 13,
    cudaFuncAttributeClusterSchedulingPolicyPreference = 14
};
typedef enum {
    cudaClusterSchedulingPolicyDefault,
    cudaClusterSchedulingPolicySpread,
    cudaClusterSchedulingPolicyLoadBalancing
} cudaClusterSchedulingPolicy;

/* X(attribute, its number, the member of struct cudaDeviceProp that holds it) */
#define SIMT_ATTRIBUTES(X)                                                                                                     \
    X(cudaDevAttrMaxThreadsPerBlock, 1, maxThreadsPerBlock)                                                                    \
    X(cudaDevAttrMaxBlockDimX, 2, maxThreadsDim[0])                                                                            \
    X(cudaDevAttrMaxBlockDimY, 3, maxThreadsDim[1])                                                                            \
    X(cudaDevAttrMaxBlockDimZ, 4, maxThreadsDim[2])                                                                            \
    X(cudaDevAttrMaxGridDimX, 5, maxGridSize[0])                                                                               \
    X(cudaDevAttrMaxGridDimY, 6, maxGridSize[1])                                                                               \
    X(cudaDevAttrMaxGridDimZ, 7, maxGridSize[2])                                                                               \
    X(cudaDevAttrMaxSharedMemoryPerBlock, 8, sharedMemPerBlock)                                                                \
    X(cudaDevAttrTotalConstantMemory, 9, totalConstMem)                                                                        \
    X(cudaDevAttrWarpSize, 10, warpSize)                                                                                       \
    X(cudaDevAttrMaxRegistersPerBlock, 12, regsPerBlock)                                                                       \
    X(cudaDevAttrClockRate, 13, clockRate)                                                                                     \
    X(cudaDevAttrGpuOverlap, 15, deviceOverlap)                                                                                \
    X(cudaDevAttrMultiProcessorCount, 16, multiProcessorCount)                                                                 \
    X(cudaDevAttrIntegrated, 18, integrated)                                                                                   \
    X(cudaDevAttrCanMapHostMemory, 19, canMapHostMemory)                                                                       \
    X(cudaDevAttrComputeMode, 20, computeMode)                                                                                 \
    X(cudaDevAttrConcurrentKernels, 31, concurrentKernels)                                                                     \
    X(cudaDevAttrEccEnabled, 32, ECCEnabled)                                                                                   \
    X(cudaDevAttrMemoryClockRate, 36, memoryClockRate)                                                                         \
    X(cudaDevAttrGlobalMemoryBusWidth, 37, memoryBusWidth)                                                                     \
    X(cudaDevAttrL2CacheSize, 38, l2CacheSize)                                                                                 \
    X(cudaDevAttrMaxThreadsPerMultiProcessor, 39, maxThreadsPerMultiProcessor)                                                 \
    X(cudaDevAttrAsyncEngineCount, 40, asyncEngineCount)                                                                       \
    X(cudaDevAttrUnifiedAddressing, 41, unifiedAddressing)                                                                     \
    X(cudaDevAttrComputeCapabilityMajor, 75, major)                                                                            \
    X(cudaDevAttrComputeCapabilityMinor, 76, minor)                                                                            \
    X(cudaDevAttrMaxSharedMemoryPerMultiprocessor, 81, sharedMemPerMultiprocessor)                                             \
    X(cudaDevAttrMaxRegistersPerMultiprocessor, 82, regsPerMultiprocessor)                                                     \
    X(cudaDevAttrManagedMemory, 83, managedMemory)                                                                             \
    X(cudaDevAttrPageableMemoryAccess, 88, pageableMemoryAccess)                                                               \
    X(cudaDevAttrConcurrentManagedAccess, 89, concurrentManagedAccess)                                                         \
    X(cudaDevAttrCooperativeLaunch, 95, cooperativeLaunch)                                                                     \
    X(cudaDevAttrMaxSharedMemoryPerBlockOptin, 97, sharedMemPerBlockOptin)
enum cudaDeviceAttr { SIMT_ATTRIBUTES(SIMT_ENUMERATOR) };

/* What the simulated device has none of is 0. */
struct cudaDeviceProp {
    char name[256]; /* "sim" */
    struct {
        char bytes[16];
    } uuid;
    size_t totalGlobalMem;
    size_t sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor, reservedSharedMemPerBlock;
    int regsPerBlock, regsPerMultiprocessor, warpSize;
    size_t memPitch;
    int maxThreadsPerBlock, maxThreadsPerMultiProcessor, maxBlocksPerMultiProcessor;
    int maxThreadsDim[3], maxGridSize[3];
    size_t totalConstMem, textureAlignment, texturePitchAlignment, surfaceAlignment;
    int multiProcessorCount; /* 8, however many CPU threads run blocks */
    int major, minor;
    int l2CacheSize, persistingL2CacheMaxSize;
    int clockRate, memoryClockRate, memoryBusWidth;
    int deviceOverlap, asyncEngineCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory, computeMode;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, unifiedAddressing;
    int managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, concurrentManagedAccess, pageableMemoryAccess;
    int cooperativeLaunch, cooperativeMultiDeviceLaunch, globalL1CacheSupported, localL1CacheSupported;
    int hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio, computePreemptionSupported;
    int streamPrioritiesSupported, canUseHostPointerForRegisteredMem, directManagedMemAccessFromHost;
    int pageableMemoryAccessUsesHostPageTables, accessPolicyMaxWindowSize;
    int maxTexture1D, maxTexture2D[2], maxTexture3D[3], maxTexture1DLinear, maxTexture1DLayered[2];
    int maxTexture2DLayered[3], maxSurface1D;
};

enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaSharedMemConfig { cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeFourByte, cudaSharedMemBankSizeEightByte };
/* clang-format off */
enum cudaMemcpyKind {
    cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault
};
enum cudaSharedCarveout {
    cudaSharedmemCarveoutDefault = -1, cudaSharedmemCarveoutMaxShared = 100, cudaSharedmemCarveoutMaxL1 = 0
};
enum cudaLimit {
    cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize, cudaLimitDevRuntimeSyncDepth,
    cudaLimitDevRuntimePendingLaunchCount
};
enum cudaComputeMode {
    cudaComputeModeDefault, cudaComputeModeExclusive, cudaComputeModeProhibited, cudaComputeModeExclusiveProcess
};
enum cudaMemoryAdvise {
    cudaMemAdviseSetReadMostly = 1, cudaMemAdviseUnsetReadMostly, cudaMemAdviseSetPreferredLocation,
    cudaMemAdviseUnsetPreferredLocation, cudaMemAdviseSetAccessedBy, cudaMemAdviseUnsetAccessedBy
};
/* What cudaGetDriverEntryPoint() says. It finds cuTensorMapEncodeTiled() only (cuda.h). */
typedef enum cudaDriverEntryPointQueryResult {
    cudaDriverEntryPointSuccess, cudaDriverEntryPointSymbolNotFound, cudaDriverEntryPointVersionNotSufficent
} cudaDriverEntryPointQueryResult;
/* Of a launch by cudaLaunchKernelEx(): other attributes are refused. */
typedef enum {
    cudaLaunchAttributeIgnore, cudaLaunchAttributeCooperative = 2, cudaLaunchAttributeClusterDimension = 4,
    cudaLaunchAttributeClusterSchedulingPolicyPreference = 5, cudaLaunchAttributePriority = 8
} cudaLaunchAttributeID;
enum {
    cudaDeviceScheduleAuto, cudaDeviceScheduleSpin, cudaDeviceScheduleYield, cudaDeviceScheduleBlockingSync = 4,
    cudaDeviceMapHost = 8, cudaDeviceLmemResizeToMax = 16
};
/* clang-format on */
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
struct cudaPointerAttributes {
    enum cudaMemoryType type;
    int device;
    void *devicePointer, *hostPointer;
};
struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes;
    int preferredShmemCarveout;
};

enum { cudaHostAllocDefault, cudaHostAllocPortable, cudaHostAllocMapped, cudaHostAllocWriteCombined = 4 };
enum { cudaHostRegisterDefault, cudaHostRegisterPortable, cudaHostRegisterMapped };
enum { cudaMemAttachGlobal = 1, cudaMemAttachHost };
enum { cudaStreamDefault, cudaStreamNonBlocking };
enum { cudaEventDefault, cudaEventBlockingSync, cudaEventDisableTiming, cudaEventInterprocess = 4 };
enum { cudaOccupancyDefault };
enum { cudaEnableDefault, cudaEnableLegacyStream, cudaEnablePerThreadDefaultStream };
enum { cudaCpuDeviceId = -1, cudaInvalidDeviceId = -2 };
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)
#define CUDART_VERSION 12080
#define CUDART_CB

typedef struct CUstream_st *cudaStream_t;

typedef union cudaLaunchAttributeValue {
    char pad[64];
    struct {
        unsigned x, y, z;
    } clusterDim;
    int cooperative, priority;
    cudaClusterSchedulingPolicy clusterSchedulingPolicyPreference;
} cudaLaunchAttributeValue;
typedef struct cudaLaunchAttribute_st {
    cudaLaunchAttributeID id;
    cudaLaunchAttributeValue val;
} cudaLaunchAttribute;
typedef struct cudaLaunchConfig_st {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
} cudaLaunchConfig_t;
typedef struct CUevent_st *cudaEvent_t;
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *data);
typedef void (*cudaHostFn_t)(void *data);
#ifdef __cplusplus
#define SIMT_DEFAULT(value) = value
#else
#define SIMT_DEFAULT(value)
typedef struct cudaDeviceProp cudaDeviceProp;
#endif

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
#ifdef SIMT_CONFINED /* the store is the caller's own: confined code hands over no pointer to write to */
static inline __attribute__((always_inline)) cudaError_t cudaGetDevice(int *device) {
    *device = simt_current_device();
    return cudaSuccess;
}
static inline __attribute__((always_inline)) cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute,
                                                                                int device) {
    int known = simt_device_attribute(attribute, device);
    *value = known;
    return known < 0 ? cudaErrorInvalidValue : cudaSuccess;
}
#else
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
#endif
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *found SIMT_DEFAULT(0));
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found SIMT_DEFAULT(0));
cudaError_t cudaRuntimeGetVersion(int *version);

cudaError_t cudaMalloc(void **pointer, size_t bytes);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream SIMT_DEFAULT(0));
cudaError_t cudaMemset(void *pointer, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream SIMT_DEFAULT(0));

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);

cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream SIMT_DEFAULT(0));
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t stop);

/* Page-locked and managed memory is device memory here that the host may touch. */
cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags SIMT_DEFAULT(cudaMemAttachGlobal));
cudaError_t cudaMallocHost(void **pointer, size_t bytes);
cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *pointer);
cudaError_t cudaHostGetDevicePointer(void **pointer, void *host, unsigned flags);
cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *pointer);
cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream);
cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height);
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream SIMT_DEFAULT(0));
cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height);
struct cudaPos {
    size_t x, y, z;
};
struct cudaExtent {
    size_t width, height, depth; /* the width in bytes */
};
struct cudaPitchedPtr {
    void *ptr;
    size_t pitch, xsize, ysize;
};
struct cudaMemcpy3DParms {
    void *srcArray; /* of textures: NULL */
    struct cudaPos srcPos;
    struct cudaPitchedPtr srcPtr;
    void *dstArray;
    struct cudaPos dstPos;
    struct cudaPitchedPtr dstPtr;
    struct cudaExtent extent;
    enum cudaMemcpyKind kind;
};
static inline struct cudaPos make_cudaPos(size_t x, size_t y, size_t z) {
    struct cudaPos pos = {x, y, z};
    return pos;
}
static inline struct cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) {
    struct cudaExtent extent = {width, height, depth};
    return extent;
}
static inline struct cudaPitchedPtr make_cudaPitchedPtr(void *pointer, size_t pitch, size_t width, size_t height) {
    struct cudaPitchedPtr pitched = {pointer, pitch, width, height};
    return pitched;
}
cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitched, struct cudaExtent extent);
cudaError_t cudaMemset3D(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent);
cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *parameters);
cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *parameters, cudaStream_t stream SIMT_DEFAULT(0));

typedef struct CUmemPoolHandle_st *cudaMemPool_t;
enum cudaMemPoolAttr {
    cudaMemPoolReuseFollowEventDependencies = 1,
    cudaMemPoolReuseAllowOpportunistic,
    cudaMemPoolReuseAllowInternalDependencies,
    cudaMemPoolAttrReleaseThreshold,
    cudaMemPoolAttrReservedMemCurrent,
    cudaMemPoolAttrReservedMemHigh,
    cudaMemPoolAttrUsedMemCurrent,
    cudaMemPoolAttrUsedMemHigh
};
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes);
cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream);
cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream SIMT_DEFAULT(0));
cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, int device, cudaStream_t stream SIMT_DEFAULT(0));
cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice, int device);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer);
cudaError_t simt_copy_symbol(const void *symbol, size_t symbol_bytes, const void *other, size_t bytes, size_t offset,
                             enum cudaMemcpyKind kind, enum cudaMemcpyKind direction, cudaStream_t stream, int waits);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags SIMT_DEFAULT(0));
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventQuery(cudaEvent_t event);

cudaError_t cudaThreadSynchronize(void);
cudaError_t cudaThreadExit(void);
cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *properties);
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache cache);
cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *cache);
cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config);
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value);
cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);
cudaError_t cudaFuncSetCacheConfig(const void *kernel, enum cudaFuncCache cache);
cudaError_t cudaFuncSetSharedMemConfig(const void *kernel, enum cudaSharedMemConfig config);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel);
/* By threads and shared memory; the simulated device knows no registers. */
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int threads, size_t shared);
/* Blocks in the largest cluster, and how many clusters of the launch's size run at once. */
cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *kernel, const cudaLaunchConfig_t *config);
cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *kernel, const cudaLaunchConfig_t *config);
/* From C, where the kernel's type is lost, refused; simt_device.h has the one for C++. All blocks run at once. */
cudaError_t cudaLaunchCooperativeKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                                        size_t shared SIMT_DEFAULT(0), cudaStream_t stream SIMT_DEFAULT(0));
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value);

#include "simulated.h"

__END_DECLS
#ifdef __cplusplus
#include "simt_device.h"
#if __cplusplus >= 201703L
#include "sm_30_intrinsics.h"
/* Words of simt_ptx.h that a program may have as macros (-DN=3). */
#pragma push_macro("A")
#undef A
#pragma push_macro("B")
#undef B
#pragma push_macro("C")
#undef C
#pragma push_macro("D")
#undef D
#pragma push_macro("E")
#undef E
#pragma push_macro("F")
#undef F
#pragma push_macro("H")
#undef H
#pragma push_macro("M")
#undef M
#pragma push_macro("N")
#undef N
#pragma push_macro("P")
#undef P
#pragma push_macro("Q")
#undef Q
#pragma push_macro("R")
#undef R
#pragma push_macro("S")
#undef S
#pragma push_macro("T")
#undef T
#pragma push_macro("U")
#undef U
#pragma push_macro("V")
#undef V
#pragma push_macro("OF_CALLER")
#undef OF_CALLER
#include "simt_ptx.h"
#pragma pop_macro("A")
#pragma pop_macro("B")
#pragma pop_macro("C")
#pragma pop_macro("D")
#pragma pop_macro("E")
#pragma pop_macro("F")
#pragma pop_macro("H")
#pragma pop_macro("M")
#pragma pop_macro("N")
#pragma pop_macro("P")
#pragma pop_macro("Q")
#pragma pop_macro("R")
#pragma pop_macro("S")
#pragma pop_macro("T")
#pragma pop_macro("U")
#pragma pop_macro("V")
#pragma pop_macro("OF_CALLER")
#endif
#endif
