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
    const char *of = round->id < NAMED ? "barrier" : "the tile of several warps, number";
    snprintf(text, room, "for %s %d, to which %d of %d threads have come", of, round->id % NAMED, round->barrier->arrived,
             round->barrier->threads);
}

static void check(const struct named_barrier *barrier, const char *what, int id, int threads, const void *pc) {
    const struct worker *worker = simt_worker;
    if (id < 0 || id >= NAMED) simt_fail(pc, cudaErrorLaunchFailure, "%s: there are the barriers 0 to 15, and no %d", what, id);
    if (threads <= 0 || threads % WARP_SIZE != 0 || (unsigned)threads > worker->launch->threads)
        simt_fail(pc, cudaErrorLaunchFailure, "%s: %d threads: it must be a multiple of 32, and at most the %u of the block",
                  what, threads, worker->launch->threads);
    if (barrier->arrived > 0 && barrier->threads != threads)
        simt_fail(pc, cudaErrorLaunchFailure, "%s of %d threads at barrier %d, at which %s in %s:%d expects %d", what, threads,
                  id, PLACE(barrier->first), barrier->threads);
    if (id == 0 && worker->barrier.arrived > 0)
        simt_fail(pc, cudaErrorLaunchFailure,
                  "%s of %d threads at barrier 0, to which %u of the block's %u have come: it is that "
                  "of __syncthreads()",
                  what, threads, worker->barrier.arrived, worker->launch->threads);
    named_judge_round(id, simt_self);
}

static void come(int id, int threads, bool waits, const void *pc, const char *file, int line) {
    static const struct simt_condition over = {"bar.sync", is_over, describe}, tile = {"sync() of a tile", is_over, describe};
    struct async_work *work = simt_worker->async.work;
    struct named_barrier *barrier = &work->named[id];
    if (barrier->arrived == 0) barrier->first = simt_self->place;
    barrier->threads = threads;
    event_sync("named", waits ? "wait" : "arrive", (unsigned)id, (unsigned)barrier->round, 0, pc);
    async_release(simt_worker, simt_self, barrier->row);
    struct round round = {barrier, barrier->round, id};
    if (++barrier->arrived == threads) {
        memcpy(barrier->over, barrier->row, work->width * sizeof *barrier->over);
        barrier->arrived = 0;
        event_phase_ended(simt_worker, simt_self, "named", (unsigned)id, (unsigned)barrier->round++, pc);
        if (id < NAMED) barrier->over[rounds_column(simt_worker->async.shadow, (unsigned)id)] = (uint32_t)barrier->round;
    }
    if (!waits) return;
    simt_wait_until(id < NAMED ? &over : &tile, &round, file, line);
    async_acquire(simt_worker, simt_self, barrier->over);
}

void simt_named_barrier(int id, int threads, int waits, const char *file, int line) {
    const void *pc = __builtin_return_address(0);
    const char *what = waits ? "bar.sync" : "bar.arrive";
    if (id == 0 && waits && (unsigned)threads == simt_worker->launch->threads) { /* it is __syncthreads() */
        simt_block_barrier("bar.sync 0", 0, file, line);
        return;
    }
    come_to(what, file, line, pc);
    check(&async_work_of(simt_worker)->named[id & (NAMED - 1)], what, id, threads, pc);
    come(id, threads, waits != 0, pc, file, line);
}

/* The values of the running thread's tile in a round, or in the one before. */
static uint64_t *tile_values(unsigned size, unsigned round, const void *pc) {
    if (size < 64 || size > MAX_BLOCK_THREADS / 2 || (size & (size - 1)) != 0)
        simt_fail(pc, cudaErrorLaunchFailure, "no tile of several warps has %u threads", size);
    return async_work_of(simt_worker)->tile_values[round % 2] + simt_self->linear / size * size;
}

unsigned simt_tile_meet(unsigned size, uint64_t value, const char *file, int line) {
    const void *pc = __builtin_return_address(0);
    tile_values(size, 0, pc); /* such a tile there is */
    unsigned id = NAMED + MAX_BLOCK_THREADS / size + simt_self->linear / size;
    unsigned round = async_work_of(simt_worker)->named[id].round % 2;
    if (simt_worker->launch->threads % size != 0)
        simt_fail(pc, cudaErrorLaunchFailure, "tiles of %u threads: the block has %u, which is no multiple of it", size,
                  simt_worker->launch->threads);
    tile_values(size, round, pc)[simt_self->linear % size] = value;
    come_to("sync() of a tile", file, line, pc);
    come((int)id, (int)size, true, pc, file, line);
    return round;
}

uint64_t simt_tile_value(unsigned size, unsigned round, unsigned rank) {
    return tile_values(size, round, __builtin_return_address(0))[rank % size];
}

/* ---- setmaxnreg ------------------------------------------------------------------------------------------------------------- */

void simt_set_registers(const char *what, int registers) {
    struct async_work *work = async_work_of(simt_worker);
    if (registers < 24 || registers > 256 || registers % 8 != 0)
        simt_fail(__builtin_return_address(0), cudaErrorLaunchFailure,
                  "%s: %d registers: it must be a multiple of 8 from 24 to 256", TEXT_OF_KERNEL(what), registers);
    if (simt_self->linear % WARP_SIZE != 0) return;
    struct warp_registers *own = &work->registers[simt_self->linear / WARP_SIZE];
    *own = (struct warp_registers){registers, __builtin_return_address(0), own->count + 1};
}

/* What the roles of the block have asked for in the end must be there: the block has as many registers as its threads start with (PTX,
 * setmaxnreg). Where the kernel does not say how many blocks share a multiprocessor, ptxas does not know how many those are, and
 * ignores setmaxnreg (its remark C7508). */
static void judge_sum(struct worker *worker) {
    static _Atomic bool told;
    const struct warp_registers *own = worker->async.work->registers, *most = own;
    unsigned each = atomic_load(&worker->launch->registers), sum = 0;
    for (unsigned w = 0; w < MAX_BLOCK_THREADS / WARP_SIZE; w++) {
        sum += (unsigned)own[w].last * WARP_SIZE;
        if (own[w].last > most->last) most = &own[w];
    }
    if (each == 0 && sum > 0 && !atomic_exchange(&told, true))
        fprintf(
            stderr,
            "simulated device: note: %s: setmaxnreg without a number of blocks in __launch_bounds__: ptxas ignores it, unless "
            "__maxnreg__ says with how many registers a thread starts; the warps ask for %u per thread\n",
            source_line(most->pc), sum / worker->launch->threads);
    if (each == 0 || sum <= each * worker->launch->threads) return;
    simt_fail_at(&worker->threads[(most - own) * WARP_SIZE], most->pc, cudaErrorLaunchFailure,
                 "setmaxnreg: the warps of the block ask for %u registers, but by its __launch_bounds__ the block has %u, "
                 "that is %u per thread: on a card this one waits for ever",
                 sum, each * worker->launch->threads, each);
}

void registers_end_block(struct worker *worker) {
    const struct async_work *work = worker->async.work;
    judge_sum(worker);
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
