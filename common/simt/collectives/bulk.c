/* cp.async.bulk and cp.async.bulk.tensor: copies of bytes, or of boxes of a tensor, that one thread asks for (PTX ISA, sections of
 * these names). Loads count at an mbarrier (transaction.c). Stores and reductions are in the thread's bulk groups, and happen as
 * late as they may: their shared memory is read when the thread waits for the group, and global memory is written when it waits
 * for that, too, or else at the end of the block. */
#include "async_work.h"

#include "collectives.h"
#include "device_memory.h"
#include "events.h"
#include "hooks.h"
#include "report.h"

/* Accesses of a copy are no requests of a warp: the meter leaves them out. */
static void judge_global(const struct tensor_copy *copy, uintptr_t global, uint64_t inside, enum access_kind kind) {
    if (inside == 0) return;
    size_t first = (size_t)__builtin_ctzll(inside), bytes = (size_t)__builtin_popcountll(inside);
    if (memory_is_private(global + first))
        simt_fail(copy->pc, cudaErrorIllegalAddress,
                  "an asynchronous copy between shared memory and %s: the other side must be global memory",
                  shared_offset_of(simt_worker, global + first) < SHARED_BYTES_MAX ? "shared memory" : "a local variable");
    simt_check_uncounted((const void *)(global + first), bytes, kind, kind == ACCESS_ATOMIC, copy->pc);
}

static void require_place(const struct tensor_copy *copy, const char *what) {
    if (copy->offset < SHARED_BYTES_MAX && shared_contains(simt_worker, copy->offset, copy->bytes)) return;
    simt_fail(copy->pc, cudaErrorIllegalAddress, "%s: %s of %u bytes at %s goes past the end of its array", what,
              copy->map.rank > 0 ? "a box" : "a copy", copy->bytes,
              describe_address((uintptr_t)simt_worker->shared.start + copy->offset).text);
}

/* Of more maps than are kept, none is accused. */
enum { MOST_FENCED = sizeof((struct async_work *)0)->fenced_maps / sizeof(void *) };
static bool is_fenced(const void *map) {
    const struct async_work *work = simt_worker->async.work;
    if (work->fenced_by != simt_worker->shadow.shared_owner) return false;
    for (unsigned i = 0; i < work->fenced_count && i < MOST_FENCED; i++)
        if (work->fenced_maps[i] == map) return true;
    return work->fenced_count > MOST_FENCED;
}

/* Of a tensor map on the thread's stack: is it a parameter in a card's constant memory? */
static bool is_grid_constant(const void *map) {
    const struct launch *launch = simt_worker->launch;
    size_t offset = stack_offset(simt_self, (uintptr_t)map),
           room = sizeof launch->grid_constants / sizeof *launch->grid_constants;
    unsigned count = atomic_load(&launch->grid_constant_count);
    for (unsigned i = 0; i < count && i < room; i++)
        if (offset - launch->grid_constants[i].offset < launch->grid_constants[i].bytes) return true;
    return count > room;
}

static struct tensor_copy check(const char *what, const void *map_pointer, int rank, const int at[MOST_DIMENSIONS],
                                size_t address, const void *pc) {
    struct tensor_copy copy = {.issuer = simt_self, .pc = pc, .offset = address};
    simt_self->last_pc = pc;
    simt_check_uncounted(map_pointer, sizeof copy.map, ACCESS_READ, false, pc);
    if ((uintptr_t)map_pointer % TENSOR_MAP_ALIGNMENT == 0) memcpy(&copy.map, map_pointer, sizeof copy.map);
    if (!tensor_map_is_sound(&copy.map))
        simt_fail(pc, cudaErrorIllegalInstruction, "%s: its tensor map is none that cuTensorMapEncodeTiled() has made%s", what,
                  (uintptr_t)map_pointer % TENSOR_MAP_ALIGNMENT != 0 ? ": its address is not a multiple of 64"
                                                                     : ", or it is not in memory yet");
    if ((uintptr_t)map_pointer - simt_self->stack < STACK_BYTES && !is_grid_constant(map_pointer))
        simt_fail(pc, cudaErrorIllegalInstruction,
                  "%s: its tensor map lies in local memory, where the TMA finds nothing: a card copies a parameter there whose "
                  "address is taken, unless it is const __grid_constant__",
                  what);
    enum memory_kind kind = memory_place((uintptr_t)map_pointer, sizeof copy.map).kind;
    if ((kind == DEVICE || kind == MANAGED || kind == VARIABLE) && !is_fenced(map_pointer))
        simt_fail(pc, cudaErrorIllegalInstruction,
                  "%s: its tensor map lies in global memory, and no thread of the block has executed "
                  "fence.proxy.tensormap::generic.acquire for it: make the map a __grid_constant__ parameter, or fence it",
                  what);
    if (copy.map.rank != rank)
        simt_fail(pc, cudaErrorIllegalInstruction, "%s has %d coordinates, but its tensor map %d dimensions", what, rank,
                  copy.map.rank);
    if (at[0] * (int)copy.map.element_bytes % UNIT != 0) /* seen on an H200, with every swizzle and number of dimensions */
        simt_fail(pc, cudaErrorIllegalInstruction,
                  "%s: the box begins at column %d, %d bytes into a row: that must be a multiple of 16", what, at[0],
                  at[0] * (int)copy.map.element_bytes);
    uint64_t bytes = copy.map.element_bytes;
    for (int d = 0; d < rank; d++) bytes *= copy.map.box[d], copy.at[d] = at[d];
    copy.bytes = bytes < SHARED_BYTES_MAX ? (uint32_t)bytes : SHARED_BYTES_MAX + 1;
    if (address >= SHARED_BYTES_MAX || address % 128 != 0)
        simt_fail(pc, cudaErrorMisalignedAddress,
                  "%s: the box in shared memory begins at %#zx: it must begin at a multiple of 128%s", what, address,
                  describe_promise(address).text);
    require_place(&copy, what);
    return copy;
}

