/* Semaphores in global memory, by which blocks wait for one another: ld.acquire in a loop, and red.release.
 *
 * Who reads the same value a second time, without any access between, spins: it waits until the word has another value. When no
 * thread of a block can go on and one waits so, its CPU thread sleeps (scheduler/workers.c), and another one takes the next block.
 * memory/block_order.c knows what a release orders. */
#include "async_work.h"
#include "block_order.h"
#include "collectives.h"
#include "device_memory.h"
#include "hooks.h"
#include "report.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static _Atomic uint64_t changes;

struct spin {
    const uint32_t *word;
    uint32_t seen;
};

static int has_changed(void *data) {
    const struct spin *spin = data;
    return __atomic_load_n(spin->word, __ATOMIC_RELAXED) != spin->seen;
}

static void describe(void *data, char *text, size_t room) {
    const struct spin *spin = data;
    snprintf(text, room, "for another value of the semaphore %.200s, which is %d", describe_address((uintptr_t)spin->word).text,
             (int)spin->seen);
}

static const struct simt_condition change = {"ld.acquire", has_changed, describe};

static void check(const void *word, enum access_kind kind, const char *what, bool metered, const void *pc) {
    if ((uintptr_t)word % sizeof(uint32_t) != 0)
        simt_fail(pc, cudaErrorMisalignedAddress, "%s at an address that is not a multiple of 4", what);
    if (simt_worker->cluster.next != NULL)
        simt_fail(pc, cudaErrorNotSupported,
                  "%s in a block of a cluster: the simulated device has semaphores between other blocks", what);
    if (memory_is_private((uintptr_t)word))
        simt_fail(pc, cudaErrorIllegalAddress, "%s at an address that is not of global memory", what);
    atomic_store_explicit(&simt_worker->launch->has_semaphores, true, memory_order_relaxed);
    (metered ? simt_check_access : simt_check_uncounted)(word, sizeof(uint32_t), kind, true, pc);
}

/* Of less than the device: threads of the block may order themselves by flags, as by any fence. */
static void note_scope(enum simt_scope scope, enum simt_ordering of, const void *pc) {
    if (scope == SIMT_DEVICE)
        block_order_fence(simt_worker, simt_self, scope, of, pc);
    else
        hooks_fence(scope, of, pc);
}

/* The first read is counted: how often a card reads in a loop depends on time. */
uint32_t simt_load_acquire(const void *word, enum simt_scope scope, const char *file, int line) {
    const void *pc = __builtin_return_address(0);
    struct thread *self = simt_self;
    bool again = self->last_pc == pc && self->seen == (uintptr_t)word;
    async_work_of(simt_worker);
    check(word, ACCESS_READ, change.name, !again, pc);
    uint32_t value = block_order_acquire(simt_worker, self, word, scope);
    if (again && value == self->acquired) {
        struct spin spin = {word, value};
        simt_wait_until(&change, &spin, file, line);
        check(word, ACCESS_READ, change.name, false, pc);
        value = block_order_acquire(simt_worker, self, word, scope);
    }
    note_scope(scope, SIMT_ACQUIRE, pc);
    self->acquired = value;
    return value;
}

void simt_reduce_release(void *word, uint32_t value, enum simt_scope scope) {
    const void *pc = __builtin_return_address(0);
    async_work_of(simt_worker);
    check(word, ACCESS_ATOMIC, "red.release", true, pc);
    note_scope(scope, SIMT_RELEASE, pc);
    block_order_release(simt_worker, simt_self, word, value, scope);
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&changes, 1);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* ---- for the scheduler ------------------------------------------------------------------------------------------------------- */

uint64_t semaphore_changes(void) { return atomic_load(&changes); }

/* The first thread that waits for a semaphore, or of which the semaphore has changed. */
static const struct thread *find_waiting(const struct worker *worker, bool that_may_go_on) {
    FOR_EACH_THREAD (thread, worker)
        if (thread->state == AT_CONDITION && thread->condition == &change &&
            (!that_may_go_on || has_changed(thread->condition_data)))
            return thread;
    return NULL;
}

bool semaphore_is_waited_for(const struct worker *worker) { return find_waiting(worker, false) != NULL; }
bool semaphore_lets_go_on(const struct worker *worker) { return find_waiting(worker, true) != NULL; }

/* A while at most: a word may change by other stores, too, and the launch may fail. */
void semaphore_sleep(uint64_t changes_seen) {
    struct timespec until = time_in(5000000);
    pthread_mutex_lock(&lock);
    if (atomic_load(&changes) == changes_seen) pthread_cond_timedwait(&changed, &lock, &until);
    pthread_mutex_unlock(&lock);
}

void semaphore_describe(const struct worker *worker, char *text, size_t room) {
    const struct thread *thread = find_waiting(worker, false);
    char what[300];
    if (thread == NULL) return;
    describe(thread->condition_data, what, sizeof what);
    append_text(text, room, "; thread (%u,%u,%u) of block (%u,%u,%u) waits at %s in %s:%d %s", XYZ(thread->index),
                XYZ(worker->block_index), PLACE(thread->place), what);
}
