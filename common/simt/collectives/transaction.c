/* mbarriers as PTX names them: a phase ends when all arrivals and all announced bytes have come (PTX ISA, section "mbarrier").
 *
 * Copies land as late as they may: when a thread waits for the phase, and all arrivals are there. With SIMT_ASYNC=early they
 * land at once. An arrival lets the waiters know what its thread knows (async_shadow.h); the phase itself, that its copies
 * have landed. */
#include "async_work.h"

#include "collectives.h"
#include "device_memory.h"
#include "events.h"
#include "report.h"

enum { MOST_BYTES = (1 << 20) - 1 };

static struct mbarrier *word_of(const struct transaction *barrier) {
    return (struct mbarrier *)(simt_worker->shared.start + barrier->offset);
}

struct transaction *transaction_of(size_t address, const char *what, const void *pc) {
    struct transaction *barrier = transaction_find(address);
    if (barrier == NULL) simt_fail(pc, cudaErrorLaunchFailure, "%s at a barrier that no thread has initialised", what);
    if (barrier->initialised_by == NULL)
        simt_fail(pc, cudaErrorNotSupported, "%s at an mbarrier that cuda::barrier has initialised: " ONE_INTERFACE, what);
    bool aged = barrier->init_age != simt_worker->async.shadow->ages;
    if (!aged && barrier->initialised_by != simt_self &&
        row_of(simt_self)[barrier->initialised_by->number] <= barrier->init_clock)
        simt_fail(NULL, cudaErrorLaunchFailure,
                  "race on an mbarrier: %s at %s, but thread (%u,%u,%u) initialises it at %s, and nothing orders the two: a "
                  "__syncthreads() is missing after that",
                  what, source_line(pc), XYZ(barrier->initialised_by->index), source_line(barrier->init_pc));
    return barrier;
}

void simt_transaction_init(size_t address, unsigned count) {
    struct async_work *work = async_work_of(simt_worker);
    const void *pc = __builtin_return_address(0);
    mbarrier_init(simt_shared_pointer(address), count, pc);
    struct transaction *barrier = transaction_enlist(address);
    if (barrier == NULL)
        simt_fail(pc, cudaErrorNotSupported, "the simulated device has at most %d mbarriers in a block", MOST_TRANSACTIONS);
    for (unsigned i = 0; i < work->load_count; i++)
        if (work->loads[i].barrier == transaction_number(barrier))
            simt_fail(pc, cudaErrorLaunchFailure, "mbarrier.init of a barrier with whose phase the copy issued at %s will land",
                      source_line(work->loads[i].pc));
    barrier->fenced = false;
    barrier->initialised_by = simt_self;
    barrier->init_pc = pc;
    barrier->init_clock = simt_self->clock;
    barrier->init_age = simt_worker->async.shadow->ages;
    barrier->bytes = 0;
    barrier->first_phase = barrier->phases;
    barrier->last = simt_self;
    barrier->last_pc = pc;
}

/* Rule 7. A proxy fence of the thread that has initialised them serves as well. */
void simt_fence_mbarrier_init(void) {
    struct async_work *work = async_work_of(simt_worker);
    for (unsigned i = 0; i < work->transaction_count; i++)
        if (work->transactions[i].initialised_by == simt_self) work->transactions[i].fenced = true;
}

void simt_fence_proxy(void) {
    simt_fence_mbarrier_init();
    async_fence(simt_worker, simt_self);
}

/* ---- phases ---------------------------------------------------------------------------------------------------------------- */

static void end_phase(struct transaction *barrier) {
    struct mbarrier *word = word_of(barrier);
    transaction_over(barrier);
    event_phase_ended(simt_worker, barrier->last, "mbarrier", (unsigned)barrier->offset,
                      barrier->phases - 1 - barrier->first_phase, barrier->last_pc);
    word->phase++;
    word->pending = word->expected;
}

/* So many the running thread knows to be over. */
static uint32_t *phases_known(const struct transaction *barrier) {
    unsigned number = (unsigned)transaction_number(barrier);
    return &row_of(simt_self)[phase_column(simt_worker->async.shadow, number)];
}

static int64_t bytes_under_way(const struct transaction *barrier, const struct tensor_copy **any) {
    const struct async_work *work = simt_worker->async.work;
    int64_t bytes = 0;
    for (unsigned i = 0; i < work->load_count; i++)
        if (work->loads[i].barrier == transaction_number(barrier)) bytes += work->loads[i].bytes, *any = &work->loads[i];
    return bytes;
}