void simt_fence_tensor_map(const void *map) {
    struct async_work *work = async_work_of(simt_worker);
    if (work->fenced_by != simt_worker->shadow.shared_owner) work->fenced_count = 0;
    work->fenced_by = simt_worker->shadow.shared_owner;
    if (!is_fenced(map)) work->fenced_maps[work->fenced_count++ % MOST_FENCED] = map;
}

/* Of bytes in a row. */
static struct tensor_copy copy_of_bytes(const char *what, uintptr_t global, size_t address, uint32_t bytes, const void *pc) {
    struct tensor_copy copy = {.issuer = simt_self, .pc = pc, .offset = address, .bytes = bytes};
    copy.map.address = global;
    copy.map.swizzle = ANY_SWIZZLE;
    simt_self->last_pc = pc;
    if (bytes % UNIT != 0)
        simt_fail(pc, cudaErrorMisalignedAddress, "%s of %u bytes: their number must be a multiple of 16", what, bytes);
    if (address % UNIT != 0 || global % UNIT != 0)
        simt_fail(pc, cudaErrorMisalignedAddress, "%s: its bytes begin at %#zx in %s memory: that must be a multiple of 16%s",
                  what, address % UNIT != 0 ? address : (size_t)global, address % UNIT != 0 ? "shared" : "global",
                  describe_promise(address % UNIT != 0 ? address : SIZE_MAX).text);
    require_place(&copy, what);
    return copy;
}

/* ---- loads ----------------------------------------------------------------------------------------------------------------- */

static void issue_load(const struct tensor_copy *copy, size_t offset, uintptr_t global, uint64_t inside) {
    const struct async_work *work = simt_worker->async.work;
    const struct transaction *barrier = &work->transactions[copy->barrier];
    event_unit(offset, global, inside);
    judge_global(copy, global, inside, ACCESS_COPY);
    async_judge_write(simt_worker->async.shadow->scratch, offset, (unsigned)copy->barrier, barrier->phases + 1,
                      copy->map.swizzle, copy->pc);
    struct shadowed shared = {simt_worker->shared.cells, SHARED_BYTES_MAX, true, false, simt_worker->shared.settled};
    shadow_access(&shared, offset, (uintptr_t)simt_worker->shared.start + offset, UNIT, ACCESS_WRITE, false, copy->pc);
    shadow_pending(simt_worker, offset, UNIT, true);
    memset(simt_worker->shared.start + offset, memory_poison, UNIT);
}

static void load(struct tensor_copy *copy, const char *what, size_t barrier_address) {
    struct transaction *barrier = transaction_of(barrier_address, what, copy->pc);
    if (!barrier->fenced)
        simt_fail(copy->pc, cudaErrorLaunchFailure,
                  "the copy completes on an mbarrier that was initialised at %s without fence.mbarrier_init after it, by the "
                  "same thread: the async proxy may not see the barrier yet",
                  source_line(barrier->init_pc));
    copy->barrier = transaction_number(barrier);
    async_row_of_thread(simt_worker, simt_self);
    tensor_copy_each(copy, issue_load);
    tile_written(copy);
    event_tensor_copy(TENSOR_LOAD, tensor_copy_sectors(copy, true), copy->map.address, (unsigned)barrier->offset, copy->pc);
    transaction_load(copy);
}

