/* Memory of three dimensions, and the default pool of cudaMallocAsync(). */
#include "api.h"

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitched, struct cudaExtent extent) {
    *pitched = (struct cudaPitchedPtr){.xsize = extent.width, .ysize = extent.height};
    return cudaMallocPitch(&pitched->ptr, &pitched->pitch, extent.width, extent.height * extent.depth);
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent) {
    cudaError_t error = simt_sticky_error();
    for (size_t z = 0; z < extent.depth && error == cudaSuccess; z++)
        error = cudaMemset2D((char *)pitched.ptr + z * pitched.pitch * pitched.ysize, pitched.pitch, value, extent.width,
                             extent.height);
    return error;
}

static char *slice(struct cudaPitchedPtr of, struct cudaPos at, size_t z) {
    return (char *)of.ptr + ((at.z + z) * of.ysize + at.y) * of.pitch + at.x;
}
cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream) {
    cudaError_t error = p->srcArray != NULL || p->dstArray != NULL ? api_remember(cudaErrorNotSupported) : simt_sticky_error();
    for (size_t z = 0; z < p->extent.depth && error == cudaSuccess; z++)
        error = cudaMemcpy2DAsync(slice(p->dstPtr, p->dstPos, z), p->dstPtr.pitch, slice(p->srcPtr, p->srcPos, z),
                                  p->srcPtr.pitch, p->extent.width, p->extent.height, p->kind, stream);
    return error;
}
cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p) {
    cudaError_t error = cudaMemcpy3DAsync(p, NULL);
    return error != cudaSuccess ? error : cudaStreamSynchronize(NULL);
}

/* ---- pools: each device has its default one, which keeps nothing -------------------------------------------------------- */

struct CUmemPoolHandle_st {
    uint64_t release_threshold;
};
static struct CUmemPoolHandle_st pools[64];

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
    if (!api_is_device(device) || device >= (int)(sizeof pools / sizeof *pools)) return api_remember(cudaErrorInvalidDevice);
    *pool = &pools[device];
    return simt_sticky_error();
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) { return cudaDeviceGetDefaultMemPool(pool, device); }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) { return simt_sticky_error(); }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value) {
    if (attribute == cudaMemPoolAttrReleaseThreshold) pool->release_threshold = *(uint64_t *)value;
    return simt_sticky_error();
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value) {
    if (attribute < cudaMemPoolAttrReleaseThreshold)
        *(int *)value = 1;
    else
        *(uint64_t *)value = attribute == cudaMemPoolAttrReleaseThreshold ? pool->release_threshold : 0;
    return simt_sticky_error();
}
cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    return cudaMallocAsync(pointer, bytes, stream);
}
