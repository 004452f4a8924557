/* The runtime API of include/cuda_runtime.h: the device and memory. */
#include "api.h"

#include "scheduler.h"

/* ---- the device ------------------------------------------------------------------------------------------------------ */

/* SIMT_DEVICES says how many there are. SIMT_SHARED_KIB is the current one's, the others have 227. Each host thread has its current
 * one. */
cudaError_t cudaGetDeviceCount(int *count) {
    *count = streams_devices = (int)simt_setting("SIMT_DEVICES", 1, DEVICES_MAX, 1);
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
    *device = api_device;
    return cudaSuccess;
}
int simt_current_device(void) { return api_device; }

bool api_is_device(int device) {
    int count = 0;
    cudaGetDeviceCount(&count);
    return device >= 0 && device < count;
}

cudaError_t cudaSetDevice(int device) {
    if (!api_is_device(device)) return api_remember(cudaErrorInvalidDevice);
    api_device = device;
    return cudaSuccess;
}

int simt_on_host(void) { return simt_worker == NULL; }
unsigned simt_multiprocessors(void) { return simt_setting("SIMT_MULTIPROCESSORS", 1, 1024, 8); } /* the same on every machine */

const int api_most_blocks[3] = {2147483647, 65535, 65535}, api_most_threads[3] = {MAX_BLOCK_THREADS, MAX_BLOCK_THREADS, 64};

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    if (!api_is_device(device)) return api_remember(cudaErrorInvalidDevice);
    size_t most = device == api_device ? shared_most() : SHARED_BYTES_MOST;
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
        .multiProcessorCount = (int)simt_multiprocessors(),
        .major = 9,
        .minor = 0,
        .l2CacheSize = 1 << 20,
    };
    memcpy(properties->maxThreadsDim, api_most_threads, sizeof api_most_threads);
    memcpy(properties->maxGridSize, api_most_blocks, sizeof api_most_blocks);
    return cudaSuccess;
}

int simt_device_attribute(int attribute, int device) {
    int value;
    return cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)attribute, device) == cudaSuccess ? value : -1;
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

cudaError_t cudaDeviceReset(void) {
    ONE_HOST_THREAD;
    api_forget_errors();
    if (api_communication != NULL) api_communication(NULL, false);
    api_run_late(NULL);
    streams_wait(NULL);
    memset(streams_reach, 0, sizeof streams_reach);
    host_watch();
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
    *pointer = memory_allocate(bytes, kind, api_device);
    return *pointer != NULL ? cudaSuccess : api_remember(cudaErrorMemoryAllocation);
}

cudaError_t cudaMalloc(void **pointer, size_t bytes) { return api_allocate(pointer, bytes, DEVICE); }

void *simt_reserve(size_t bytes) {
    ONE_HOST_THREAD;
    scheduler_catch_signals();
    return memory_reserve(bytes, api_device);
}

static cudaError_t release(void *pointer, bool page_locked) {
    ONE_HOST_THREAD;
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (pointer == NULL) return cudaSuccess;
    api_run_late(NULL); /* of this memory, at the latest */
    struct memory_place place = memory_place((uintptr_t)pointer, 1);
    if (place.allocation != NULL) streams_forget(place.allocation->start, place.allocation->bytes);
    bool is_page_locked = place.kind == PAGE_LOCKED;
    return is_page_locked == page_locked && memory_free(pointer) ? cudaSuccess : api_remember(cudaErrorInvalidValue);
}

cudaError_t cudaFree(void *pointer) {
    ONE_HOST_THREAD;
    const struct allocation *found = memory_find((uintptr_t)pointer);
    api_wait_for_device(found != NULL ? found->device : api_device); /* as on a card */
    return release(pointer, false);
}
cudaError_t cudaFreeHost(void *pointer) { return release(pointer, true); }

static bool use(cudaStream_t of, const struct operation *operation, const void *pointer, size_t bytes, bool writes) {
    return streams_use(of, operation, &(struct region){(uintptr_t)pointer, bytes, bytes, 1}, writes);
}

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream) {
    ONE_HOST_THREAD;
    cudaStream_t of = api_stream_for_work(stream);
    if (of == NULL) return api_remember(cudaErrorInvalidResourceHandle);
    if (api_call_is_to_fail()) return api_remember(cudaErrorMemoryAllocation);
    int current = api_device;
    api_device = of->device;
    cudaError_t error = cudaMalloc(pointer, bytes);
    api_device = current;
    if (error != cudaSuccess || bytes == 0) return error;
    struct operation operation = streams_next(of, "cudaMallocAsync()", "allocated");
    use(of, &operation, *pointer, bytes, true);
    host_watch();
    return cudaSuccess;
}

/* At once, after a look at who may still be using it. */
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
    ONE_HOST_THREAD;
    cudaStream_t of = api_stream_for_work(stream);
    if (of == NULL) return api_remember(cudaErrorInvalidResourceHandle);
    const struct allocation *found = memory_find((uintptr_t)pointer);
    if (found != NULL && found->start == (uintptr_t)pointer && simt_sticky_error() == cudaSuccess) {
        struct operation operation = streams_next(of, "cudaFreeAsync()", "freed");
        if (!use(of, &operation, pointer, found->bytes, true)) return simt_sticky_error();
        host_watch();
    }
    return release(pointer, false);
}

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