/* With a mask into each block of the cluster whose bit is set, at one place: the bytes count at the mbarrier that lies at the same
 * place in that block. The L2 cache is read once; counted are the sectors that each SM receives, as a card does. */
void simt_tensor_load(size_t to, const void *map, int rank, int at0, int at1, int at2, int at3, int at4, size_t barrier_address,
                      int mask) {
    const int at[MOST_DIMENSIONS] = {at0, at1, at2, at3, at4};
    const void *pc = __builtin_return_address(0);
    struct worker *own = simt_worker;
    async_work_of(own);
    struct tensor_copy copy = check("cp.async.bulk.tensor", map, rank, at, to, pc);
    if (mask == SIMT_TO_OWN_BLOCK) {
        load(&copy, "cp.async.bulk.tensor", barrier_address);
        return;
    }
    if (mask == 0 || mask >> own->launch->cluster != 0)
        simt_fail(pc, cudaErrorLaunchFailure,
                  "cp.async.bulk.tensor with .multicast::cluster: mask %#x names no blocks of a cluster of %u", mask,
                  own->launch->cluster);
    for (unsigned of = 0; of < own->launch->cluster; of++) {
        if ((mask >> of & 1) == 0) continue;
        cluster_act_in(worker_of_rank(own, of), false, pc);
        require_place(&copy, "cp.async.bulk.tensor");
        load(&copy, "cp.async.bulk.tensor", barrier_address);
        simt_worker = own;
    }
}

void simt_bulk_load(size_t to, const void *from, unsigned bytes, size_t barrier_address) {
    async_work_of(simt_worker);
    struct tensor_copy copy = copy_of_bytes("cp.async.bulk", (uintptr_t)from, to, bytes, __builtin_return_address(0));
    load(&copy, "cp.async.bulk", barrier_address);
}

/* ---- stores ---------------------------------------------------------------------------------------------------------------- */

static struct store_thread *find_store_thread(struct async_work *work) {
    unsigned i = 0;
    while (i < work->store_thread_count && work->store_threads[i].thread != simt_self) i++;
    return i < work->store_thread_count ? &work->store_threads[i] : NULL;
}

static struct store_thread *store_thread_of(struct async_work *work, const void *pc) {
    struct store_thread *thread = find_store_thread(work);
    unsigned i = work->store_thread_count;
    if (thread != NULL) return thread;
    if (i == MOST_READERS - WARP_READERS)
        simt_fail(pc, cudaErrorNotSupported, "the simulated device has at most %d threads of a block that store tensors",
                  MOST_READERS - WARP_READERS);
    work->store_threads[work->store_thread_count++] = (struct store_thread){simt_self, 0};
    simt_worker->async.shadow->store_readers = work->store_thread_count;
    return &work->store_threads[i];
}

/* Global memory counts as written by the issuer, and as not landed until the issuer has waited for it. */
static void mark(const struct tensor_copy *copy, size_t offset, uintptr_t global, uint64_t inside) {
    (void)offset;
    if (inside == 0) return;
    shadow_under_way(simt_worker, copy->issuer, global + (size_t)__builtin_ctzll(inside), (size_t)__builtin_popcountll(inside),
                     !copy->landed);
}

static void issue_store(const struct tensor_copy *copy, size_t offset, uintptr_t global, uint64_t inside) {
    event_unit(offset, global, inside);
    enum async_reader what = copy->map.rank > 0 ? TENSOR_BOX : copy->adds ? BULK_REDUCTION : BULK_STORE;
    async_judge_read(simt_worker->async.shadow->scratch, offset, copy->reader, copy->map.swizzle, what, copy->pc);
    if (copy->adds && inside != 0)
        shadow_judge_sum(global + (size_t)__builtin_ctzll(inside), (size_t)__builtin_popcountll(inside), copy->pc);
    judge_global(copy, global, inside, copy->adds ? ACCESS_ATOMIC : ACCESS_WRITE);
    mark(copy, offset, global, inside);
}

static void store(struct tensor_copy *copy) {
    struct async_work *work = simt_worker->async.work;
    struct store_thread *thread = store_thread_of(work, copy->pc);
    copy->group = thread->committed;
    copy->reader = WARP_READERS + (unsigned)(thread - work->store_threads);
    async_row_of_thread(simt_worker, simt_self);
    tensor_copy_each(copy, issue_store);
    event_tensor_copy(copy->adds ? TENSOR_REDUCTION : TENSOR_STORE, tensor_copy_sectors(copy, false), copy->map.address, 0,
                      copy->pc);
    if (async_is_early()) tensor_copy_store(copy);
    APPEND(work->stores, work->store_count, work->store_room) = *copy;
}

