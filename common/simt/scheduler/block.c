/* One block from its first thread to its last. */
#include "scheduler.h"

#include "collectives.h"
#include "device_memory.h"
#include "events.h"
#include "meter.h"
#include "sector_lock.h"

bool (*scheduler_park)(struct worker *worker, uint64_t changes, char *elsewhere, size_t room);

static void start_block(struct worker *worker, uint64_t number) {
    const struct launch *launch = worker->launch;
    blockIdx = worker->block_index = index_in(launch->grid, number);
    blockDim = launch->block;
    gridDim = launch->grid;
    shared_start_block(worker);
    for (unsigned i = 0; i < launch->threads; i++) {
        struct thread *thread = &worker->threads[i];
        thread->state = FRESH;
        thread->linear = i;
        thread->index = index_in(launch->block, i);
        thread->last_pc = NULL;
        thread->furthest = 0;
        thread->in_pieces = false;
        thread->accumulator_count = 0;
        thread->wgmma_fenced = false;
        thread->place = (struct place){"", "", 0};
    }
    collectives_start_block(worker);
    worker->block_number = number;
    event_block_started(worker);
}

/* What the warp waits for may have come to hold. */
static void wake_warp(struct worker *worker, unsigned first, unsigned end) {
    for (unsigned i = first; i < end; i++)
        if (worker->threads[i].state == GAVE_WAY ||
            (worker->threads[i].state == AT_CONDITION && condition_holds(&worker->threads[i])))
            worker->threads[i].state = READY;
}

/* A warp runs until all its lanes wait for other warps or are done: what a warp touches stays in cache. False: none of its lanes
 * could run. */
static bool run_warp(struct worker *worker, unsigned first, unsigned end) {
    struct launch *launch = worker->launch;
    bool any_ran = false;
    for (bool warp_ran = true; warp_ran;) {
        warp_ran = false;
        for (unsigned i = first; i < end; i++) {
            struct thread *thread = &worker->threads[i];
            if (thread->state > READY) continue;
            fiber_resume(worker, thread);
            if (thread->state == DONE) collectives_thread_done(worker, thread);
            if (thread->state != GAVE_WAY && thread->state != AT_LOG)
                atomic_store_explicit(&worker->watchdog.progress, worker->watchdog.progress + 1, memory_order_relaxed);
            if (atomic_load_explicit(&launch->failed, memory_order_relaxed)) return true;
            warp_ran = any_ran = true;
        }
        if (!warp_ran && worker->meter.on) warp_ran = meter_make_room(worker, first, end);
        if (!warp_ran) warp_ran = collectives_answer_active_mask(worker, first);
    }
    return any_ran;
}

/* Each warp in turn. */
static bool run_warps(struct worker *worker) {
    unsigned threads = worker->launch->threads;
    bool any_ran = false;
    wake_warp(worker, 0, threads);
    for (unsigned first = 0; first < threads; first += WARP_SIZE) {
        any_ran |= run_warp(worker, first, first + WARP_SIZE < threads ? first + WARP_SIZE : threads);
        if (atomic_load_explicit(&worker->launch->failed, memory_order_relaxed)) return true;
    }
    return any_ran;
}

/* With a seed: the first one of the warps, in an order that is drawn, that can run. A new order is drawn at each wait in some
 * blocks, and in others now and then only: there a warp runs as far ahead of the others as it can. */
static bool run_any_warp(struct worker *worker, struct order *order) {
    unsigned threads = worker->launch->threads, warps = (threads + WARP_SIZE - 1) / WARP_SIZE;
    order_draw(order, warps);
    for (unsigned i = 0; i < warps; i++) {
        unsigned first = (order->start + i * order->step) % warps * WARP_SIZE;
        unsigned end = first + WARP_SIZE < threads ? first + WARP_SIZE : threads;
        wake_warp(worker, first, end);
        if (run_warp(worker, first, end)) return true;
    }
    return false;
}

void scheduler_run_block(struct worker *worker, uint64_t number) {
    struct launch *launch = worker->launch;
    start_block(worker, number);
    struct order order = order_of_block(launch, number);
    atomic_store_explicit(&worker->watchdog.block_started_ns, watchdog_clock_ns(), memory_order_relaxed);
    if (sigsetjmp(worker->signal.escape, 1) != 0) {
        unlock_sector(worker);
        scheduler_explain_signal(worker);
        simt_self = NULL;
        return;
    }
    while (worker->alive > 0) {
        uint64_t changes = semaphore_changes();
        bool any_ran = launch->seed != 0 ? run_any_warp(worker, &order) : run_warps(worker);
        if (atomic_load_explicit(&launch->failed, memory_order_relaxed)) return;
        if (any_ran) continue;
        char elsewhere[1200] = "";
        bool may_go_on = scheduler_park(worker, changes, elsewhere, sizeof elsewhere);
        if (atomic_load_explicit(&launch->failed, memory_order_relaxed)) return;
        if (!may_go_on && !explain_deadlock(worker, elsewhere)) return;
    }
    collectives_end_block(worker);
    if (!atomic_load_explicit(&launch->failed, memory_order_relaxed)) event_block_ended(worker);
}
