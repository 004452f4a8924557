/* The runtime API of include/cuda_runtime.h. */
#define _GNU_SOURCE
#include "simt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The error of the last call that failed without harm, as cudaGetLastError() tells it. */
static cudaError_t last_error;

static cudaError_t remember(cudaError_t error) {
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (error != cudaSuccess) last_error = error;
    return error;
}

cudaError_t cudaPeekAtLastError(void) { return simt_sticky_error() != cudaSuccess ? simt_sticky_error() : last_error; }

cudaError_t cudaGetLastError(void) {
    cudaError_t error = cudaPeekAtLastError();
    last_error = cudaSuccess;
    return error;
}

static const struct {
    cudaError_t error;
    const char *name, *text;
} error_texts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInvalidDevicePointer, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {cudaErrorAssert, "cudaErrorAssert", "device-side assert triggered"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
};

const char *cudaGetErrorName(cudaError_t error) {
    for (size_t i = 0; i < sizeof error_texts / sizeof *error_texts; i++)
        if (error_texts[i].error == error) return error_texts[i].name;
    return "cudaErrorUnknown";
}

const char *cudaGetErrorString(cudaError_t error) {
    for (size_t i = 0; i < sizeof error_texts / sizeof *error_texts; i++)
        if (error_texts[i].error == error) return error_texts[i].text;
    return "unknown error";
}

/* ---- the device ------------------------------------------------------------------------------------------------------ */

cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : remember(cudaErrorInvalidDevice); }

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    if (device != 0) return remember(cudaErrorInvalidDevice);
    *properties = (struct cudaDeviceProp){
        .name = "sim",
        .totalGlobalMem = memory_total(),
        .sharedMemPerBlock = SHARED_BYTES_DEFAULT,
        .sharedMemPerBlockOptin = SHARED_BYTES_MAX,
        .warpSize = WARP_SIZE,
        .maxThreadsPerBlock = MAX_BLOCK_THREADS,
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
    case cudaDevAttrWarpSize: *value = WARP_SIZE; break;
    case cudaDevAttrClockRate: *value = 0; break;
    case cudaDevAttrMultiProcessorCount: *value = properties.multiProcessorCount; break;
    case cudaDevAttrL2CacheSize: *value = properties.l2CacheSize; break;
    case cudaDevAttrComputeCapabilityMajor: *value = properties.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = properties.minor; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = SHARED_BYTES_MAX; break;
    default: return remember(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) { return simt_sticky_error(); }

cudaError_t cudaDeviceReset(void) {
    simt_clear_error();
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
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (pointer == NULL) return remember(cudaErrorInvalidValue);
    *pointer = NULL;
    if (bytes == 0) return cudaSuccess;
    *pointer = memory_allocate(bytes);
    return *pointer != NULL ? cudaSuccess : remember(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *pointer) {
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (pointer == NULL || memory_free(pointer)) return cudaSuccess;
    return remember(cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    *total_bytes = memory_total();
    *free_bytes = memory_total() - memory_in_use();
    return simt_sticky_error();
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (bytes == 0) return cudaSuccess;
    bool to_device = memory_find((uintptr_t)to) != NULL, from_device = memory_find((uintptr_t)from) != NULL;
    switch (kind) {
    case cudaMemcpyHostToHost:
        if (to_device || from_device) return remember(cudaErrorInvalidValue);
        break;
    case cudaMemcpyHostToDevice:
        if (!to_device || from_device) return remember(cudaErrorInvalidValue);
        break;
    case cudaMemcpyDeviceToHost:
        if (to_device || !from_device) return remember(cudaErrorInvalidValue);
        break;
    case cudaMemcpyDeviceToDevice:
        if (!to_device || !from_device) return remember(cudaErrorInvalidValue);
        break;
    case cudaMemcpyDefault: break;
    default: return remember(cudaErrorInvalidMemcpyDirection);
    }
    if ((to_device && !memory_contains(to, bytes)) || (from_device && !memory_contains(from, bytes)))
        return remember(cudaErrorInvalidValue);
    memcpy(to, from, bytes);
    if (to_device) memory_written_by_host(to, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)stream;
    return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaMemset(void *pointer, int value, size_t bytes) {
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (bytes == 0) return cudaSuccess;
    if (!memory_contains(pointer, bytes)) return remember(cudaErrorInvalidValue);
    memset(pointer, value, bytes);
    memory_written_by_host(pointer, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream) {
    (void)stream;
    return cudaMemset(pointer, value, bytes);
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
    return *stream != NULL ? simt_sticky_error() : remember(cudaErrorMemoryAllocation);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    free(stream);
    return simt_sticky_error();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    (void)stream;
    return simt_sticky_error();
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    *event = calloc(1, sizeof **event);
    return *event != NULL ? simt_sticky_error() : remember(cudaErrorMemoryAllocation);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    free(event);
    return simt_sticky_error();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    (void)stream;
    if (event == NULL) return remember(cudaErrorInvalidResourceHandle);
    clock_gettime(CLOCK_MONOTONIC, &event->time);
    event->recorded = true;
    return simt_sticky_error();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return event != NULL ? simt_sticky_error() : remember(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t stop) {
    if (start == NULL || stop == NULL || !start->recorded || !stop->recorded)
        return remember(cudaErrorInvalidResourceHandle);
    *milliseconds = (float)((double)(stop->time.tv_sec - start->time.tv_sec) * 1e3 +
                            (double)(stop->time.tv_nsec - start->time.tv_nsec) * 1e-6);
    return simt_sticky_error();
}

/* ---- launches ---------------------------------------------------------------------------------------------------------- */

static unsigned shuffle_seed;
static uint64_t launches;

void simt_shuffle_blocks(unsigned seed) { shuffle_seed = seed; }

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b) {
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Block i runs as number (i * step + offset) % blocks: every block once when step and blocks have no common divisor. */
static void choose_order(struct launch *launch) {
    launch->step = 1;
    launch->offset = 0;
    if (shuffle_seed == 0 || launch->blocks < 2) return;
    uint64_t random = (shuffle_seed + launch->number) * 0x9e3779b97f4a7c15u;
    launch->offset = (random >> 32) % launch->blocks;
    launch->step = (random & 0xffff) % launch->blocks + 1;
    while (greatest_common_divisor(launch->step, launch->blocks) != 1) launch->step++;
}

/* Kernels allowed more than SHARED_BYTES_DEFAULT of dynamic shared memory. */
static struct shared_limit {
    const void *kernel;
    size_t bytes;
} shared_limits[256];
static int shared_limit_count;

static struct shared_limit *find_limit(const void *kernel) {
    for (int i = 0; i < shared_limit_count; i++)
        if (shared_limits[i].kernel == kernel) return &shared_limits[i];
    return NULL;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value) {
    if (kernel == NULL) return remember(cudaErrorInvalidDeviceFunction);
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return simt_sticky_error();
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > SHARED_BYTES_MAX)
        return remember(cudaErrorInvalidValue);
    struct shared_limit *limit = find_limit(kernel);
    if (limit == NULL) {
        if (shared_limit_count == (int)(sizeof shared_limits / sizeof *shared_limits))
            return remember(cudaErrorMemoryAllocation);
        limit = &shared_limits[shared_limit_count++];
        limit->kernel = kernel;
    }
    limit->bytes = (size_t)value;
    return simt_sticky_error();
}

void simt_launch_kernel(const void *kernel, const char *name, const unsigned grid[3], const unsigned block[3],
                        size_t dynamic_shared_bytes, void (*run)(void *arguments), void *arguments,
                        size_t arguments_bytes) {
    if (simt_sticky_error() != cudaSuccess) return;
    bool grid_fits =
        grid[0] >= 1 && grid[0] <= 2147483647u && grid[1] >= 1 && grid[1] <= 65535 && grid[2] >= 1 && grid[2] <= 65535;
    bool block_fits = block[0] >= 1 && block[0] <= 1024 && block[1] >= 1 && block[1] <= 1024 && block[2] >= 1 &&
                      block[2] <= 64 && block[0] * block[1] * block[2] <= MAX_BLOCK_THREADS;
    if (!grid_fits || !block_fits) {
        remember(cudaErrorInvalidConfiguration);
        return;
    }
    const struct shared_limit *limit = find_limit(kernel);
    size_t allowed = limit != NULL && limit->bytes > SHARED_BYTES_DEFAULT ? limit->bytes : SHARED_BYTES_DEFAULT;
    if (dynamic_shared_bytes > allowed) {
        remember(cudaErrorInvalidValue);
        return;
    }
    struct launch launch = {
        .name = name,
        .kernel = kernel,
        .grid = {grid[0], grid[1], grid[2]},
        .block = {block[0], block[1], block[2]},
        .threads = block[0] * block[1] * block[2],
        .dynamic_shared_bytes = dynamic_shared_bytes,
        .shared_limit = allowed,
        .run = run,
        .arguments = arguments,
        .arguments_bytes = arguments_bytes,
        .blocks = (uint64_t)grid[0] * grid[1] * grid[2],
        .number = ++launches,
    };
    choose_order(&launch);
    launch.metered = meter_is_on(&launch.meter_every);
    simt_run(&launch);
}
