/* The runtime API of include/cuda_runtime.h: errors, the device, memory, streams and events. */
#define _GNU_SOURCE
#include "api.h"

#include "device_memory.h"
#include "scheduler.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t host_threads = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* A kernel that calls the API must not wait for the host thread that launched it. */
int api_enter(void) { return simt_self == NULL && pthread_mutex_lock(&host_threads) == 0; }
void api_leave(int *entered) {
    if (*entered) pthread_mutex_unlock(&host_threads);
}

/* The error of the host thread's last call that failed without harm, as cudaGetLastError() tells it. */
static _Thread_local cudaError_t last_error;

cudaError_t api_remember(cudaError_t error) {
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (error != cudaSuccess) last_error = error;
    return error;
}

cudaError_t cudaPeekAtLastError(void) { return simt_sticky_error() != cudaSuccess ? simt_sticky_error() : last_error; }

bool api_launch_failed;

bool api_failed_launch_is_unnoticed(void) { return api_launch_failed && cudaPeekAtLastError() != cudaSuccess; }

cudaError_t cudaGetLastError(void) {
    cudaError_t error = cudaPeekAtLastError();
    last_error = cudaSuccess;
    return error;
}

/* ---- the device ------------------------------------------------------------------------------------------------------ */

/* SIMT_DEVICES says how many there are. They share all memory; SIMT_SHARED_KIB is the current one's, the others have 227.
 * Each host thread has its current one. */
static _Thread_local int current_device;

cudaError_t cudaGetDeviceCount(int *count) {
    const char *text = getenv("SIMT_DEVICES");
    char *end = NULL;
    long devices = text != NULL ? strtol(text, &end, 10) : 1;
    if (text != NULL && (end == text || *end != '\0' || devices < 1 || devices > 64)) {
        fprintf(stderr, "simulated device: SIMT_DEVICES is \"%s\": it must be 1 to 64\n", text);
        exit(2);
    }
    *count = (int)devices;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
    *device = current_device;
    return cudaSuccess;
}

static bool is_device(int device) {
    int count = 0;
    cudaGetDeviceCount(&count);
    return device >= 0 && device < count;
}