void simt_tensor_store(const void *map, int rank, int at0, int at1, int at2, int at3, int at4, size_t from) {
    const int at[MOST_DIMENSIONS] = {at0, at1, at2, at3, at4};
    async_work_of(simt_worker);
    struct tensor_copy copy = check("cp.async.bulk.tensor", map, rank, at, from, __builtin_return_address(0));
    for (int d = 0; d < rank; d++) /* seen on an H200; a load may begin there */
        if (at[d] < 0)
            simt_fail(copy.pc, cudaErrorIllegalInstruction,
                      "cp.async.bulk.tensor: it stores a box from coordinate %d on: no store begins before 0", at[d]);
    store(&copy);
}

void simt_bulk_store(void *to, size_t from, unsigned bytes, int adds) {
    async_work_of(simt_worker);
    struct tensor_copy copy =
        copy_of_bytes(adds ? "cp.reduce.async.bulk" : "cp.async.bulk", (uintptr_t)to, from, bytes, __builtin_return_address(0));
    copy.adds = adds;
    store(&copy);
}

void simt_bulk_commit(void) {
    struct async_work *work = async_work_of(simt_worker);
    struct store_thread *thread = find_store_thread(work);
    if (thread == NULL) return; /* an empty group */
    thread->committed++;
    simt_worker->async.shadow->groups[WARP_READERS + (thread - work->store_threads)]++;
}

/* In the order of issue. What a later store of the thread will write as well stays under way. */
static void land_stores(struct async_work *work, const struct thread *issuer, unsigned groups_done) {
    unsigned kept = 0;
    bool any = false;
    for (unsigned i = 0; i < work->store_count; i++) {
        struct tensor_copy *copy = &work->stores[i];
        if (copy->issuer != issuer || copy->group >= groups_done) {
            work->stores[kept++] = *copy;
            continue;
        }
        tensor_copy_store(copy);
        copy->landed = true;
        tensor_copy_each(copy, mark);
        any = true;
    }
    work->store_count = kept;
    for (unsigned i = 0; any && i < kept; i++)
        if (work->stores[i].issuer == issuer) tensor_copy_each(&work->stores[i], mark);
}

/* `.read`: shared memory has been read. What is in global memory then is not known before the full wait, or the end of the
 * kernel. */
void simt_bulk_wait(unsigned groups, int read_only) {
    struct async_work *work = async_work_of(simt_worker);
    const void *pc = __builtin_return_address(0);
    struct store_thread *thread = find_store_thread(work);
    if (thread == NULL) return; /* it has stored nothing */
    unsigned reader = WARP_READERS + (unsigned)(thread - work->store_threads);
    unsigned pending = groups < thread->committed ? groups : thread->committed, done = thread->committed - pending;
    event_sync("bulk", read_only ? "wait until read" : "wait", 0, done, 0, pc);
    for (unsigned i = 0; i < work->store_count && read_only; i++)
        if (work->stores[i].issuer == simt_self && work->stores[i].group < done) tensor_copy_take(&work->stores[i]);
    if (!read_only) land_stores(work, simt_self, done);
    async_learn_read(simt_self, reader, pending);
}

/* Copies that nobody waits for would write into the shared memory of the next block, or read it. */
static void end_copies(struct worker *worker) {
    struct async_work *work = worker->async.work;
    const struct tensor_copy *not_read = NULL;
    for (unsigned i = 0; i < work->store_count; i++) {
        tensor_copy_store(&work->stores[i]);
        if (not_read == NULL && !work->stores[i].was_read) not_read = &work->stores[i];
    }
    if (work->load_count > 0)
        simt_fail_at(work->loads[0].issuer, work->loads[0].pc, cudaErrorLaunchFailure,
                     "the block ends while this copy into its shared memory is under way: wait for the phase of its mbarrier");
    else if (not_read != NULL)
        simt_fail_at(not_read->issuer, not_read->pc, cudaErrorLaunchFailure,
                     "the block ends while this store may still read its shared memory: wait for its group "
                     "(cp.async.bulk.commit_group, cp.async.bulk.wait_group.read)");
}

void collectives_end_block(struct worker *worker) {
    if (!worker->async.on) return;
    end_copies(worker);
    wgmma_end_block(worker);
    registers_end_block(worker);
    if (worker->cluster.next != NULL) distributed_end(worker);
}
