/* Shared memory: the dynamic part, and behind it the arrays of the block's __shared__ declarations. */
#include "device_memory.h"
#include "report.h"
#include "shadow.h"

#include <sys/mman.h>

size_t shared_most(void) {
    static const char *const sizes[] = {"227", "163", "99", "64"};
    static size_t most;
    const char *text = getenv("SIMT_SHARED_KIB");
    for (int i = 0; most == 0 && i < 4; i++)
        if (text == NULL || strcmp(text, sizes[i]) == 0) most = strtoul(sizes[i], NULL, 10) << 10;
    if (most != 0) return most;
    fprintf(stderr, "simulated device: SIMT_SHARED_KIB is \"%s\": it must be 64, 99, 163 or 227\n", text);
    exit(2);
}

bool shared_create(struct worker *worker) {
    /* Twice the size, so that an index that runs on lands in it and is told as such. */
    worker->shared.start = mmap(NULL, 2 * SHARED_BYTES_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    worker->shared.cells =
        mmap(NULL, cells_bytes(SHARED_BYTES_MAX), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (worker->shared.cells != MAP_FAILED) memory_expect_notes(worker->shared.cells, cells_bytes(SHARED_BYTES_MAX));
    worker->shared.settled = settled_sectors(worker->shared.cells, SHARED_BYTES_MAX);
    worker->shared.dirty = SHARED_BYTES_MAX; /* the first block, too, finds poison */
    return worker->shared.start != MAP_FAILED && worker->shared.cells != MAP_FAILED;
}

static bool begins_at_least(void) {
    static int least = -1;
    if (least < 0) least = simt_is_set_to("least", "most", "SIMT_SHARED_BASE");
    return least;
}

void shared_start_block(struct worker *worker) {
    size_t dynamic_bytes = worker->launch->dynamic_shared_bytes + (begins_at_least() ? SHARED_SHIFT : 0);
    worker->shared.base = worker->shared.promised = 0;
    if (worker->shared.used > worker->shared.dirty) worker->shared.dirty = worker->shared.used;
    if (dynamic_bytes > worker->shared.dirty) worker->shared.dirty = dynamic_bytes;
    memset(worker->shared.start, memory_poison, worker->shared.dirty);
    worker->shared.used = worker->shared.dirty = dynamic_bytes;
    worker->shared.array_count = 0;
}

/* The first declaration that a thread of the block, or of its cluster, comes to says where. A metered block stays at a multiple of 1024:
 * its bank conflicts are those of the recorded counts. */
static void place_dynamic(struct worker *worker, size_t alignment) {
    bool moves = begins_at_least() && alignment < SHARED_SHIFT;
    FOR_EACH_BLOCK (of, worker) moves &= !of->meter.on;
    FOR_EACH_BLOCK (of, worker) of->shared.promised = alignment, of->shared.base = moves ? alignment : 0;
}

/* No worker: an extern __shared__ array outside of any function, which asks before main(). */
void *simt_dynamic_shared(size_t alignment) {
    struct worker *worker = simt_worker;
    if (worker == NULL) return NULL;
    if (worker->shared.promised == 0) place_dynamic(worker, alignment);
    if (worker->shared.base != 0 && alignment > worker->shared.promised)
        simt_fail(NULL, cudaErrorNotSupported,
                  "the block has come to a declaration of dynamic shared memory at a multiple of %zu first, and to one of %zu "
                  "then: with SIMT_SHARED_BASE=least each must name the larger one",
                  worker->shared.promised, alignment);
    return worker->shared.start + worker->shared.base;
}

/* The first thread of a block that reaches a __shared__ declaration places the array; the others find it. Arrays lie
 * apart, so that an index past the end of one does not land in the next unnoticed. */
void *simt_static_shared(const size_t *extents, size_t bytes, size_t alignment, const char *name, const char *file, int line) {
    enum { GAP = 128 };
    struct worker *worker = simt_worker;
    size_t static_bytes = 0;
    for (int i = 0; i < worker->shared.array_count; i++) {
        if (worker->shared.arrays[i].extents == extents) return worker->shared.start + worker->shared.arrays[i].offset;
        static_bytes += worker->shared.arrays[i].bytes;
    }
    name = TEXT_OF_KERNEL(name), file = TEXT_OF_KERNEL(file);
    if (bytes > SHARED_BYTES_MAX || (alignment & (alignment - 1)) != 0 || alignment > SHARED_BYTES_MAX ||
        TEXT_OF_KERNEL((const char *)extents) != (const char *)extents)
        simt_fail(NULL, cudaErrorLaunchFailure, "%s:%d: a shared array of %zu bytes, at a multiple of %zu: there is none", file,
                  line, bytes, alignment);
    static_bytes += bytes;
    if (alignment < GAP) alignment = GAP;
    size_t offset = (worker->shared.used + GAP + alignment - 1) / alignment * alignment;
    if (static_bytes > worker->launch->static_limit || offset + bytes > SHARED_BYTES_MAX ||
        worker->shared.array_count == MAX_STATIC_ARRAYS)
        simt_fail(NULL, cudaErrorLaunchFailure,
                  "%s:%d: the __shared__ array %s brings the block to %zu bytes of static shared memory in %d arrays, and "
                  "%zu bytes with the dynamic part: at most %zu bytes and %d arrays may be declared beside it (%d bytes are "
                  "for both, unless cudaFuncSetAttribute gives the dynamic part its own)",
                  file, line, name, static_bytes, worker->shared.array_count + 1,
                  static_bytes + worker->launch->dynamic_shared_bytes, worker->launch->static_limit, MAX_STATIC_ARRAYS,
                  SHARED_BYTES_DEFAULT);
    size_t element_bytes = bytes;
    for (const size_t *extent = extents; *extent != 0; extent++) element_bytes /= *extent;
    worker->shared.arrays[worker->shared.array_count++] =
        (struct static_array){extents, name, offset, bytes, element_bytes > 0 ? element_bytes : 1};
    worker->shared.used = offset + bytes;
    FOR_EACH_BLOCK (of, worker) { /* in a cluster an array lies at one place in all blocks */
        if (of == worker) continue;
        of->shared.arrays[of->shared.array_count++] = worker->shared.arrays[worker->shared.array_count - 1];
        of->shared.used = worker->shared.used;
    }
    return worker->shared.start + offset;
}
