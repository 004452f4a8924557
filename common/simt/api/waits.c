/* Streams and events, and the calls that wait. A wait has nothing to wait for, as work is done when its call returns: what it orders
 * is noted (memory/streams.h). */
#include "api.h"

_Thread_local int api_device;

static bool own_default_streams; /* a file is compiled with --default-stream per-thread */

void simt_default_stream_per_thread(void) { own_default_streams = true; }

cudaStream_t api_stream(cudaStream_t handle) {
    static _Thread_local cudaStream_t own[DEVICES_MAX];
    if (handle == NULL && own_default_streams) handle = cudaStreamPerThread;
    if (handle == NULL || handle == cudaStreamLegacy) return streams_default_of(api_device);
    if (handle != cudaStreamPerThread) return streams_know(handle) ? handle : NULL;
    cudaStream_t *of = &own[api_device];
    if (*of == NULL && (*of = streams_new(true, api_device)) != NULL) memset((*of)->made, 0, sizeof(*of)->made);
    return *of;
}

static unsigned long waits;

unsigned long simt_waits(void) { return waits; }

void api_counts_wait(void) { waits++; }

enum communication (*api_communication)(const struct clock *clock, bool waits);
void (*api_no_more_calls)(void);
bool (*api_calls_wait_for_group)(const struct CUstream_st *stream, int device);

cudaStream_t api_stream_for_work(cudaStream_t handle) {
    cudaStream_t of = api_stream(handle);
    if (of == NULL || api_communication == NULL) return of;
    streams_advance(of);
    return api_communication(&of->clock, true) == COME_ABOUT ? of : NULL;
}

static cudaError_t wait_for(const struct clock *clock, bool counts) {
    waits += counts;
    enum communication state = api_communication != NULL ? api_communication(clock, counts) : COME_ABOUT;
    if (state != COME_ABOUT) return state == UNDER_WAY ? cudaErrorNotReady : simt_sticky_error();
    api_run_late(clock);
    streams_wait(clock);
    host_watch();
    return simt_sticky_error();
}

cudaError_t api_wait_for_device(int device) {
    if (api_calls_wait_for_group != NULL && api_calls_wait_for_group(NULL, device)) return simt_sticky_error();
    struct clock all = {0};
    streams_join_device(&all, device);
    cudaError_t error = wait_for(&all, true);
    free(all.known);
    return error;
}
cudaError_t cudaDeviceSynchronize(void) {
    ONE_HOST_THREAD;
    return api_wait_for_device(api_device);
}
cudaError_t cudaThreadSynchronize(void) { return cudaDeviceSynchronize(); }

/* ---- streams ---------------------------------------------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *made, unsigned flags) {
    ONE_HOST_THREAD;
    *made = streams_new((flags & cudaStreamNonBlocking) == 0, api_device);
    return *made != NULL ? simt_sticky_error() : api_remember(cudaErrorMemoryAllocation);
}
cudaError_t cudaStreamCreate(cudaStream_t *made) { return cudaStreamCreateWithFlags(made, cudaStreamDefault); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *made, unsigned flags, int priority) {
    return cudaStreamCreateWithFlags(made, flags);
}

/* What it has been given goes on. */
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    ONE_HOST_THREAD;
    if (handle == NULL || api_stream(handle) != handle) return api_remember(cudaErrorInvalidResourceHandle);
    streams_destroy(handle);
    return simt_sticky_error();
}

/* The host knows now what the stream has done; a query counts as no wait. */
static cudaError_t join(cudaStream_t handle, bool waits_for_it) {
    ONE_HOST_THREAD;
    cudaStream_t of = api_stream(handle);
    if (of == NULL) return api_remember(cudaErrorInvalidResourceHandle);
    if (waits_for_it && api_calls_wait_for_group != NULL && api_calls_wait_for_group(of, 0)) return simt_sticky_error();
    streams_advance(of);
    return wait_for(&of->clock, waits_for_it);
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) { return join(handle, true); }
cudaError_t cudaStreamQuery(cudaStream_t handle) { return join(handle, false); }

