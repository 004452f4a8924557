/* cp.async.bulk.tensor: copies of boxes of a tensor that one thread asks for (PTX ISA, section "cp.async.bulk.tensor"). Loads
 * count at an mbarrier (transaction.c); stores are in the thread's bulk groups: their shared memory is read, and global memory
 * written, when the thread waits for the group, as late as they may. */
#include "async_work.h"

#include "collectives.h"
#include "device_memory.h"
#include "events.h"
#include "hooks.h"
#include "report.h"

#include <inttypes.h>
#include <string.h>

/* Accesses of a copy are no requests of a warp: the meter leaves them out. */
static void judge_global(const struct tensor_copy *copy, uintptr_t global, uint64_t inside, enum access_kind kind) {
    if (inside == 0) return;
    size_t first = (size_t)__builtin_ctzll(inside), bytes = (size_t)__builtin_popcountll(inside);
    bool metering = simt_worker->meter.on;
    simt_worker->meter.on = false;
    simt_check_access((const void *)(global + first), bytes, kind, false, copy->pc);
    simt_worker->meter.on = metering;
}

static struct tensor_copy check(const char *what, const void *map_pointer, int rank, const int at[MOST_DIMENSIONS],
                                size_t address, const void *pc) {
    struct tensor_copy copy = {.issuer = simt_self, .pc = pc, .offset = address};
    simt_self->last_pc = pc;
    bool metering = simt_worker->meter.on;
    simt_worker->meter.on = false;
    simt_check_access(map_pointer, sizeof copy.map, ACCESS_READ, false, pc);
    simt_worker->meter.on = metering;
    if ((uintptr_t)map_pointer % TENSOR_MAP_ALIGNMENT == 0) memcpy(&copy.map, map_pointer, sizeof copy.map);
    if (!tensor_map_is_sound(&copy.map))
        simt_fail(cudaErrorIllegalInstruction, "%s: %s: its tensor map is none that cuTensorMapEncodeTiled() has made%s",
                  source_line(pc), what,
                  (uintptr_t)map_pointer % TENSOR_MAP_ALIGNMENT != 0 ? ": its address is not a multiple of 64"
                                                                     : ", or it is not in memory yet");
    if (copy.map.rank != rank)
        simt_fail(cudaErrorIllegalInstruction, "%s: %s has %d coordinates, but its tensor map %d dimensions", source_line(pc),
                  what, rank, copy.map.rank);
    uint64_t bytes = copy.map.element_bytes;
    for (int d = 0; d < rank; d++) bytes *= copy.map.box[d], copy.at[d] = at[d];
    copy.bytes = bytes < SHARED_BYTES_MAX ? (uint32_t)bytes : SHARED_BYTES_MAX + 1;
    if (address >= SHARED_BYTES_MAX || address % 128 != 0)
        simt_fail(cudaErrorMisalignedAddress,
                  "%s: %s: the box in shared memory begins at %#zx: it must begin at a multiple of 128", source_line(pc), what,
                  address);
    if (!shared_contains(simt_worker, address, copy.bytes)) {
        char where[200];
        describe_address((uintptr_t)simt_worker->shared.start + address, where, sizeof where);
        simt_fail(cudaErrorIllegalAddress, "%s: %s: a box of %" PRIu32 " bytes at %s goes past the end of its array",
                  source_line(pc), what, copy.bytes, where);
    }
    return copy;
}

/* ---- loads ----------------------------------------------------------------------------------------------------------------- */

static void issue_load(const struct tensor_copy *copy, size_t offset, uintptr_t global, uint64_t inside) {
    const struct async_work *work = simt_worker->async.work;
    const struct transaction *barrier = &work->transactions[copy->barrier];
    judge_global(copy, global, inside, ACCESS_COPY);
    async_judge_write(simt_worker->async.shadow->scratch, offset, (unsigned)copy->barrier, barrier->phases + 1,
                      copy->map.swizzle, copy->pc);
    struct shadowed shared = {simt_worker->shared.cells, SHARED_BYTES_MAX, true, false};
    shadow_access(&shared, offset, (uintptr_t)simt_worker->shared.start + offset, UNIT, ACCESS_WRITE, false, copy->pc);
    shadow_pending(simt_worker, offset, UNIT, true);
    memset(simt_worker->shared.start + offset, memory_poison, UNIT);
}

void simt_tensor_load(size_t to, const void *map, int rank, int at0, int at1, int at2, int at3, int at4,
                      size_t barrier_address) {
    const void *pc = __builtin_return_address(0);
    const int at[MOST_DIMENSIONS] = {at0, at1, at2, at3, at4};
    async_work_of(simt_worker);
    struct tensor_copy copy = check("cp.async.bulk.tensor", map, rank, at, to, pc);
    struct transaction *barrier = transaction_of(barrier_address, "cp.async.bulk.tensor", pc);
    if (!barrier->fenced)
        simt_fail(cudaErrorLaunchFailure,
                  "%s: the copy completes on an mbarrier that was initialised at %s without fence.mbarrier_init after it, by "
                  "the same thread: the async proxy may not see the barrier yet",
                  source_line(pc), source_line(barrier->init_pc));
    copy.barrier = transaction_number(barrier);
    async_row_of_thread(simt_worker, simt_self);
    tensor_copy_each(&copy, issue_load);
    event_tensor_copy(false, tensor_copy_sectors(&copy, true));
    transaction_load(&copy);
}

