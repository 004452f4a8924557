/* Launches: is the shape one that a card would take, and in which order do the blocks run? */
#include "api.h"

#include "hooks.h"
#include "scheduler.h"
#include "shadow.h"

#include <dlfcn.h>

static unsigned shuffle_seed;
static uint64_t launches, launches_before_seed;

void simt_shuffle_blocks(unsigned seed) {
    shuffle_seed = seed;
    launches_before_seed = launches;
}

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

/* Cluster i runs as number (i * step + offset) % clusters: each once when step and their number have no common divisor. */
static void choose_order(struct launch *launch) {
    uint64_t clusters = launch->blocks / launch->cluster;
    launch->step = 1;
    launch->offset = 0;
    if (shuffle_seed == 0) return;
    uint64_t random = launch->seed = (shuffle_seed + launch->number - launches_before_seed) * 0x9e3779b97f4a7c15u;
    if (clusters < 2 || api_parts != 1) return;
    launch->offset = (random >> 32) % clusters;
    launch->step = (random & 0xffff) % clusters + 1;
    while (greatest_common_divisor(launch->step, clusters) != 1) launch->step++;
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
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout ||
        attribute == cudaFuncAttributeNonPortableClusterSizeAllowed ||
        attribute == cudaFuncAttributeClusterSchedulingPolicyPreference)
        return simt_sticky_error();
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

int simt_launch_error(void) {
    api_launch_untold = false;
    return launch_error;
}

static void fail_launch(cudaError_t error) {
    api_launch_failed = api_launch_untold = true;
    launch_error = error;
    api_remember(error);
}

/* Returns true: the launch is refused. */
static bool __attribute__((format(printf, 2, 3))) refuse(cudaError_t error, const char *format, ...) {
    char text[800] = "", *line = calling_line();
    if (source_line_is_known(line)) snprintf(text, 300, "%.290s: ", line);
    APPEND_ARGUMENTS(text, sizeof text, format);
    free(line);
    simt_report(error, text);
    fail_launch(error);
    return true;
}

/* Every thread comes here first, and to the next function, so that no thread of the launch has done anything. */
void simt_launch_bounds(unsigned threads, unsigned blocks, unsigned cluster) {
    (void)cluster;
    struct launch *launch = simt_worker->launch;
    enum { OF_MULTIPROCESSOR = 65536, GRANULE = 8 };
    if (blocks != 0 && threads != 0)
        atomic_store_explicit(&launch->registers, OF_MULTIPROCESSOR / (threads * blocks) / GRANULE * GRANULE,
                              memory_order_relaxed);
    if (launch->threads <= threads) return;
    launch->bounds = threads;
    launch->failed = true;
    fiber_abandon(simt_worker);
}

void simt_grid_constant(const void *parameter, size_t bytes) {
    enum { ROOM = sizeof((struct launch *)0)->grid_constants / sizeof(struct grid_constant) };
    struct launch *launch = simt_worker->launch;
    const struct grid_constant own = {stack_offset(simt_self, (uintptr_t)parameter), bytes};
    unsigned count = atomic_load(&launch->grid_constant_count);
    for (unsigned i = 0; i < count && i < ROOM; i++)
        if (launch->grid_constants[i].offset == own.offset) return;
    unsigned i = atomic_fetch_add(&launch->grid_constant_count, 1);
    if (i < ROOM) launch->grid_constants[i] = own;
}

/* The launch begins again, with clusters. */
void simt_cluster_dims(unsigned x, unsigned y, unsigned z) {
    struct launch *launch = simt_worker->launch;
    if (launch->cluster == x * y * z) return; /* launch.c knows no other than along x */
    if (IS_CONFINED)                          /* it need not be at the head: what has run by then would not be counted */
        simt_fail(NULL, cudaErrorNotSupported, "__cluster_dims__: no task's kernel chooses its clusters");
    atomic_store(&launch->wanted[1], y);
    atomic_store(&launch->wanted[2], z);
    atomic_store(&launch->wanted[0], x);
    launch->failed = true;
    fiber_abandon(simt_worker);
}

