/* Launches by cudaLaunchKernelEx(). */
#ifndef SIMT_LAUNCH_H
#define SIMT_LAUNCH_H

#include "simt_device.h"

/* With attributes: the size of clusters, and whether all blocks run at once. */
template <typename... P, typename... A>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...), A &&...arguments) {
    simt::config shape(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream);
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const cudaLaunchAttributeValue &value = config->attrs[i].val;
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
            shape.cluster = dim3(value.clusterDim.x, value.clusterDim.y, value.clusterDim.z);
        else if (config->attrs[i].id == cudaLaunchAttributeCooperative)
            shape.cooperative = value.cooperative != 0;
        else if (config->attrs[i].id != cudaLaunchAttributeIgnore)
            return cudaErrorNotSupported;
    }
    simt::launch(shape, "kernel<>", kernel)(std::forward<A>(arguments)...);
    return (cudaError_t)simt_launch_error();
}

#endif