/* ---- stores ---------------------------------------------------------------------------------------------------------------- */

static struct store_thread *store_thread_of(struct async_work *work, const void *pc) {
    unsigned i = 0;
    while (i < work->store_thread_count && work->store_threads[i].thread != simt_self) i++;
    if (i == MOST_READERS - WARP_READERS)
        simt_fail(cudaErrorNotSupported, "%s: the simulated device has at most %d threads of a block that store tensors",
                  source_line(pc), MOST_READERS - WARP_READERS);
    if (i == work->store_thread_count) {
        work->store_threads[work->store_thread_count++] = (struct store_thread){simt_self, 0};
        simt_worker->async.shadow->store_readers = work->store_thread_count;
    }
    return &work->store_threads[i];
}

static void issue_store(const struct tensor_copy *copy, size_t offset, uintptr_t global, uint64_t inside) {
    async_judge_read(simt_worker->async.shadow->scratch, offset, copy->reader, copy->map.swizzle, "the store of a tensor",
                     copy->pc);
    judge_global(copy, global, inside, ACCESS_WRITE);
}

/* Late: what shared memory holds at the wait is what is stored. */
void simt_tensor_store(const void *map, int rank, int at0, int at1, int at2, int at3, int at4, size_t from) {
    const void *pc = __builtin_return_address(0);
    const int at[MOST_DIMENSIONS] = {at0, at1, at2, at3, at4};
    struct async_work *work = async_work_of(simt_worker);
    struct tensor_copy copy = check("cp.async.bulk.tensor", map, rank, at, from, pc);
    struct store_thread *thread = store_thread_of(work, pc);
    copy.group = thread->committed;
    copy.reader = WARP_READERS + (unsigned)(thread - work->store_threads);
    async_row_of_thread(simt_worker, simt_self);
    tensor_copy_each(&copy, issue_store);
    event_tensor_copy(true, tensor_copy_sectors(&copy, false));
    if (async_is_early()) tensor_copy_store(&copy);
    copy.landed = async_is_early();
    tensor_copy_add(&work->stores, &work->store_count, &work->store_room, &copy);
}

void simt_bulk_commit(void) {
    struct async_work *work = async_work_of(simt_worker);
    struct store_thread *thread = store_thread_of(work, __builtin_return_address(0));
    thread->committed++;
    simt_worker->async.shadow->groups[WARP_READERS + (thread - work->store_threads)]++;
}

/* `.read`: shared memory has been read. What is in global memory then is of no thread's business before the full wait, or the
 * end of the kernel; here it lands at once. */
void simt_bulk_wait(unsigned groups) {
    struct async_work *work = async_work_of(simt_worker);
    struct store_thread *thread = store_thread_of(work, __builtin_return_address(0));
    unsigned reader = WARP_READERS + (unsigned)(thread - work->store_threads), kept = 0, pending = 0;
    for (unsigned i = 0; i < work->store_count; i++) {
        struct tensor_copy copy = work->stores[i];
        bool done = copy.issuer == simt_self && copy.group + groups < thread->committed;
        if (done && !copy.landed) tensor_copy_store(&copy);
        if (!done) work->stores[kept++] = copy;
    }
    work->store_count = kept;
    pending = groups < thread->committed ? groups : thread->committed;
    uint32_t *known = &row_of(simt_worker, simt_self)[reads_column(simt_worker->async.shadow, reader)];
    uint32_t done = simt_worker->async.shadow->groups[reader] - pending;
    if (done > *known) *known = done;
}

/* Copies that nobody waits for would write into the shared memory of the next block. */
static void end_copies(struct worker *worker) {
    struct async_work *work = worker->async.work;
    for (unsigned i = 0; i < work->store_count; i++)
        if (!work->stores[i].landed) tensor_copy_store(&work->stores[i]);
    if (work->load_count > 0)
        simt_fail_at(
            work->loads[0].issuer, cudaErrorLaunchFailure,
            "%s: the block ends while this copy into its shared memory is under way: wait for the phase of its mbarrier",
            source_line(work->loads[0].pc));
    else if (work->store_count > 0)
        simt_fail_at(work->stores[0].issuer, cudaErrorLaunchFailure,
                     "%s: the block ends while this store may still read its shared memory: wait for its group "
                     "(cp.async.bulk.commit_group, cp.async.bulk.wait_group.read)",
                     source_line(work->stores[0].pc));
}

void collectives_end_block(struct worker *worker) {
    if (!worker->async.on) return;
    end_copies(worker);
    wgmma_end_block(worker);
    registers_end_block(worker);
}
