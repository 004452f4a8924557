#include "run.h"

#include <stdlib.h>

static int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double quantile(const float *sorted, int count, double q) {
    double position = q * (count - 1);
    int below = (int)position;
    int above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (position - below) * (double)(sorted[above] - sorted[below]);
}

/* The passes once, after a write to `flush`, twice the size of the L2 cache, so that they find their inputs in device memory. */
static cudaError_t time_once(struct run *run, attention_pass *const passes[2], void *memory, void *flush, size_t flush_bytes,
                             cudaEvent_t start, cudaEvent_t stop, float *milliseconds) {
    struct problem problem = device_problem(run);
    cudaError_t error = cudaMemsetAsync(flush, 0, flush_bytes, NULL);
    if (error == cudaSuccess) error = cudaEventRecord(start, NULL);
    for (int i = 0; i < 2 && error == cudaSuccess; i++)
        if (passes[i] != NULL) error = passes[i](&problem, &run->device, memory, NULL);
    if (error == cudaSuccess) error = cudaEventRecord(stop, NULL);
    if (error == cudaSuccess) error = cudaEventSynchronize(stop);
    if (error == cudaSuccess) error = cudaEventElapsedTime(milliseconds, start, stop);
    return error;
}

cudaError_t time_passes(struct run *run, const struct step *step, struct passes passes, int warmup, int repeat,
                        struct timing *timing) {
    attention_pass *backward = passes.deterministic ? step->backward_deterministic : step->backward;
    attention_pass *const order[2] = {passes.forward ? forward_pass(step) : NULL, passes.backward ? backward : NULL};
    int l2_bytes = 0;
    void *flush = NULL, *memory = run->workspace;
    cudaEvent_t start = NULL, stop = NULL;
    float *samples = host_memory((size_t)repeat, sizeof *samples);
    cudaError_t error = cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, 0);
    size_t flush_bytes = 2 * (size_t)l2_bytes;
    if (error == cudaSuccess) error = cudaMalloc(&flush, flush_bytes);
    if (error == cudaSuccess) error = cudaEventCreate(&start);
    if (error == cudaSuccess) error = cudaEventCreate(&stop);
    if (error == cudaSuccess) error = spread_run(run, step, &memory);
    for (int i = -warmup; i < repeat && error == cudaSuccess; i++)
        error = time_once(run, order, memory, flush, flush_bytes, start, stop, &samples[i < 0 ? 0 : i]);
    error = gather_run(run, step, memory, error);
    if (error == cudaSuccess) {
        qsort(samples, (size_t)repeat, sizeof *samples, compare_floats);
        *timing =
            (struct timing){quantile(samples, repeat, 0.5), quantile(samples, repeat, 0.25), quantile(samples, repeat, 0.75)};
    }
    if (start != NULL) cudaEventDestroy(start);
    if (stop != NULL) cudaEventDestroy(stop);
    cudaFree(flush);
    free(samples);
    return error;
}