static void land_all(const struct transaction *barrier) {
    struct async_work *work = simt_worker->async.work;
    unsigned kept = 0;
    for (unsigned i = 0; i < work->load_count; i++) {
        struct tensor_copy copy = work->loads[i];
        if (copy.barrier == transaction_number(barrier))
            tensor_copy_load(&copy);
        else
            work->loads[kept++] = copy;
    }
    work->load_count = kept;
}

/* Somebody waits: what can land, lands. */
static void try_to_end(struct transaction *barrier) {
    if (word_of(barrier)->pending > 0) return;
    const struct tensor_copy *copy = NULL;
    int64_t under_way = bytes_under_way(barrier, &copy);
    if (under_way > barrier->bytes) {
        simt_fail_at(copy->issuer, copy->pc, cudaErrorLaunchFailure,
                     "copies bring %ld bytes to the phase of their mbarrier, but its threads have announced %ld only "
                     "(expect_tx): the phase may end before all have landed",
                     under_way, barrier->bytes);
        return;
    }
    if (under_way < barrier->bytes) return;
    land_all(barrier);
    barrier->bytes = 0;
    end_phase(barrier);
}

void transaction_load(struct tensor_copy *copy) {
    struct async_work *work = simt_worker->async.work;
    struct transaction *barrier = &work->transactions[copy->barrier];
    if (!async_is_early()) {
        APPEND(work->loads, work->load_count, work->load_room) = *copy;
        return;
    }
    tensor_copy_load(copy);
    barrier->bytes -= copy->bytes;
    if (barrier->bytes < 0 && word_of(barrier)->pending == 0)
        simt_fail(copy->pc, cudaErrorLaunchFailure,
                  "this copy brings %ld bytes more to the phase of its mbarrier than its threads have announced (expect_tx)",
                  -barrier->bytes);
    try_to_end(barrier);
}

void simt_transaction_arrive(size_t address, unsigned count, unsigned bytes, const char *what, const char *file, int line) {
    transaction_arrive(address, count, bytes, what, file, line, __builtin_return_address(0));
}

void transaction_arrive(size_t address, unsigned count, unsigned bytes, const char *what, const char *file, int line,
                        const void *pc) {
    struct mbarrier *word = mbarrier_check(simt_shared_pointer(address), ACCESS_ATOMIC, what, pc);
    struct transaction *barrier = transaction_of(address, what, pc);
    simt_self->place = place_in_kernel(what, file, line);
    simt_self->last_pc = pc;
    if (count > word->pending)
        simt_fail(pc, cudaErrorLaunchFailure,
                  "%s: %u arrivals, but the phase waits for %u of %u only: do more threads arrive than mbarrier.init was told, "
                  "or does one arrive for the next phase before this one is over?",
                  what, count, (unsigned)word->pending, (unsigned)word->expected);
    barrier->bytes += bytes;
    if (barrier->bytes > MOST_BYTES)
        simt_fail(pc, cudaErrorLaunchFailure, "%s: %ld bytes are announced to one phase: at most %d are possible", what,
                  barrier->bytes, MOST_BYTES);
    event_sync("mbarrier", count > 0 ? "arrive" : "expect", (unsigned)barrier->offset, barrier->phases - barrier->first_phase,
               bytes, pc);
    if (count == 0) return;
    if (simt_worker->async.work->binds_copies && count == word->pending) /* as this thread's writes, so before it arrives */
        async_copies_arrive(simt_worker, word, word->phase);
    async_release(simt_worker, simt_self, barrier->arriving);
    barrier->last = simt_self;
    barrier->last_pc = pc;
    word->pending -= count;
    const struct tensor_copy *copy = NULL;
    bool no_bytes = barrier->bytes == 0 && bytes_under_way(barrier, &copy) == 0, alone = count == word->expected;
    if (async_is_early() || no_bytes) try_to_end(barrier);
    if (no_bytes && alone) *phases_known(barrier) = barrier->phases; /* who arrives alone knows that it has ended the phase */
}

/* ---- waiting too late ------------------------------------------------------------------------------------------------------- */

/* Rule 16. A wait with a parity means the phase that is not over or the one before. What the thread knows to be over tells which of the
 * two it can be: when more phases are over, the wait ends with another phase than in another order of warps. */