static bool cluster_is_refused(const struct launch *launch, struct uint3 dims) {
    uint64_t size = (uint64_t)dims.x * dims.y * dims.z;
    if (size == 1) return false;
    if (size == 0 || launch->grid.x % dims.x != 0 || launch->grid.y % dims.y != 0 || launch->grid.z % dims.z != 0)
        return refuse(cudaErrorInvalidConfiguration,
                      "launch of %s: a grid of (%u,%u,%u) blocks is no multiple of clusters of (%u,%u,%u)", launch->name,
                      XYZ(launch->grid), XYZ(dims));
    if (size > MAX_CLUSTER || dims.x != size || launch->cooperative)
        return refuse(cudaErrorNotSupported,
                      "launch of %s: clusters of (%u,%u,%u) blocks%s: the simulated device has those of (2,1,1) to (%d,1,1)",
                      launch->name, XYZ(dims), launch->cooperative ? " in a cooperative launch" : "", MAX_CLUSTER);
    if ((launch->threads + WARP_SIZE - 1) / WARP_SIZE * WARP_SIZE * size > MAX_BLOCK_THREADS)
        return refuse(cudaErrorNotSupported,
                      "launch of %s: a cluster of %lu blocks of %u threads: the simulated device has clusters of at most %d",
                      launch->name, size, launch->threads, MAX_BLOCK_THREADS);
    return false;
}

/* Addresses of code and variables are those of one program or library. */
static bool is_refused_elsewhere(const char *name, const void *code) {
    Dl_info own, other;
    if (dladdr(__ehdr_start, &own) == 0 || dladdr(code, &other) == 0 || own.dli_fbase == other.dli_fbase) return false;
    return refuse(
        cudaErrorNotSupported,
        "launch of %s: its code is in %s, and the simulated device runs in %s: link all kernels into one shared library, "
        "or into the program",
        name, other.dli_fname, own.dli_fname);
}

static bool shape_is_refused(const char *name, struct uint3 grid_size, struct uint3 block_size) {
    const unsigned grid[3] = {XYZ(grid_size)}, block[3] = {XYZ(block_size)};
    const cudaError_t error = cudaErrorInvalidConfiguration;
    for (int i = 0; i < 3; i++) {
        if (block[i] == 0) return refuse(error, "launch of %s: a block of (%u,%u,%u) threads has none", name, XYZ(block_size));
        if (grid[i] == 0) return refuse(error, "launch of %s: a grid of (%u,%u,%u) blocks has none", name, XYZ(grid_size));
    }
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (threads > MAX_BLOCK_THREADS)
        return refuse(error, "launch of %s: %lu threads per block, at most %d", name, threads, MAX_BLOCK_THREADS);
    for (int i = 0; i < 3; i++) {
        if (block[i] > (unsigned)api_most_threads[i])
            return refuse(error, "launch of %s: %u threads per block in %c, at most %d", name, block[i], "xyz"[i],
                          api_most_threads[i]);
        if (grid[i] > (unsigned)api_most_blocks[i])
            return refuse(error, "launch of %s: %u blocks in %c, at most %d", name, grid[i], "xyz"[i], api_most_blocks[i]);
    }
    return false;
}

/* Nothing is launched after a fault, nor while the program has not asked for the error of a launch that failed: what
 * follows reads what that kernel did not write. */
static bool launches_are_off(void) {
    launch_error = simt_sticky_error();
    if (launch_error != cudaSuccess) return true;
    if (api_launch_untold) {
        launch_error = cudaPeekAtLastError();
        return true;
    }
    if (!api_call_is_to_fail()) return false;
    fail_launch(cudaErrorLaunchOutOfResources); /* a test wanted it, and needs no report */
    return true;
}

static bool size_is_refused(const struct launch *launch, const struct shared_limit *limit) {
    size_t allowed = limit != NULL ? limit->bytes : SHARED_BYTES_DEFAULT;
    if (launch->dynamic_shared_bytes > allowed)
        return refuse(cudaErrorInvalidValue, "launch of %s: %zu bytes of dynamic shared memory, at most %zu%s", launch->name,
                      launch->dynamic_shared_bytes, allowed,
                      launch->dynamic_shared_bytes <= shared_most()
                          ? " (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) allows more)"
                          : "");
    if (launch->blocks > STAMP_BLOCKS_MAX)
        return refuse(cudaErrorNotSupported, "launch of %s: %lu blocks in all: the simulated device tells %lu apart",
                      launch->name, launch->blocks, STAMP_BLOCKS_MAX);
    return false;
}

/* So many blocks of its size run at once on this device's multiprocessors, as far as threads and dynamic shared memory say. */
static uint64_t blocks_at_once(const struct launch *launch) {
    int per_multiprocessor, multiprocessors;
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, launch->kernel, (int)launch->threads,
                                                  launch->dynamic_shared_bytes);
    return (uint64_t)per_multiprocessor * (uint64_t)multiprocessors;
}

static bool cooperation_is_refused(const struct launch *launch) {
    uint64_t most = blocks_at_once(launch);
    if (launch->blocks <= most) return false;
    return refuse(cudaErrorCooperativeLaunchTooLarge,
                  "cooperative launch of %s: %lu blocks, which must all run at once: at most %lu of this size do", launch->name,
                  launch->blocks, most);
}

