/* Calls that sample programs make and that need nothing of the other files' variables: limits, peers, attributes of kernels,
 * occupancy. */
#include "api.h"

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = *greatest = 0;
    return simt_sticky_error();
}
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
    if ((streams_reach[device] >> peer & 1) != enabled) return api_remember(otherwise);
    streams_reach[device] ^= (uint64_t)1 << peer;
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

cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *kernel, const cudaLaunchConfig_t *config) {
    unsigned threads = config->blockDim.x * config->blockDim.y * config->blockDim.z;
    if (kernel == NULL || threads < 1) return api_remember(cudaErrorInvalidValue);
    for (*size = MAX_CLUSTER; *size > 1 && *size * ((threads + WARP_SIZE - 1) / WARP_SIZE * WARP_SIZE) > MAX_BLOCK_THREADS;)
        *size /= 2;
    return simt_sticky_error();
}

cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *kernel, const cudaLaunchConfig_t *config) {
    unsigned size = 1;
    int blocks, multiprocessors;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const cudaLaunchAttributeValue *value = &config->attrs[i].val;
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
            size = value->clusterDim.x * value->clusterDim.y * value->clusterDim.z;
    }
    if (size == 0) return api_remember(cudaErrorInvalidValue);
    cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, kernel, (int)(config->blockDim.x * config->blockDim.y * config->blockDim.z), config->dynamicSmemBytes);
    if (error != cudaSuccess) return error;
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
    *clusters = blocks * multiprocessors / (int)size;
    return simt_sticky_error();
}
