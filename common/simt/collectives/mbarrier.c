/* mbarriers: barriers that are 8 bytes of shared memory, at which a thread arrives first and waits later or not at all
 * (PTX ISA, section "mbarrier"). A phase ends when the expected number of arrivals is complete, and with it the asynchronous
 * copies that were bound to it.
 *
 * The end of a phase counts as a barrier of the whole block for shadow.c, also where fewer threads take part: it never
 * accuses a thread that has waited, and misses races of those that took no part in the phase.
 */
#include "mbarrier.h"

#include "async_shadow.h"
#include "device_memory.h"
#include "events.h"
#include "hooks.h"
#include "report.h"

/* Its accesses are judged, but are no requests that the meter knows. */
struct mbarrier *mbarrier_check(void *address, enum access_kind kind, const char *what, const void *pc) {
    if (!simt_is_shared(address) || (uintptr_t)address % sizeof(struct mbarrier) != 0)
        simt_fail(pc, cudaErrorIllegalAddress,
                  "%s: the barrier must lie in shared memory, at a multiple of 8 bytes: blocks cannot share one", what);
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

void simt_mbarrier_init(void *address, unsigned expected) { mbarrier_init(address, expected, __builtin_return_address(0)); }

static unsigned place_of(const struct mbarrier *barrier) { return (unsigned)shared_offset_of(simt_worker, (uintptr_t)barrier); }

static void end_phase(struct mbarrier *barrier) {
    async_copies_arrive(simt_worker, barrier, barrier->phase);
    event_phase_ended(simt_worker, simt_self, "mbarrier", place_of(barrier), barrier->phase, simt_self->last_pc);
    if (simt_worker->async.on) async_meet_all(simt_worker);
    barrier->phase++;
    barrier->pending = barrier->expected;
}

unsigned simt_mbarrier_arrive(void *address, unsigned count, int drop, const char *what, const char *file, int line) {
    const void *pc = __builtin_return_address(0);
    struct mbarrier *barrier = mbarrier_check(address, ACCESS_ATOMIC, what, pc);
    simt_self->place = (struct place){what, file, line};
    simt_self->last_pc = pc;
    if (count == 0 || count > barrier->pending)
        simt_fail(pc, cudaErrorLaunchFailure,
                  "%s: %u arrivals, but the phase waits for %u of %u only: do more threads arrive than init() was told?", what,
                  count, barrier->pending, barrier->expected);
    unsigned phase = barrier->phase;
    event_sync("mbarrier", "arrive", place_of(barrier), phase, 0, pc);
    if (drop) barrier->expected--;
    barrier->pending -= count;
    if (barrier->pending == 0) end_phase(barrier);
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

int simt_mbarrier_test(void *address, unsigned phase) {
    struct phase of = {mbarrier_check(address, ACCESS_ATOMIC, "try_wait()", __builtin_return_address(0)), phase};
    if (!phase_is_over(&of)) simt_give_way(); /* it will ask again */
    return phase_is_over(&of);
}

unsigned simt_mbarrier_phase(void *address) {
    return mbarrier_check(address, ACCESS_ATOMIC, "wait_parity()", __builtin_return_address(0))->phase;
}

void simt_mbarrier_wait(void *address, unsigned phase, const char *file, int line) {
    static const struct simt_condition over = {"barrier::wait()", phase_is_over, NULL};
    const void *pc = __builtin_return_address(0);
    struct phase of = {mbarrier_check(address, ACCESS_ATOMIC, over.name, pc), phase};
    event_sync("mbarrier", "wait", place_of(of.barrier), phase, 0, pc);
    simt_wait_until(&over, &of, file, line);
}
