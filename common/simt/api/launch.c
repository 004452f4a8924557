/* Launches: is the shape one that a card would take, in which order do the blocks run, and are they metered? */
#include "api.h"

#include "meter.h"
#include "scheduler.h"
#include "shadow.h"
#include "trace.h"

#include <stdarg.h>
#include <stdio.h>

static unsigned shuffle_seed;
static uint64_t launches;

void simt_shuffle_blocks(unsigned seed) { shuffle_seed = seed; }

unsigned api_parts = 1;
static unsigned api_part;

void simt_run_part(unsigned parts, unsigned part) {
    api_parts = parts;
    api_part = part;
}

/* blocks * part / api_parts, where the product may need more than 64 bits. */
static uint64_t first_of_part(uint64_t blocks, unsigned part) {
    return blocks / api_parts * part + blocks % api_parts * part / api_parts;
}

static unsigned calls_to_failure;

unsigned simt_fail_call(unsigned number) {
    unsigned before = calls_to_failure;
    calls_to_failure = number;
    return before;
}

static unsigned long calls;

unsigned long simt_calls(void) { return calls; }

bool api_call_is_to_fail(void) {
    calls++;
    return calls_to_failure > 0 && --calls_to_failure == 0;
}

static unsigned long default_stream_uses;

void simt_note_stream(const void *stream) {
    if (stream == NULL || stream == (const void *)cudaStreamLegacy) default_stream_uses++;
}

unsigned long simt_default_stream_uses(void) { return default_stream_uses; }

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b) {
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Block i runs as number (i * step + offset) % blocks: every block once when step and blocks have no common divisor. */
static void choose_order(struct launch *launch) {
    launch->step = 1;
    launch->offset = 0;
    if (shuffle_seed == 0 || launch->blocks < 2 || api_parts != 1) return;
    uint64_t random = (shuffle_seed + launch->number) * 0x9e3779b97f4a7c15u;
    launch->offset = (random >> 32) % launch->blocks;
    launch->step = (random & 0xffff) % launch->blocks + 1;
    while (greatest_common_divisor(launch->step, launch->blocks) != 1) launch->step++;
}

/* Kernels allowed more than SHARED_BYTES_DEFAULT of dynamic shared memory. */
static struct shared_limit {
    const void *kernel;
    size_t bytes;
} shared_limits[256];
static int shared_limit_count;

static struct shared_limit *find_limit(const void *kernel) {
    for (int i = 0; i < shared_limit_count; i++)
        if (shared_limits[i].kernel == kernel) return &shared_limits[i];
    return NULL;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value) {
    ONE_HOST_THREAD;
    if (kernel == NULL) return api_remember(cudaErrorInvalidDeviceFunction);
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return simt_sticky_error();
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || (size_t)value > shared_most())
        return api_remember(cudaErrorInvalidValue);
    struct shared_limit *limit = find_limit(kernel);
    if (limit == NULL) {
        if (shared_limit_count == (int)(sizeof shared_limits / sizeof *shared_limits))
            return api_remember(cudaErrorMemoryAllocation);
        limit = &shared_limits[shared_limit_count++];
        limit->kernel = kernel;
    }
    limit->bytes = (size_t)value;
    return simt_sticky_error();
}

static _Thread_local cudaError_t launch_error; /* of this host thread's last launch */
bool api_launch_untold;

int simt_launch_error(void) {
    api_launch_untold = false;
    return launch_error;
}

static void fail_launch(cudaError_t error) {
    api_launch_failed = api_launch_untold = true;
    launch_error = error;
    api_remember(error);
}

