/* cp.async: copies from global to shared memory that are under way until the thread waits for them.
 *
 * On a card the data may arrive at any moment between the copy's issue and the wait. Here they arrive at the wait, as late
 * as they may, and until then the words hold poison and are marked as pending: whoever touches them is told so.
 */
#include "collectives.h"

#include "device_memory.h"
#include "events.h"
#include "hooks.h"
#include "report.h"

struct async_copy {
    unsigned char *to;
    size_t bytes;
    unsigned char data[16];
    unsigned group;       /* of the thread's groups, from 0 */
    const void *mbarrier; /* with whose phase it arrives, too; NULL: none */
    unsigned phase;
    uint64_t accesses; /* of the thread before it, under the meter */
};

/* Of one thread, oldest first. */
struct async_copies {
    struct async_copy *list;
    unsigned count, room, committed_groups;
};

static struct async_copies *copies_of(struct thread *thread) {
    if (thread->copies == NULL) thread->copies = resize_or_die(NULL, sizeof *thread->copies);
    return thread->copies;
}

void async_copies_forget(struct worker *worker) {
    FOR_EACH_THREAD (thread, worker)
        if (thread->copies != NULL) thread->copies->count = thread->copies->committed_groups = 0;
}

void simt_async_copy(void *to_shared, const void *from_global, size_t bytes, size_t zero_bytes) {
    struct async_copies *copies = copies_of(simt_self);
    const void *pc = __builtin_return_address(0);
    if ((bytes != 4 && bytes != 8 && bytes != 16) || zero_bytes > bytes)
        simt_fail(pc, cudaErrorInvalidValue, "an asynchronous copy of %zu bytes with %zu zeros: it moves 4, 8 or 16 bytes",
                  bytes, zero_bytes);
    if ((uintptr_t)to_shared % bytes != 0 || (uintptr_t)from_global % bytes != 0)
        simt_fail(pc, cudaErrorMisalignedAddress,
                  "an asynchronous copy of %zu bytes between addresses that are not multiples of it", bytes);
    if (!simt_is_shared(to_shared)) simt_fail(pc, cudaErrorIllegalAddress, "an asynchronous copy to memory that is not shared");
    if ((uintptr_t)from_global - simt_self->stack < STACK_BYTES)
        simt_fail(pc, cudaErrorIllegalAddress, "an asynchronous copy of a local variable: it reads global memory only");
    if (simt_is_shared(from_global)) { /* of memcpy_async(): a load and a store, on a card too */
        if (zero_bytes < bytes) simt_check_access(from_global, bytes - zero_bytes, ACCESS_READ, false, pc);
        simt_check_access(to_shared, bytes, ACCESS_WRITE, false, pc);
        memmove(to_shared, from_global, bytes - zero_bytes);
        memset((char *)to_shared + bytes - zero_bytes, 0, zero_bytes);
        return;
    }
    struct async_copy *copy = &APPEND(copies->list, copies->count, copies->room);
    *copy = (struct async_copy){
        .to = to_shared, .bytes = bytes, .group = copies->committed_groups, .accesses = simt_self->accesses};
    event_copy_issued(simt_worker, from_global, to_shared, bytes, zero_bytes, pc);
    memcpy(copy->data, from_global, bytes - zero_bytes);
    memset(to_shared, memory_poison, bytes);
}

void simt_async_commit(void) {
    copies_of(simt_self)->committed_groups++;
    event_groups(COPIES_COMMIT, 0, __builtin_return_address(0));
}

/* The thread's copies that come with phase `number` of the mbarrier, or in groups before `number` where that is NULL. */
static bool lands(const struct async_copy *copy, const void *mbarrier, unsigned number) {
    return mbarrier == NULL ? copy->group < number : copy->mbarrier == mbarrier && copy->phase == number;
}
static void land(const struct thread *thread, const void *mbarrier, unsigned number) {
    struct async_copies *copies = thread->copies;
    unsigned kept = 0;
    for (unsigned i = 0; i < copies->count; i++) {
        struct async_copy copy = copies->list[i];
        if (!lands(&copy, mbarrier, number)) {
            copies->list[kept++] = copy;
            continue;
        }
        memcpy(copy.to, copy.data, copy.bytes);
        event_copy_landed(simt_worker, copy.to, copy.bytes, thread->accesses - copy.accesses);
    }
    copies->count = kept;
}

/* They arrive when somebody looks: as late as they may. */
static int groups_arrive(void *data) {
    unsigned groups = *(unsigned *)data, committed = copies_of(simt_self)->committed_groups;
    if (committed > groups) land(simt_self, NULL, committed - groups);
    return true;
}

/* All that the thread has issued before, whether committed to a group or not: cp.async.mbarrier.arrive in the PTX manual. */
void async_copies_bind(const void *mbarrier, unsigned phase) {
    struct async_copies *copies = copies_of(simt_self);
    for (unsigned i = copies->count; i > 0 && copies->list[i - 1].mbarrier == NULL; i--) {
        copies->list[i - 1].mbarrier = mbarrier;
        copies->list[i - 1].phase = phase;
    }
}

void async_copies_arrive(struct worker *worker, const void *mbarrier, unsigned phase) {
    FOR_EACH_THREAD (thread, worker)
        if (thread->copies != NULL) land(thread, mbarrier, phase);
}

void simt_async_wait(unsigned groups, const char *file, int line) {
    static const struct simt_condition arrived = {"__pipeline_wait_prior()", groups_arrive, NULL};
    simt_self->last_pc = __builtin_return_address(0);
    simt_wait_until(&arrived, &groups, file, line);
    event_groups(COPIES_WAIT, groups, simt_self->last_pc);
}