/* The function comes after what the stream has done; what it does itself, the host has not waited for. */
static bool begin_function(cudaStream_t handle, struct operation *operation) {
    ONE_HOST_THREAD;
    cudaStream_t of = api_stream_for_work(handle);
    if (of == NULL) return false;
    api_run_late_before(of);
    *operation = streams_next(of, "host function", NULL);
    host_goes_inside(of, operation);
    return true;
}
static cudaError_t end_function(void) {
    ONE_HOST_THREAD;
    host_goes_inside(NULL, NULL);
    return simt_sticky_error();
}
cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t callback, void *data, unsigned flags) {
    struct operation operation;
    if (!begin_function(handle, &operation)) return api_remember(cudaErrorInvalidResourceHandle);
    callback(handle, simt_sticky_error(), data);
    return end_function();
}
cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *data) {
    struct operation operation;
    if (!begin_function(handle, &operation)) return api_remember(cudaErrorInvalidResourceHandle);
    if (simt_sticky_error() == cudaSuccess) function(data);
    return end_function();
}

/* ---- events ------------------------------------------------------------------------------------------------------------- */

struct CUevent_st {
    int64_t time;       /* 0: not recorded */
    int device;         /* the current one when it was made */
    struct clock clock; /* what came before the latest record */
    unsigned slot;      /* of the stream of that */
};

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    *event = calloc(1, sizeof **event);
    if (*event == NULL) return api_remember(cudaErrorMemoryAllocation);
    (*event)->device = api_device;
    return simt_sticky_error();
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) { return cudaEventCreate(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    if (event != NULL) free(event->clock.known);
    free(event);
    return simt_sticky_error();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
    ONE_HOST_THREAD;
    cudaStream_t of = api_stream(handle);
    if (event == NULL || of == NULL) return api_remember(cudaErrorInvalidResourceHandle);
    if (event->device != of->device) {
        char stream[400], text[600], *line = calling_line();
        streams_name_own(of, stream, sizeof stream);
        snprintf(text, sizeof text, "%s: cudaEventRecord(): the event was made on device %d and cannot be recorded in %s", line,
                 event->device, stream);
        free(line);
        simt_report(cudaErrorInvalidResourceHandle, text);
        return api_remember(cudaErrorInvalidResourceHandle);
    }
    if (api_stream_for_work(handle) == NULL) return simt_sticky_error();
    event->time = read_clock(CLOCK_MONOTONIC);
    streams_advance(of);
    event->clock.count = 0;
    clock_join(&event->clock, &of->clock);
    event->slot = of->slot;
    return simt_sticky_error();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags) {
    ONE_HOST_THREAD;
    cudaStream_t of = api_stream(handle);
    if (event == NULL || of == NULL) return api_remember(cudaErrorInvalidResourceHandle);
    streams_advance(of);
    streams_follow(of, &event->clock, event->time != 0 ? (int)event->slot : -1);
    return simt_sticky_error();
}

static cudaError_t join_event(cudaEvent_t event, bool waits_for_it) {
    ONE_HOST_THREAD;
    static const struct clock nothing;
    cudaError_t error = wait_for(event != NULL ? &event->clock : &nothing, waits_for_it);
    return event != NULL ? error : api_remember(cudaErrorInvalidResourceHandle);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return join_event(event, true); }
cudaError_t cudaEventQuery(cudaEvent_t event) { return join_event(event, false); }

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t stop) {
    if (start == NULL || stop == NULL || start->time == 0 || stop->time == 0 || start->device != stop->device)
        return api_remember(cudaErrorInvalidResourceHandle);
    *milliseconds = (float)((double)(stop->time - start->time) * 1e-6);
    return simt_sticky_error();
}
