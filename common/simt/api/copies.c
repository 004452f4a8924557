/* Memory that the host shares with the device, copies with a pitch, and copies to and from __device__ variables. */
#include "api.h"

#include "device_memory.h"

#include <stdlib.h>
#include <string.h>

/* Kernels may read all of it: what the host has written is not known. */
cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    (void)flags;
    ONE_HOST_THREAD;
    cudaError_t error = cudaMalloc(pointer, bytes);
    if (error == cudaSuccess && *pointer != NULL) memory_share_with_host(*pointer);
    return error;
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes) { return cudaHostAlloc(pointer, bytes, 0); }
cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags) {
    return cudaHostAlloc(pointer, bytes, flags);
}
cudaError_t cudaFreeHost(void *pointer) { return cudaFree(pointer); }

cudaError_t cudaHostGetDevicePointer(void **pointer, void *host, unsigned flags) {
    (void)flags;
    ONE_HOST_THREAD;
    *pointer = host;
    return memory_find((uintptr_t)host) != NULL ? cudaSuccess : api_remember(cudaErrorInvalidValue);
}

/* The host's own memory stays unknown to kernels. */
cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags) {
    (void)pointer, (void)bytes, (void)flags;
    return api_remember(cudaErrorNotSupported);
}
cudaError_t cudaHostUnregister(void *pointer) {
    (void)pointer;
    return api_remember(cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream) {
    (void)stream;
    return cudaMalloc(pointer, bytes);
}
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
    (void)stream;
    return cudaFree(pointer);
}

cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, int device, cudaStream_t stream) {
    (void)device, (void)stream;
    ONE_HOST_THREAD;
    return memory_contains(pointer, bytes) ? simt_sticky_error() : api_remember(cudaErrorInvalidValue);
}
cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice, int device) {
    (void)advice, (void)device;
    ONE_HOST_THREAD;
    return memory_contains(pointer, bytes) ? simt_sticky_error() : api_remember(cudaErrorInvalidValue);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer) {
    ONE_HOST_THREAD;
    const struct allocation *found = memory_find((uintptr_t)pointer);
    *attributes = (struct cudaPointerAttributes){
        .type = found == NULL            ? cudaMemoryTypeUnregistered
                : found->shared_with_host ? cudaMemoryTypeManaged
                                          : cudaMemoryTypeDevice,
        .devicePointer = found != NULL ? (void *)pointer : NULL,
        .hostPointer = found == NULL || found->shared_with_host ? (void *)pointer : NULL,
    };
    return simt_sticky_error();
}

/* ---- pitch --------------------------------------------------------------------------------------------------------- */

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    *pitch = (width + 511) / 512 * 512;
    return cudaMalloc(pointer, *pitch * height);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind) {
    if (width > to_pitch || width > from_pitch) return api_remember(cudaErrorInvalidPitchValue);
    cudaError_t error = simt_sticky_error();
    for (size_t row = 0; row < height && error == cudaSuccess; row++)
        error = cudaMemcpy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width, kind);
    return error;
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)stream;
    return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height) {
    if (width > pitch) return api_remember(cudaErrorInvalidPitchValue);
    cudaError_t error = simt_sticky_error();
    for (size_t row = 0; row < height && error == cudaSuccess; row++)
        error = cudaMemset((char *)pointer + row * pitch, value, width);
    return error;
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes) {
    if (to_device != 0 || from_device != 0) return api_remember(cudaErrorInvalidDevice);
    return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}

/* ---- variables ------------------------------------------------------------------------------------------------------ */

/* The other side may be device memory; a copy through the host's takes the checks of cudaMemcpy() along. */
cudaError_t simt_copy_to_symbol(void *symbol, size_t symbol_bytes, const void *from, size_t bytes, size_t offset,
                                enum cudaMemcpyKind kind) {
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (offset > symbol_bytes || bytes > symbol_bytes - offset) return api_remember(cudaErrorInvalidValue);
    ONE_HOST_THREAD;
    if (kind == cudaMemcpyDeviceToDevice || memory_find((uintptr_t)from) != NULL)
        return cudaMemcpy((char *)symbol + offset, from, bytes, cudaMemcpyDeviceToHost);
    memcpy((char *)symbol + offset, from, bytes);
    return cudaSuccess;
}

cudaError_t simt_copy_from_symbol(void *to, const void *symbol, size_t symbol_bytes, size_t bytes, size_t offset,
                                  enum cudaMemcpyKind kind) {
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (offset > symbol_bytes || bytes > symbol_bytes - offset) return api_remember(cudaErrorInvalidValue);
    ONE_HOST_THREAD;
    if (kind == cudaMemcpyDeviceToDevice || memory_find((uintptr_t)to) != NULL)
        return cudaMemcpy(to, (const char *)symbol + offset, bytes, cudaMemcpyHostToDevice);
    memcpy(to, (const char *)symbol + offset, bytes);
    return cudaSuccess;
}