static size_t static_limit(const struct shared_limit *limit, size_t dynamic_shared_bytes) {
    if (limit == NULL) return SHARED_BYTES_DEFAULT - dynamic_shared_bytes;
    size_t rest = shared_most() - limit->bytes;
    return rest < SHARED_BYTES_DEFAULT ? rest : SHARED_BYTES_DEFAULT;
}

static void run_launch(struct launch *launch) {
    launch->next_block = first_of_part(launch->blocks / launch->cluster, api_part);
    launch->end_block = first_of_part(launch->blocks / launch->cluster, api_part + 1);
    launch->number = ++launches;
    choose_order(launch);
    /* Programs have the multiprocessors of their card written in: only where this device's are told does their number bind. In
     * another order than that of a card blocks may wait for such as begin later. */
    uint64_t most = getenv("SIMT_MULTIPROCESSORS") != NULL && launch->seed == 0 ? blocks_at_once(launch) / launch->cluster : 0;
    launch->most_resident = most < UINT32_MAX ? (unsigned)most : 0;
    shadow_next_order(launch);
    streams_launch(launch->stream, launch);
    host_watch();
    if (launch->next_block == launch->end_block) return; /* none is of this part */
    memory_open_all();
    simt_run(launch);
    memory_close_all();
    streams_launched(launch);
    if (launch->bounds > 0)
        refuse(cudaErrorInvalidValue, "launch of %s: %u threads per block, its __launch_bounds__ allow %u", launch->name,
               launch->threads, launch->bounds);
}

/* The launch's own, or those of the kernel where it has some. */
static void run_with_clusters(struct launch *launch, struct uint3 dims) {
    if (cluster_is_refused(launch, dims)) return;
    struct launch first = *launch;
    launch->cluster = dims.x;
    launch->stride = dims.x > 1 ? (launch->threads + WARP_SIZE - 1) / WARP_SIZE * WARP_SIZE : 0;
    run_launch(launch);
    if (launch->wanted[0] == 0) return;
    const struct uint3 wanted = {launch->wanted[0], launch->wanted[1], launch->wanted[2]};
    if (dims.x * dims.y * dims.z != 1)
        refuse(cudaErrorInvalidConfiguration, "launch of %s with clusters of (%u,%u,%u): its __cluster_dims__ say (%u,%u,%u)",
               launch->name, XYZ(dims), XYZ(wanted));
    else
        run_with_clusters(&first, wanted);
}

void simt_launch_kernel(const void *kernel, const char *name, struct uint3 grid, struct uint3 block, struct uint3 cluster,
                        size_t dynamic_shared_bytes, int cooperative, const void *in_stream, void (*run)(void *arguments),
                        void *arguments, size_t arguments_bytes) {
    if (simt_self != NULL)
        simt_fail(NULL, cudaErrorNotSupported,
                  "kernel %s is launched from a kernel: the simulated device has no dynamic parallelism", name);
    ONE_HOST_THREAD;
    name = TEXT_OF_KERNEL(name);
    confined_launch((uintptr_t)run, arguments, arguments_bytes, __builtin_frame_address(0));
    simt_note_stream(in_stream);
    if (launches_are_off() || is_refused_elsewhere(name, (const void *)(uintptr_t)run) || shape_is_refused(name, grid, block))
        return;
    struct launch launch = {
        .name = name,
        .kernel = kernel,
        .grid = grid,
        .block = block,
        .threads = block.x * block.y * block.z,
        .dynamic_shared_bytes = dynamic_shared_bytes,
        .body = run,
        .arguments = arguments,
        .arguments_bytes = arguments_bytes,
        .blocks = (uint64_t)grid.x * grid.y * grid.z,
        .stream = api_stream_for_work((cudaStream_t)in_stream),
        .after_failure = api_launch_failed,
        .cooperative = cooperative != 0,
    };
    const struct shared_limit *limit = find_limit(kernel);
    if (launch.stream == NULL && (launch_error = simt_sticky_error()) != cudaSuccess) return;
    if (launch.stream == NULL) {
        refuse(cudaErrorInvalidResourceHandle, "launch of %s: its stream is none, or has been destroyed", name);
        return;
    }
    if (launch.stream->device != api_device) {
        char stream[400];
        streams_name_own(launch.stream, stream, sizeof stream);
        refuse(cudaErrorInvalidResourceHandle, "launch of %s in %s, while device %d is current: cudaSetDevice(%d) first", name,
               stream, api_device, launch.stream->device);
        return;
    }
    api_run_late_before(launch.stream);
    if (size_is_refused(&launch, limit) || api_parts == 0) return;
    if (launch.cooperative && cooperation_is_refused(&launch)) return;
    launch.static_limit = static_limit(limit, dynamic_shared_bytes);
    run_with_clusters(&launch, cluster);
}
