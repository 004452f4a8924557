/* Calls that sample programs make and that need nothing of the other files' variables: streams with flags, callbacks, limits,
 * peers, attributes of kernels, occupancy. Work is done when its call returns, so waiting has nothing to wait for. */
#include "api.h"

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
    return cudaStreamCreate(stream);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = *greatest = 0;
    return simt_sticky_error();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    return event != NULL ? simt_sticky_error() : api_remember(cudaErrorInvalidResourceHandle);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    host_waited();
    return simt_sticky_error();
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned flags) {
    host_waited(); /* the function comes after what the stream has done */
    callback(stream, simt_sticky_error(), data);
    return simt_sticky_error();
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
    host_waited();
    if (simt_sticky_error() == cudaSuccess) function(data);
    return simt_sticky_error();
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) { return cudaEventCreate(event); }
cudaError_t cudaEventQuery(cudaEvent_t event) {
    host_waited();
    return cudaStreamWaitEvent(NULL, event, 0);
}

cudaError_t cudaThreadSynchronize(void) { return cudaDeviceSynchronize(); }
cudaError_t cudaThreadExit(void) { return cudaDeviceReset(); }
cudaError_t cudaProfilerStart(void) { return simt_sticky_error(); }
cudaError_t cudaProfilerStop(void) { return simt_sticky_error(); }

cudaError_t cudaSetDeviceFlags(unsigned flags) { return simt_sticky_error(); }
cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *properties) {
    *device = 0;
    return simt_sticky_error();
}
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache cache) { return simt_sticky_error(); }
cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *cache) {
    *cache = cudaFuncCachePreferNone;
    return simt_sticky_error();
}
cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config) { return simt_sticky_error(); }
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) { return simt_sticky_error(); }
cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit) {
    *value = limit == cudaLimitStackSize ? STACK_BYTES : 0;
    return simt_sticky_error();
}

/* All devices share one memory, so that access to a peer changes nothing; what is enabled is noted all the same. */
static uint64_t peers[64]; /* of each device, a bit for each */

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    if (!api_is_device(device) || !api_is_device(peer)) return api_remember(cudaErrorInvalidDevice);
    *can = device != peer;
    return simt_sticky_error();
}
/* The error is `otherwise` where the current device's access to the peer is not `enabled`, as it must be; else it changes. */
static cudaError_t change_peer(int peer, bool enabled, cudaError_t otherwise) {
    ONE_HOST_THREAD;
    int device;
    cudaGetDevice(&device);
    if (!api_is_device(peer)) return api_remember(cudaErrorInvalidDevice);
    if (device == peer && !enabled) return api_remember(cudaErrorPeerAccessUnsupported);
    if ((peers[device] >> peer & 1) != enabled) return api_remember(otherwise);
    peers[device] ^= (uint64_t)1 << peer;
    return simt_sticky_error();
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    return flags != 0 ? api_remember(cudaErrorInvalidValue) : change_peer(peer, false, cudaErrorPeerAccessAlreadyEnabled);
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) { return change_peer(peer, true, cudaErrorPeerAccessNotEnabled); }

cudaError_t cudaLaunchCooperativeKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                                        cudaStream_t stream) {
    simt_report(cudaErrorNotSupported, "cudaLaunchCooperativeKernel(): its first argument must be the kernel's name here, by "
                                       "which the types of the arguments are known, and no pointer in a variable");
    return api_remember(cudaErrorNotSupported);
}

cudaError_t cudaFuncSetCacheConfig(const void *kernel, enum cudaFuncCache cache) {
    return kernel != NULL ? simt_sticky_error() : api_remember(cudaErrorInvalidDeviceFunction);
}
cudaError_t cudaFuncSetSharedMemConfig(const void *kernel, enum cudaSharedMemConfig config) {
    return kernel != NULL ? simt_sticky_error() : api_remember(cudaErrorInvalidDeviceFunction);
}
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel) {
    if (kernel == NULL) return api_remember(cudaErrorInvalidDeviceFunction);
    *attributes =
        (struct cudaFuncAttributes){.maxThreadsPerBlock = MAX_BLOCK_THREADS, .maxDynamicSharedSizeBytes = SHARED_BYTES_DEFAULT};
    return simt_sticky_error();
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int threads, size_t shared) {
    struct cudaDeviceProp properties;
    int device;
    cudaGetDevice(&device);
    cudaGetDeviceProperties(&properties, device);
    if (kernel == NULL || threads < 1) return api_remember(cudaErrorInvalidValue);
    int warps = (threads + WARP_SIZE - 1) / WARP_SIZE;
    int by_threads = properties.maxThreadsPerMultiProcessor / (warps * WARP_SIZE);
    int by_shared = (int)(properties.sharedMemPerMultiprocessor / (shared + properties.reservedSharedMemPerBlock));
    *blocks = threads > MAX_BLOCK_THREADS ? 0 : by_threads < by_shared ? by_threads : by_shared;
    if (*blocks > properties.maxBlocksPerMultiProcessor) *blocks = properties.maxBlocksPerMultiProcessor;
    return simt_sticky_error();
}
