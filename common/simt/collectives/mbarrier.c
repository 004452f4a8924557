/* mbarriers: barriers that are 8 bytes of shared memory, at which a thread arrives first and waits later or not at all
 * (PTX ISA, section "mbarrier"). A phase ends when the expected number of arrivals is complete, and with it the asynchronous
 * copies that were bound to it.
 *
 * Who waits for a phase learns what those did before they arrived, and no more (async_shadow.h). Of barriers beyond
 * MOST_TRANSACTIONS the end of a phase counts as a barrier of the whole block, which misses races and accuses nobody.
 */
#include "async_work.h"

#include "collectives.h"
#include "device_memory.h"
#include "events.h"
#include "hooks.h"
#include "report.h"

/* Its accesses are judged, but are no requests that the meter knows. */
struct mbarrier *mbarrier_check(void *address, enum access_kind kind, const char *what, const void *pc) {
    if (!simt_is_shared(address) || (uintptr_t)address % sizeof(struct mbarrier) != 0)
        simt_fail(pc, cudaErrorIllegalAddress,
                  "%s: the barrier must lie in shared memory, at a multiple of 8 bytes: blocks cannot share one%s", what,
                  describe_promise(shared_offset_of(simt_worker, (uintptr_t)address)).text);
    unsigned char never_written[sizeof(struct mbarrier)];
    memset(never_written, memory_poison, sizeof never_written);
    if (kind == ACCESS_ATOMIC && memcmp(address, never_written, sizeof never_written) == 0)
        simt_fail(pc, cudaErrorLaunchFailure, "%s at a barrier that no thread has initialised", what);
    /* An arrival counts as a read: as a write it would hide init() from threads that nothing orders after it. */
    simt_check_uncounted(address, sizeof(struct mbarrier), kind == ACCESS_ATOMIC ? ACCESS_READ : kind, false, pc);
    return address;
}

void mbarrier_init(void *address, unsigned expected, const void *pc) {
    struct mbarrier *barrier = mbarrier_check(address, ACCESS_WRITE, "init()", pc);
    if (expected == 0 || expected > MOST_ARRIVALS)
        simt_fail(pc, cudaErrorInvalidValue, "init(): a barrier that expects %u arrivals: 1 to %d are possible", expected,
                  MOST_ARRIVALS);
    *barrier = (struct mbarrier){.expected = expected, .pending = expected};
}

/* ---- what a waiting thread learns --------------------------------------------------------------------------------------------- */

struct transaction *transaction_find(size_t offset) {
    struct async_work *work = async_work_of(simt_worker);
    for (unsigned i = 0; i < work->transaction_count; i++)
        if (work->transactions[i].offset == offset) return &work->transactions[i];
    return NULL;
}

struct transaction *transaction_enlist(size_t offset) {
    struct async_work *work = async_work_of(simt_worker);
    struct transaction *barrier = transaction_find(offset);
    if (barrier != NULL || work->transaction_count == MOST_TRANSACTIONS) return barrier;
    barrier = &work->transactions[work->transaction_count++];
    barrier->phases = 0;
    barrier->offset = offset;
    barrier->initialised_by = NULL;
    memset(barrier->arriving, 0, 2 * work->width * sizeof *barrier->arriving);
    return barrier;
}

void transaction_over(struct transaction *barrier) {
    for (unsigned i = 0; i < simt_worker->async.work->width; i++)
        if (barrier->arriving[i] > barrier->over[i]) barrier->over[i] = barrier->arriving[i];
    unsigned column = phase_column(simt_worker->async.shadow, (unsigned)transaction_number(barrier));
    barrier->over[column] = ++barrier->phases;
}

/* ---- cuda::barrier --------------------------------------------------------------------------------------------------------- */

static unsigned place_of(const struct mbarrier *barrier) { return (unsigned)shared_offset_of(simt_worker, (uintptr_t)barrier); }

void simt_mbarrier_init(void *address, unsigned expected) {
    mbarrier_init(address, expected, __builtin_return_address(0));
    struct transaction *order = transaction_enlist(place_of(address));
    if (order != NULL) order->initialised_by = NULL;
}

static void end_phase(struct mbarrier *barrier, struct transaction *order) {
    if (order != NULL) transaction_over(order);
    event_phase_ended(simt_worker, simt_self, "mbarrier", place_of(barrier), barrier->phase, simt_self->last_pc);
    if (order == NULL) async_meet_all(simt_worker);
    barrier->phase++;
    barrier->pending = barrier->expected;
}

unsigned simt_mbarrier_arrive(void *address, unsigned count, int drop, const char *what, const char *file, int line) {
    const void *pc = __builtin_return_address(0);
    struct mbarrier *barrier = mbarrier_check(address, ACCESS_ATOMIC, what, pc);
    simt_self->place = place_in_kernel(what, file, line);
    simt_self->last_pc = pc;
    if (count == 0 || count > barrier->pending)
        simt_fail(pc, cudaErrorLaunchFailure,
                  "%s: %u arrivals, but the phase waits for %u of %u only: do more threads arrive than init() was told?", what,
                  count, barrier->pending, barrier->expected);
    unsigned phase = barrier->phase;
    event_sync("mbarrier", "arrive", place_of(barrier), phase, 0, pc);
    if (drop) barrier->expected--;
    barrier->pending -= count;
    struct transaction *order = transaction_find(place_of(barrier));
    if (order != NULL && order->initialised_by != NULL)
        simt_fail(pc, cudaErrorNotSupported, "%s at an mbarrier that PTX has initialised: " ONE_INTERFACE, what);
    if (barrier->pending == 0)
        async_copies_arrive(simt_worker, barrier, phase); /* as this thread's writes, so before it arrives */
    if (order != NULL) async_release(simt_worker, simt_self, order->arriving);
    if (barrier->pending == 0) end_phase(barrier, order);
    return phase;
}

void simt_async_bind(void *address) {
    struct mbarrier *barrier = mbarrier_check(address, ACCESS_ATOMIC, "memcpy_async()", __builtin_return_address(0));
    async_copies_bind(barrier, barrier->phase);
}

struct phase {
    const struct mbarrier *barrier;
    unsigned number;
};

static int phase_is_over(void *data) {
    const struct phase *phase = data;
    return mbarrier_is_over(phase->barrier, phase->number);
}

static void learn(const struct mbarrier *barrier) {
    const struct transaction *order = transaction_find(place_of(barrier));
    if (order != NULL) async_acquire(simt_worker, simt_self, order->over);
}

int simt_mbarrier_test(void *address, unsigned phase) {
    struct phase of = {mbarrier_check(address, ACCESS_ATOMIC, "try_wait()", __builtin_return_address(0)), phase};
    if (!phase_is_over(&of)) simt_give_way(); /* it will ask again */
    if (!phase_is_over(&of)) return false;
    learn(of.barrier);
    return true;
}

unsigned simt_mbarrier_phase(void *address, unsigned parity) {
    unsigned phase = mbarrier_check(address, ACCESS_ATOMIC, "wait_parity()", __builtin_return_address(0))->phase;
    return (phase & 1) == (parity & 1) ? phase : phase - 1;
}

void simt_mbarrier_wait(void *address, unsigned phase, const char *file, int line) {
    static const struct simt_condition over = {"barrier::wait()", phase_is_over, NULL};
    const void *pc = __builtin_return_address(0);
    struct phase of = {mbarrier_check(address, ACCESS_ATOMIC, over.name, pc), phase};
    event_sync("mbarrier", "wait", place_of(of.barrier), phase, 0, pc);
    simt_wait_until(&over, &of, file, line);
    learn(of.barrier);
}