static void __attribute__((format(printf, 2, 3))) refuse(cudaError_t error, const char *format, ...) {
    char text[500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    simt_report(error, text);
    fail_launch(error);
}

/* Every thread comes here first, so that no thread of the launch has done anything. */
void simt_launch_bounds(unsigned threads) {
    struct launch *launch = simt_worker->launch;
    if (launch->threads <= threads) return;
    launch->bounds = threads;
    launch->failed = true;
    fiber_abandon(simt_worker);
}

static void refuse_shape(const char *name, const unsigned grid[3], const unsigned block[3]) {
    static const unsigned most_blocks[] = {2147483647, 65535, 65535}, most_threads[] = {1024, 1024, 64};
    const cudaError_t error = cudaErrorInvalidConfiguration;
    for (int i = 0; i < 3; i++) {
        if (block[i] == 0) {
            refuse(error, "launch of %s: a block of (%u,%u,%u) threads has none", name, block[0], block[1], block[2]);
            return;
        }
        if (grid[i] == 0) {
            refuse(error, "launch of %s: a grid of (%u,%u,%u) blocks has none", name, grid[0], grid[1], grid[2]);
            return;
        }
    }
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (threads > MAX_BLOCK_THREADS) {
        refuse(error, "launch of %s: %llu threads per block, at most %d", name, (unsigned long long)threads,
               MAX_BLOCK_THREADS);
        return;
    }
    for (int i = 0; i < 3; i++) {
        if (block[i] > most_threads[i]) {
            refuse(error, "launch of %s: %u threads per block in %c, at most %u", name, block[i], "xyz"[i],
                   most_threads[i]);
            return;
        }
        if (grid[i] > most_blocks[i]) {
            refuse(error, "launch of %s: %u blocks in %c, at most %u", name, grid[i], "xyz"[i], most_blocks[i]);
            return;
        }
    }
}

void simt_launch_kernel(const void *kernel, const char *name, const unsigned grid[3], const unsigned block[3],
                        size_t dynamic_shared_bytes, int cooperative, void (*run)(void *arguments), void *arguments,
                        size_t arguments_bytes) {
    if (simt_self != NULL)
        simt_fail(cudaErrorNotSupported, "kernel %s is launched from a kernel: the simulated device has no dynamic parallelism",
                  name);
    ONE_HOST_THREAD;
    launch_error = simt_sticky_error();
    if (launch_error != cudaSuccess) return;
    /* A program that goes on after a launch that failed is told no more: what follows reads what that kernel did not
     * write. As soon as the program has taken note of the error, later launches run. */
    if (api_launch_untold) {
        launch_error = cudaPeekAtLastError();
        return;
    }
    if (api_call_is_to_fail()) {
        fail_launch(cudaErrorLaunchOutOfResources); /* a test wanted it, and needs no report */
        return;
    }
    bool grid_fits =
        grid[0] >= 1 && grid[0] <= 2147483647u && grid[1] >= 1 && grid[1] <= 65535 && grid[2] >= 1 && grid[2] <= 65535;
    bool block_fits = block[0] >= 1 && block[0] <= 1024 && block[1] >= 1 && block[1] <= 1024 && block[2] >= 1 &&
                      block[2] <= 64 && block[0] * block[1] * block[2] <= MAX_BLOCK_THREADS;
    if (!grid_fits || !block_fits) {
        refuse_shape(name, grid, block);
        return;
    }
    const struct shared_limit *limit = find_limit(kernel);
    size_t allowed = limit != NULL ? limit->bytes : SHARED_BYTES_DEFAULT;
    if (dynamic_shared_bytes > allowed) {
        refuse(cudaErrorInvalidValue, "launch of %s: %zu bytes of dynamic shared memory, at most %zu%s", name,
               dynamic_shared_bytes, allowed,
               dynamic_shared_bytes <= shared_most()
                   ? " (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) allows more)"
                   : "");
        return;
    }
    uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    if (blocks > STAMP_BLOCKS_MAX) {
        refuse(cudaErrorNotSupported, "launch of %s: %llu blocks in all: the simulated device tells %llu apart", name,
               (unsigned long long)blocks, (unsigned long long)STAMP_BLOCKS_MAX);
        return;
    }
    if (api_parts == 0) return;
    if (cooperative != 0) {
        struct cudaDeviceProp properties;
        int per_multiprocessor;
        int device;
        cudaGetDevice(&device);
        cudaGetDeviceProperties(&properties, device);
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel, (int)(block[0] * block[1] * block[2]),
                                                      dynamic_shared_bytes);
        uint64_t most = (uint64_t)per_multiprocessor * (uint64_t)properties.multiProcessorCount;
        if (blocks > most) {
            refuse(cudaErrorCooperativeLaunchTooLarge,
                   "cooperative launch of %s: %llu blocks, which must all run at once: at most %llu of this size do", name,
                   (unsigned long long)blocks, (unsigned long long)most);
            return;
        }
    }
    struct launch launch = {
        .name = name,
        .kernel = kernel,
        .grid = {grid[0], grid[1], grid[2]},
        .block = {block[0], block[1], block[2]},
        .threads = block[0] * block[1] * block[2],
        .dynamic_shared_bytes = dynamic_shared_bytes,
        .static_limit = limit == NULL                                        ? SHARED_BYTES_DEFAULT - dynamic_shared_bytes
                        : shared_most() - limit->bytes < SHARED_BYTES_DEFAULT ? shared_most() - limit->bytes
                                                                              : SHARED_BYTES_DEFAULT,
        .body = run,
        .arguments = arguments,
        .arguments_bytes = arguments_bytes,
        .blocks = blocks,
        .next_block = first_of_part(blocks, api_part),
        .end_block = first_of_part(blocks, api_part + 1),
        .number = ++launches,
        .after_failure = api_launch_failed,
        .cooperative = cooperative != 0,
    };
    choose_order(&launch);
    launch.metered = meter_is_on(&launch.meter_every);
    shadow_next_order(&launch);
    host_launched(launch.order);
    if (launch.next_block == launch.end_block) return; /* none is of this part */
    memory_open_all();
    simt_run(&launch);
    memory_close_all();
    if (launch.bounds > 0)
        refuse(cudaErrorInvalidValue, "launch of %s: %u threads per block, its __launch_bounds__ allow %u", name, launch.threads,
               launch.bounds);
}

void simt_meter_start(unsigned every) { meter_start(every); }
void simt_meter_stop(void) { meter_stop(); }
char *simt_meter_json(void) { return meter_json(); }
void simt_meter_print(FILE *file, int with_source) { meter_print(file, with_source != 0); }

int simt_trace_start(FILE *file, const char *blocks) { return trace_start(file, blocks); }
void simt_trace_stop(void) { trace_stop(); }
