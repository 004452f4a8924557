/* The runtime API of include/cuda_runtime.h: the device, memory, streams and events. */
#include "api.h"

#include "scheduler.h"

/* ---- the device ------------------------------------------------------------------------------------------------------ */

/* SIMT_DEVICES says how many there are. They share all memory; SIMT_SHARED_KIB is the current one's, the others have 227.
 * Each host thread has its current one. */
static _Thread_local int current_device;

cudaError_t cudaGetDeviceCount(int *count) {
    *count = (int)simt_setting("SIMT_DEVICES", 1, 64, 1);
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
    *device = current_device;
    return cudaSuccess;
}

bool api_is_device(int device) {
    int count = 0;
    cudaGetDeviceCount(&count);
    return device >= 0 && device < count;
}

cudaError_t cudaSetDevice(int device) {
    if (!api_is_device(device)) return api_remember(cudaErrorInvalidDevice);
    current_device = device;
    return cudaSuccess;
}

const int api_most_blocks[3] = {2147483647, 65535, 65535}, api_most_threads[3] = {MAX_BLOCK_THREADS, MAX_BLOCK_THREADS, 64};

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    if (!api_is_device(device)) return api_remember(cudaErrorInvalidDevice);
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
        .deviceOverlap = 1,
        .clockRate = 1980000, /* those of an H100, so that what a program divides by them or prints is no nonsense */
        .memoryClockRate = 2619000,
        .memoryBusWidth = 5120,
        .asyncEngineCount = 1,
        .cooperativeLaunch = 1,
        .multiProcessorCount = (int)simt_setting("SIMT_MULTIPROCESSORS", 1, 1024, 8), /* the same on every machine */
        .major = 9,
        .minor = 0,
        .l2CacheSize = 1 << 20,
    };
    memcpy(properties->maxThreadsDim, api_most_threads, sizeof api_most_threads);
    memcpy(properties->maxGridSize, api_most_blocks, sizeof api_most_blocks);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    struct cudaDeviceProp properties = {0};
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error != cudaSuccess) return error;
    switch (attribute) {
#define CASE(name, number, member)                                                                                             \
    case name: *value = (int)properties.member; break;
        SIMT_ATTRIBUTES(CASE)
    default: return api_remember(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

static unsigned long waits;

unsigned long simt_waits(void) { return waits; }

cudaError_t cudaDeviceSynchronize(void) {
    waits++;
    host_waited();
    return simt_sticky_error();
}

cudaError_t cudaDeviceReset(void) {
    ONE_HOST_THREAD;
    api_forget_errors();
    memory_free_all();
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = 0;
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version) { return cudaRuntimeGetVersion(version); }

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

cudaError_t api_allocate(void **pointer, size_t bytes, enum memory_kind kind) {
    ONE_HOST_THREAD;
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (pointer == NULL) return api_remember(cudaErrorInvalidValue);
    *pointer = NULL;
    if (bytes == 0) return cudaSuccess;
    scheduler_catch_signals(); /* the host may take the pointer for one of its own */
    *pointer = memory_allocate(bytes, kind, current_device);
    return *pointer != NULL ? cudaSuccess : api_remember(cudaErrorMemoryAllocation);
}

cudaError_t cudaMalloc(void **pointer, size_t bytes) { return api_allocate(pointer, bytes, DEVICE); }

void *simt_reserve(size_t bytes) {
    ONE_HOST_THREAD;
    scheduler_catch_signals();
    return memory_reserve(bytes);
}

static cudaError_t release(void *pointer, bool page_locked) {
    ONE_HOST_THREAD;
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (pointer == NULL) return cudaSuccess;
    bool is_page_locked = memory_place((uintptr_t)pointer, 1).kind == PAGE_LOCKED;
    return is_page_locked == page_locked && memory_free(pointer) ? cudaSuccess : api_remember(cudaErrorInvalidValue);
}

cudaError_t cudaFree(void *pointer) {
    cudaDeviceSynchronize(); /* as on a card */
    return release(pointer, false);
}
cudaError_t cudaFreeHost(void *pointer) { return release(pointer, true); }

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    *total_bytes = memory_total();
    *free_bytes = memory_total() - memory_in_use();
    return simt_sticky_error();
}

/* May a copy whose direction says "device" (or "host") for one of its sides find this there? */
static bool fits(enum memory_kind kind, bool device) { return device ? device_may_access(kind) : host_may_access(kind); }

/* At once: what reads the memory that is not copied is told after it, and the dropped error at the end of the program. */
static cudaError_t refuse_direction(enum memory_kind target, enum memory_kind source, enum cudaMemcpyKind kind) {
    static const char *const names[] = {"HostToHost", "HostToDevice", "DeviceToHost", "DeviceToDevice"};
    if (!host_is_watched) return api_remember(cudaErrorInvalidValue);
    char *line = calling_line();
    fprintf(stderr,
            "simulated device: %s: nothing is copied: with cudaMemcpy%s, the target is %s memory and the source %s memory\n",
            line, names[kind], device_may_access(target) ? "device" : "no device",
            device_may_access(source) ? "device" : "no device");
    free(line);
    return api_remember(cudaErrorInvalidValue);
}

/* A direction that does not fit the pointers is undefined in CUDA: cards refuse some of these copies, and make others. */
cudaError_t api_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    ONE_HOST_THREAD;
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (bytes == 0) return cudaSuccess;
    if ((unsigned)kind > cudaMemcpyDefault) return api_remember(cudaErrorInvalidMemcpyDirection);
    struct memory_place target = memory_place((uintptr_t)to, bytes), source = memory_place((uintptr_t)from, bytes);
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (to == NULL || from == NULL || target.kind == LITERAL || !target.whole || !source.whole)
        return api_remember(cudaErrorInvalidValue);
    if (kind != cudaMemcpyDefault && !(fits(target.kind, to_device) && fits(source.kind, from_device)))
        return refuse_direction(target.kind, source.kind, kind);
    memory_open(to), memory_open(from);
    memcpy(to, from, bytes);
    memory_close(to), memory_close(from);
    if (host_may_access(target.kind) && source.kind == DEVICE && !api_launch_failed) host_copies_unwritten(from, bytes);
    memory_copied(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    simt_note_stream(NULL);
    cudaDeviceSynchronize();
    return api_copy(to, from, bytes, kind);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
    simt_note_stream(stream);
    if (api_call_is_to_fail()) return api_remember(cudaErrorInvalidValue);
    cudaError_t error = api_copy(to, from, bytes, kind);
    if (error == cudaSuccess && memory_place((uintptr_t)to, 1).kind == PAGE_LOCKED) host_copies_later(to, bytes);
    return error;
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream) {
    simt_note_stream(stream);
    ONE_HOST_THREAD;
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (api_call_is_to_fail()) return api_remember(cudaErrorInvalidValue);
    if (bytes == 0 || api_parts == 0) return cudaSuccess;
    struct memory_place place = memory_place((uintptr_t)pointer, bytes);
    if (!place.whole || !device_may_access(place.kind)) return api_remember(cudaErrorInvalidValue);
    if (memory_forget(pointer, value, bytes)) return cudaSuccess;
    memory_open(pointer);
    memset(pointer, value, bytes);
    memory_close(pointer);
    memory_written_by_host(pointer, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *pointer, int value, size_t bytes) { return cudaMemsetAsync(pointer, value, bytes, NULL); }

/* ---- streams and events: all work is done when its call returns ------------------------------------------------------- */

struct CUevent_st {
    int64_t time; /* 0: not recorded */
};

static cudaError_t created(const void *object) {
    return object != NULL ? simt_sticky_error() : api_remember(cudaErrorMemoryAllocation);
}
static cudaError_t destroyed(void *object) {
    free(object);
    return simt_sticky_error();
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) { return created(*stream = malloc(1)); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return destroyed(stream); }

cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return cudaDeviceSynchronize(); }

cudaError_t cudaEventCreate(cudaEvent_t *event) { return created(*event = calloc(1, sizeof **event)); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return destroyed(event); }

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    if (event == NULL) return api_remember(cudaErrorInvalidResourceHandle);
    event->time = read_clock(CLOCK_MONOTONIC);
    return simt_sticky_error();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    cudaError_t error = cudaDeviceSynchronize();
    return event != NULL ? error : api_remember(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t stop) {
    if (start == NULL || stop == NULL || start->time == 0 || stop->time == 0)
        return api_remember(cudaErrorInvalidResourceHandle);
    *milliseconds = (float)((double)(stop->time - start->time) * 1e-6);
    return simt_sticky_error();
}