/* A card makes such a copy all the same. Told once for each pair of devices. */
static void note_detour(int to, int from) {
    static uint64_t told[DEVICES_MAX];
    if ((streams_reach[to] >> from & 1) != 0 || (streams_reach[from] >> to & 1) != 0 || (told[to] >> from & 1) != 0) return;
    told[to] |= (uint64_t)1 << from;
    char *line = calling_line();
    fprintf(
        stderr,
        "simulated device: note: %s: copy from device %d to device %d, neither of which has access to the other: on a card it "
        "goes through the host's memory, more slowly; cudaDeviceEnablePeerAccess() avoids that\n",
        line, from, to);
    free(line);
}

/* A direction that does not fit the pointers is undefined in CUDA: cards refuse some of these copies, and make others. The host waits
 * for a copy to memory that is not page-locked and, with `waits`, for all that have a side in the host's memory. On a card a copy
 * from pageable memory may still be on its way then: no accusation on that. */
cudaError_t api_copy(const struct copy *copy, cudaStream_t stream, bool waits) {
    ONE_HOST_THREAD;
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (copy->width == 0 || copy->rows == 0) return cudaSuccess;
    if ((unsigned)copy->kind > cudaMemcpyDefault) return api_remember(cudaErrorInvalidMemcpyDirection);
    cudaStream_t of = api_stream_for_work(stream);
    if (of == NULL) return api_remember(cudaErrorInvalidResourceHandle);
    const struct region to = {(uintptr_t)copy->to, copy->width, copy->to_pitch, copy->rows};
    const struct region from = {(uintptr_t)copy->from, copy->width, copy->from_pitch, copy->rows};
    enum cudaMemcpyKind kind = copy->kind;
    size_t above = copy->rows - 1; /* the last row */
    struct memory_place target = memory_place(to.start, above * to.pitch + to.width);
    struct memory_place source = memory_place(from.start, above * from.pitch + from.width);
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (copy->to == NULL || copy->from == NULL || target.kind == LITERAL || !target.whole || !source.whole)
        return api_remember(cudaErrorInvalidValue);
    if (kind != cudaMemcpyDefault && !(fits(target.kind, to_device) && fits(source.kind, from_device)))
        return refuse_direction(target.kind, source.kind, kind);
    bool between = target.kind == DEVICE && source.kind == DEVICE && target.allocation->device != source.allocation->device;
    int to_peer = between ? target.allocation->device : of->device,
        from_peer = between ? source.allocation->device : of->device;
    if (between) note_detour(to_peer, from_peer);
    between &= of->number == 0;
    if (between) streams_meet(of, to_peer, from_peer, false);
    bool late = !waits && source.kind > LITERAL && target.kind > LITERAL && api_is_late();
    if (!late || host_may_access(target.kind)) api_run_late_before(of);
    struct operation operation = streams_next(of, "copy", NULL);
    if (between) streams_meet(of, to_peer, from_peer, true);
    if ((device_may_access(source.kind) && !streams_use(of, &operation, &from, false)) ||
        (device_may_access(target.kind) && !streams_use(of, &operation, &to, true)))
        return simt_sticky_error();
    for (size_t row = 0; row < copy->rows && host_may_access(target.kind) && source.kind == DEVICE && !api_launch_failed; row++)
        host_copies_unwritten((const char *)copy->from + row * from.pitch, copy->width);
    if (late)
        api_move_late(copy, &operation, &operation, &of->clock);
    else
        api_move(copy);
    bool of_host = host_may_access(target.kind) || host_may_access(source.kind);
    if (!device_may_access(target.kind) || (waits && of_host)) streams_wait(&of->clock);
    host_watch();
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    simt_note_stream(NULL);
    api_counts_wait();
    return api_copy(&(struct copy){to, bytes, from, bytes, bytes, 1, kind}, NULL, true);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
    simt_note_stream(stream);
    if (api_call_is_to_fail()) return api_remember(cudaErrorInvalidValue);
    return api_copy(&(struct copy){to, bytes, from, bytes, bytes, 1, kind}, stream, false);
}

/* The host does not wait for it, unless it is of memory that the host shares. */
cudaError_t api_set(void *pointer, size_t pitch, int value, size_t width, size_t rows, cudaStream_t stream, bool waits) {
    simt_note_stream(stream);
    ONE_HOST_THREAD;
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (api_call_is_to_fail()) return api_remember(cudaErrorInvalidValue);
    if (width == 0 || rows == 0 || api_parts == 0) return cudaSuccess;
    cudaStream_t of = api_stream_for_work(stream);
    if (of == NULL) return api_remember(cudaErrorInvalidResourceHandle);
    const struct region region = {(uintptr_t)pointer, width, pitch, rows};
    struct memory_place place = memory_place(region.start, (rows - 1) * pitch + width);
    if (!place.whole || !device_may_access(place.kind)) return api_remember(cudaErrorInvalidValue);
    api_run_late_before(of);
    struct operation operation = streams_next(of, "memset", NULL);
    if (!streams_use(of, &operation, &region, true)) return simt_sticky_error();
    if (rows > 1 || !memory_forget(pointer, value, width)) {
        memory_open(pointer);
        for (size_t row = 0; row < rows; row++) memset((char *)pointer + row * pitch, value, width);
        memory_close(pointer);
        for (size_t row = 0; row < rows; row++) memory_written_by_host((char *)pointer + row * pitch, width);
    }
    if (waits && host_may_access(place.kind)) streams_wait(&of->clock);
    host_watch();
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream) {
    return api_set(pointer, bytes, value, bytes, 1, stream, false);
}
cudaError_t cudaMemset(void *pointer, int value, size_t bytes) { return api_set(pointer, bytes, value, bytes, 1, NULL, true); }