cudaError_t cudaSetDevice(int device) {
    if (!is_device(device)) return api_remember(cudaErrorInvalidDevice);
    current_device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    if (!is_device(device)) return api_remember(cudaErrorInvalidDevice);
    size_t most = device == current_device ? shared_most() : SHARED_BYTES_MAX;
    *properties = (struct cudaDeviceProp){
        .name = "sim",
        .totalGlobalMem = memory_total(),
        .sharedMemPerBlock = SHARED_BYTES_DEFAULT,
        .sharedMemPerBlockOptin = most,
        .sharedMemPerMultiprocessor = most + 1024,
        .reservedSharedMemPerBlock = 1024,
        .regsPerBlock = 65536,
        .regsPerMultiprocessor = 65536,
        .warpSize = WARP_SIZE,
        .memPitch = 2147483647,
        .maxThreadsPerBlock = MAX_BLOCK_THREADS,
        .maxThreadsPerMultiProcessor = 2048,
        .maxBlocksPerMultiProcessor = 32,
        .totalConstMem = 65536,
        .textureAlignment = 512,
        .canMapHostMemory = 1,
        .unifiedAddressing = 1,
        .managedMemory = 1,
        .concurrentManagedAccess = 1,
        .streamPrioritiesSupported = 1,
        .concurrentKernels = 1,
        .asyncEngineCount = 1,
        .cooperativeLaunch = 1,
        .maxThreadsDim = {1024, 1024, 64},
        .maxGridSize = {2147483647, 65535, 65535},
        .multiProcessorCount = (int)sysconf(_SC_NPROCESSORS_ONLN),
        .major = 9,
        .minor = 0,
        .l2CacheSize = 1 << 20,
    };
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    struct cudaDeviceProp properties = {0};
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error != cudaSuccess) return error;
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = properties.maxThreadsPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = SHARED_BYTES_DEFAULT; break;
    case cudaDevAttrMaxBlockDimX: *value = properties.maxThreadsDim[0]; break;
    case cudaDevAttrMaxBlockDimY: *value = properties.maxThreadsDim[1]; break;
    case cudaDevAttrMaxBlockDimZ: *value = properties.maxThreadsDim[2]; break;
    case cudaDevAttrMaxGridDimX: *value = properties.maxGridSize[0]; break;
    case cudaDevAttrMaxGridDimY: *value = properties.maxGridSize[1]; break;
    case cudaDevAttrMaxGridDimZ: *value = properties.maxGridSize[2]; break;
    case cudaDevAttrTotalConstantMemory: *value = (int)properties.totalConstMem; break;
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = properties.regsPerMultiprocessor; break;
    case cudaDevAttrAsyncEngineCount: *value = properties.asyncEngineCount; break;
    case cudaDevAttrMaxRegistersPerBlock: *value = properties.regsPerBlock; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = properties.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = (int)properties.sharedMemPerMultiprocessor; break;
    case cudaDevAttrManagedMemory:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrConcurrentManagedAccess: *value = 1; break;
    case cudaDevAttrComputeMode:
    case cudaDevAttrIntegrated:
    case cudaDevAttrEccEnabled:
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrMemoryClockRate:
    case cudaDevAttrGlobalMemoryBusWidth: *value = 0; break;
    case cudaDevAttrWarpSize: *value = WARP_SIZE; break;
    case cudaDevAttrClockRate: *value = 0; break;
    case cudaDevAttrMultiProcessorCount: *value = properties.multiProcessorCount; break;
    case cudaDevAttrL2CacheSize: *value = properties.l2CacheSize; break;
    case cudaDevAttrComputeCapabilityMajor: *value = properties.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = properties.minor; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)properties.sharedMemPerBlockOptin; break;
    default: return api_remember(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

static unsigned long waits;

unsigned long simt_waits(void) { return waits; }

cudaError_t cudaDeviceSynchronize(void) {
    waits++;
    return simt_sticky_error();
}

cudaError_t cudaDeviceReset(void) {
    ONE_HOST_THREAD;
    simt_clear_error();
    api_launch_failed = false;
    last_error = cudaSuccess;
    memory_free_all();
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = 0;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = 0;
    return cudaSuccess;
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    ONE_HOST_THREAD;
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (pointer == NULL) return api_remember(cudaErrorInvalidValue);
    *pointer = NULL;
    if (bytes == 0) return cudaSuccess;
    scheduler_catch_signals(); /* the host may take the pointer for one of its own */
    *pointer = memory_allocate(bytes);
    return *pointer != NULL ? cudaSuccess : api_remember(cudaErrorMemoryAllocation);
}

void *simt_reserve(size_t bytes) {
    ONE_HOST_THREAD;
    scheduler_catch_signals();
    return memory_reserve(bytes);
}

cudaError_t cudaFree(void *pointer) {
    ONE_HOST_THREAD;
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (pointer == NULL || memory_free(pointer)) return cudaSuccess;
    return api_remember(cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    *total_bytes = memory_total();
    *free_bytes = memory_total() - memory_in_use();
    return simt_sticky_error();
}

static cudaError_t copy_memory(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    ONE_HOST_THREAD;
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (bytes == 0) return cudaSuccess;
    const struct allocation *to_allocation = memory_find((uintptr_t)to),
                            *from_allocation = memory_find((uintptr_t)from);
    bool to_device = to_allocation != NULL, from_device = from_allocation != NULL;
    /* What is shared may stand on either side. */
    bool to_any = to_device && to_allocation->shared_with_host,
         from_any = from_device && from_allocation->shared_with_host;
    bool wants_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool wants_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    switch (kind) {
    case cudaMemcpyHostToHost:
    case cudaMemcpyHostToDevice:
    case cudaMemcpyDeviceToHost:
    case cudaMemcpyDeviceToDevice:
        if ((wants_to != to_device && !to_any) || (wants_from != from_device && !from_any))
            return api_remember(cudaErrorInvalidValue);
        break;
    case cudaMemcpyDefault: break;
    default: return api_remember(cudaErrorInvalidMemcpyDirection);
    }
    if ((to_device && !memory_contains(to, bytes)) || (from_device && !memory_contains(from, bytes)))
        return api_remember(cudaErrorInvalidValue);
    memory_open(to), memory_open(from);
    memcpy(to, from, bytes);
    memory_close(to), memory_close(from);
    if (to_device) memory_written_by_host(to, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    simt_note_stream(NULL);
    waits++;
    return copy_memory(to, from, bytes, kind);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
    simt_note_stream(stream);
    if (api_call_is_to_fail()) return api_remember(cudaErrorInvalidValue);
    return copy_memory(to, from, bytes, kind);
}

static cudaError_t set_memory(void *pointer, int value, size_t bytes) {
    ONE_HOST_THREAD;
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (api_call_is_to_fail()) return api_remember(cudaErrorInvalidValue);
    if (bytes == 0 || api_parts == 0) return cudaSuccess;
    if (!memory_contains(pointer, bytes)) return api_remember(cudaErrorInvalidValue);
    if (memory_forget(pointer, value, bytes)) return cudaSuccess;
    memory_open(pointer);
    memset(pointer, value, bytes);
    memory_close(pointer);
    memory_written_by_host(pointer, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *pointer, int value, size_t bytes) {
    simt_note_stream(NULL);
    return set_memory(pointer, value, bytes);
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream) {
    simt_note_stream(stream);
    return set_memory(pointer, value, bytes);
}

/* ---- streams and events: all work is done when its call returns ------------------------------------------------------- */

struct CUstream_st {
    int unused;
};
struct CUevent_st {
    struct timespec time;
    bool recorded;
};

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    *stream = calloc(1, sizeof **stream);
    return *stream != NULL ? simt_sticky_error() : api_remember(cudaErrorMemoryAllocation);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    free(stream);
    return simt_sticky_error();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    (void)stream;
    waits++;
    return simt_sticky_error();
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    *event = calloc(1, sizeof **event);
    return *event != NULL ? simt_sticky_error() : api_remember(cudaErrorMemoryAllocation);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    free(event);
    return simt_sticky_error();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    (void)stream;
    if (event == NULL) return api_remember(cudaErrorInvalidResourceHandle);
    clock_gettime(CLOCK_MONOTONIC, &event->time);
    event->recorded = true;
    return simt_sticky_error();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    waits++;
    return event != NULL ? simt_sticky_error() : api_remember(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t stop) {
    if (start == NULL || stop == NULL || !start->recorded || !stop->recorded)
        return api_remember(cudaErrorInvalidResourceHandle);
    *milliseconds = (float)((double)(stop->time.tv_sec - start->time.tv_sec) * 1e3 +
                            (double)(stop->time.tv_nsec - start->time.tv_nsec) * 1e-6);
    return simt_sticky_error();
}
