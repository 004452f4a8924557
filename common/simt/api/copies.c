/* Memory that the host shares with the device, copies with a pitch, and copies to and from __device__ variables. */
#include "api.h"

/* Kernels may read all of it: what the host has written is not known. */
cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags) { return api_allocate(pointer, bytes, PAGE_LOCKED); }

cudaError_t cudaMallocHost(void **pointer, size_t bytes) { return cudaHostAlloc(pointer, bytes, 0); }
cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags) { return api_allocate(pointer, bytes, MANAGED); }

cudaError_t cudaHostGetDevicePointer(void **pointer, void *host, unsigned flags) {
    ONE_HOST_THREAD;
    if (memory_place((uintptr_t)host, 1).kind != PAGE_LOCKED) return api_remember(cudaErrorInvalidValue);
    *pointer = host;
    return simt_sticky_error();
}

/* The host's own memory stays unknown to kernels. */
cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags) { return api_remember(cudaErrorNotSupported); }
cudaError_t cudaHostUnregister(void *pointer) { return api_remember(cudaErrorHostMemoryNotRegistered); }

static cudaError_t need_managed(const void *pointer, size_t bytes) {
    ONE_HOST_THREAD;
    struct memory_place place = memory_place((uintptr_t)pointer, bytes);
    return place.kind == MANAGED && place.whole ? simt_sticky_error() : api_remember(cudaErrorInvalidValue);
}
cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, int device, cudaStream_t stream) {
    return need_managed(pointer, bytes);
}
cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice, int device) {
    return need_managed(pointer, bytes);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer) {
    ONE_HOST_THREAD;
    struct memory_place place = memory_place((uintptr_t)pointer, 1);
    *attributes = (struct cudaPointerAttributes){
        .type = !device_may_access(place.kind) ? cudaMemoryTypeUnregistered
                : place.kind == MANAGED        ? cudaMemoryTypeManaged
                : place.kind == PAGE_LOCKED    ? cudaMemoryTypeHost
                                               : cudaMemoryTypeDevice,
        .device = place.allocation != NULL ? place.allocation->device : 0,
        .devicePointer = device_may_access(place.kind) ? (void *)pointer : NULL,
        .hostPointer = host_may_access(place.kind) ? (void *)pointer : NULL,
    };
    return simt_sticky_error();
}

/* ---- pitch --------------------------------------------------------------------------------------------------------- */

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    *pitch = (width + 511) / 512 * 512;
    cudaError_t error = cudaMalloc(pointer, *pitch * height);
    if (error == cudaSuccess) memory_set_rows(*pointer, *pitch, width);
    return error;
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind) {
    simt_note_stream(NULL);
    if (width > to_pitch || width > from_pitch) return api_remember(cudaErrorInvalidPitchValue);
    api_counts_wait();
    return api_copy(&(struct copy){to, to_pitch, from, from_pitch, width, height, kind}, NULL, true);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream) {
    simt_note_stream(stream);
    if (width > to_pitch || width > from_pitch) return api_remember(cudaErrorInvalidPitchValue);
    return api_copy(&(struct copy){to, to_pitch, from, from_pitch, width, height, kind}, stream, false);
}

cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height) {
    if (width > pitch) return api_remember(cudaErrorInvalidPitchValue);
    return api_set(pointer, pitch, value, width, height, NULL, true);
}

/* Told: it lies on another device than the call says. */
static bool lies_elsewhere(const char *side, const void *pointer, int device) {
    struct memory_place place = memory_place((uintptr_t)pointer, 1);
    if (place.kind != DEVICE || place.allocation->device == device) return false;
    char text[900], *line = calling_line();
    snprintf(text, sizeof text, "%s: copy between devices: the %s, %s, lies on device %d, and the call says device %d", line,
             side, describe_address((uintptr_t)pointer).text, place.allocation->device, device);
    free(line);
    simt_report(cudaErrorInvalidValue, text);
    return true;
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream) {
    ONE_HOST_THREAD;
    if (!api_is_device(to_device) || !api_is_device(from_device)) return api_remember(cudaErrorInvalidDevice);
    if (lies_elsewhere("target", to, to_device) || lies_elsewhere("source", from, from_device))
        return api_remember(cudaErrorInvalidValue);
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes) {
    return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, NULL); /* the host need not wait */
}

/* ---- variables ------------------------------------------------------------------------------------------------------ */

/* `bytes` at `offset` of a variable, to it or from it: `direction` is the one that fits, DeviceToDevice and Default apart. The
 * variable's side is right then. The other side may be the host's or, with any of these directions, the device's, as on a card. */
cudaError_t simt_copy_symbol(const void *symbol, size_t symbol_bytes, const void *other, size_t bytes, size_t offset,
                             enum cudaMemcpyKind kind, enum cudaMemcpyKind direction, cudaStream_t stream, int waits) {
    ONE_HOST_THREAD;
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (kind != direction && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
        return api_remember(cudaErrorInvalidMemcpyDirection);
    enum memory_kind variable = memory_place((uintptr_t)symbol, 1).kind;
    if (variable == HOST || (variable == LITERAL && direction == cudaMemcpyHostToDevice))
        return api_remember(cudaErrorInvalidSymbol);
    bool fits = kind != cudaMemcpyDeviceToDevice || device_may_access(memory_place((uintptr_t)other, 1).kind);
    if (!fits || offset > symbol_bytes || bytes > symbol_bytes - offset) return api_remember(cudaErrorInvalidValue);
    void *here = (char *)symbol + offset, *there = (void *)other;
    void *to = direction == cudaMemcpyHostToDevice ? here : there, *from = to == here ? there : here;
    return api_copy(&(struct copy){to, bytes, from, bytes, bytes, 1, cudaMemcpyDefault}, stream, waits != 0);
}