static void judge_lateness(const struct transaction *barrier, unsigned parity, const void *pc) {
    if (simt_worker->shadow.block_synchronises && atomic_load(&simt_worker->launch->fenced)) return; /* by flags, perhaps */
    uint32_t known = *phases_known(barrier) > barrier->first_phase ? *phases_known(barrier) - barrier->first_phase : 0;
    uint32_t over = barrier->phases - barrier->first_phase;
    bool is_next = (known & 1) == parity;
    if (over - known < (is_next ? 2 : 1)) return;
    char meant[40] = "the one before the first", effect[60] = "and the wait ends at once";
    if (is_next || known > 0) snprintf(meant, sizeof meant, "phase %u", is_next ? known : known - 1);
    if ((over & 1) == parity) snprintf(effect, sizeof effect, "and it waits for phase %u now", over);
    simt_fail(pc, cudaErrorLaunchFailure,
              "mbarrier.try_wait with parity %u comes too late to the mbarrier %s: this thread knows of %u phases that are "
              "over, so it means %s; %u are over, %s. The last to arrive was thread (%u,%u,%u) at %s: it must not go on to "
              "another phase before this thread has waited",
              parity, describe_address((uintptr_t)word_of(barrier)).text, known, meant, over, effect, XYZ(barrier->last->index),
              source_line(barrier->last_pc));
}

/* ---- waiting --------------------------------------------------------------------------------------------------------------- */

struct wait {
    struct transaction *barrier;
    unsigned phase;
};

static int is_over(void *data) {
    struct wait *wait = data;
    struct mbarrier *word = word_of(wait->barrier);
    if (!mbarrier_is_over(word, wait->phase)) try_to_end(wait->barrier);
    return mbarrier_is_over(word, wait->phase);
}

static void describe(void *data, char *text, size_t room) {
    const struct wait *wait = data;
    const struct transaction *barrier = wait->barrier;
    const struct mbarrier *word = word_of(barrier);
    const struct tensor_copy *copy = NULL;
    int64_t missing = barrier->bytes - bytes_under_way(barrier, &copy);
    snprintf(text, room, "for phase %u of the mbarrier %s, to which ", wait->phase, describe_address((uintptr_t)word).text);
    if (word->pending > 0)
        append_text(text, room, "%u of %u arrivals are missing", (unsigned)word->pending, (unsigned)word->expected);
    else
        append_text(text, room, "%ld bytes are missing that were announced and no copy brings", missing);
}

/* Until the phase of this parity is over: the one that is not over yet, if it has it, else the one before. */
void simt_transaction_wait(size_t address, unsigned parity, const char *file, int line) {
    static const struct simt_condition over = {"mbarrier.try_wait", is_over, describe};
    const void *pc = __builtin_return_address(0);
    struct mbarrier *word = mbarrier_check(simt_shared_pointer(address), ACCESS_ATOMIC, over.name, pc);
    struct wait wait = {transaction_of(address, over.name, pc), word->phase};
    judge_lateness(wait.barrier, parity & 1, pc);
    bool is_over_now = (word->phase & 1) != (parity & 1);
    event_sync("mbarrier", "wait", (unsigned)wait.barrier->offset,
               wait.barrier->phases - wait.barrier->first_phase - is_over_now, 0, pc);
    if (!is_over_now) simt_wait_until(&over, &wait, file, line);
    async_acquire(simt_worker, simt_self, wait.barrier->over);
    simt_self->waited = (struct waited){pc, transaction_number(wait.barrier), parity & 1};
}

/* mbarrier.test_wait: it will be asked again. */
int simt_transaction_test(size_t address, unsigned parity, const char *file, int line) {
    const void *pc = __builtin_return_address(0);
    struct mbarrier *word = mbarrier_check(simt_shared_pointer(address), ACCESS_ATOMIC, "mbarrier.test_wait", pc);
    struct wait wait = {transaction_of(address, "mbarrier.test_wait", pc), word->phase};
    simt_self->place = place_in_kernel("mbarrier.test_wait", file, line);
    simt_self->last_pc = pc;
    if ((word->phase & 1) == (parity & 1) && !is_over(&wait)) {
        simt_give_way();
        if ((word->phase & 1) == (parity & 1)) return false;
    }
    judge_lateness(wait.barrier, parity & 1, pc);
    async_acquire(simt_worker, simt_self, wait.barrier->over);
    return true;
}

unsigned simt_transaction_phase(size_t address) {
    return mbarrier_check(simt_shared_pointer(address), ACCESS_ATOMIC, "mbarrier.test_wait", __builtin_return_address(0))
        ->phase;
}

/* What the thread has copied so far arrives with the phase. With .noinc the thread is one of those that the phase waits for. */
void simt_transaction_bind(size_t address, int arrives, const char *file, int line) {
    static const char what[] = "cp.async.mbarrier.arrive";
    const void *pc = __builtin_return_address(0);
    struct mbarrier *word = mbarrier_check(simt_shared_pointer(address), ACCESS_ATOMIC, what, pc);
    transaction_of(address, what, pc);
    simt_worker->async.work->binds_copies = true;
    async_copies_bind(word, word->phase);
    if (arrives) transaction_arrive(address, 1, 0, what, file, line, pc);
}
