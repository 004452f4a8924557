/* Named barriers, bar.sync and bar.arrive with an id and a number of threads; and setmaxnreg, of which nothing depends here.
 *
 * A round ends when `threads` threads have come, whether they wait or not. Whoever waits learns what those that came knew. For
 * ordinary accesses a round counts as a barrier of the block (mbarrier.c says what that misses). */
#include "async_work.h"
#include "collectives.h"

#include "events.h"
#include "report.h"

struct round {
    const struct named_barrier *barrier;
    uint64_t number;
    int id;
};

static int is_over(void *data) {
    const struct round *round = data;
    return round->barrier->round != round->number;
}

static void describe(void *data, char *text, size_t room) {
    const struct round *round = data;
    snprintf(text, room, "for barrier %d, to which %d of %d threads have come", round->id, round->barrier->arrived,
             round->barrier->threads);
}

static void check(const struct named_barrier *barrier, const char *what, int id, int threads, const void *pc) {
    if (id < 0 || id > 15) simt_fail(pc, cudaErrorLaunchFailure, "%s: there are the barriers 0 to 15, and no %d", what, id);
    if (threads <= 0 || threads % WARP_SIZE != 0 || (unsigned)threads > simt_worker->launch->threads)
        simt_fail(pc, cudaErrorLaunchFailure, "%s: %d threads: it must be a multiple of 32, and at most the %u of the block",
                  what, threads, simt_worker->launch->threads);
    if (barrier->arrived > 0 && barrier->threads != threads)
        simt_fail(pc, cudaErrorLaunchFailure, "%s of %d threads at barrier %d, at which %s in %s:%d expects %d", what, threads,
                  id, PLACE(barrier->first), barrier->threads);
}

void simt_named_barrier(int id, int threads, int waits, const char *file, int line) {
    static const struct simt_condition over = {"bar.sync", is_over, describe};
    const void *pc = __builtin_return_address(0);
    struct async_work *work = async_work_of(simt_worker);
    struct named_barrier *barrier = &work->named[id & 15];
    const char *what = waits ? over.name : "bar.arrive";
    check(barrier, what, id, threads, pc);
    come_to(what, file, line, pc);
    if (barrier->arrived == 0) barrier->first = simt_self->place;
    barrier->threads = threads;
    event_sync("named", waits ? "wait" : "arrive", (unsigned)id, (unsigned)barrier->round, 0, pc);
    async_release(simt_worker, simt_self, barrier->row);
    struct round round = {barrier, barrier->round, id};
    if (++barrier->arrived == threads) {
        memcpy(barrier->over, barrier->row, work->width * sizeof *barrier->over);
        barrier->arrived = 0;
        event_phase_ended(simt_worker, simt_self, "named", (unsigned)id, (unsigned)barrier->round++, pc);
    }
    if (!waits) return;
    simt_wait_until(&over, &round, file, line);
    async_acquire(simt_worker, simt_self, barrier->over);
}

/* ---- setmaxnreg ------------------------------------------------------------------------------------------------------------- */

void simt_set_registers(const char *what, int registers) {
    struct async_work *work = async_work_of(simt_worker);
    if (registers < 24 || registers > 256 || registers % 8 != 0)
        simt_fail(__builtin_return_address(0), cudaErrorLaunchFailure,
                  "%s: %d registers: it must be a multiple of 8 from 24 to 256", what, registers);
    if (simt_self->linear % WARP_SIZE != 0) return;
    struct warp_registers *own = &work->registers[simt_self->linear / WARP_SIZE];
    *own = (struct warp_registers){registers, __builtin_return_address(0), own->count + 1};
}

void registers_end_block(struct worker *worker) {
    const struct async_work *work = worker->async.work;
    for (unsigned w = 0; (w + 1) * WARP_SIZE <= worker->launch->threads; w++) {
        unsigned first = w / 4 * 4;
        const struct warp_registers *a = &work->registers[first], *b = &work->registers[w];
        if (b->count == a->count && b->last == a->last) continue;
        simt_fail_at(&worker->threads[w * WARP_SIZE], NULL, cudaErrorLaunchFailure,
                     "setmaxnreg is an instruction of a warpgroup: warp %u has executed %u of them, the last for %d "
                     "registers, and warp %u %u, the last for %d: %s",
                     first, a->count, a->last, w, b->count, b->last, source_line(b->count > 0 ? b->pc : a->pc));
        return;
    }
}
