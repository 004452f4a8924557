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

/* A warp runs until all its lanes wait for other warps or are done, then the next: what a warp touches stays in cache. */
void scheduler_run_block(struct worker *worker, uint64_t number) {
    struct launch *launch = worker->launch;
    start_block(worker, number);
    atomic_store_explicit(&worker->watchdog.block_started_ns, watchdog_clock_ns(), memory_order_relaxed);
    if (sigsetjmp(worker->signal.escape, 1) != 0) {
        unlock_sector(worker);
        scheduler_explain_signal(worker);
        simt_self = NULL;
        return;
    }
    while (worker->alive > 0) {
        bool any_ran = false;
        uint64_t changes = semaphore_changes();
        for (unsigned i = 0; i < launch->threads; i++)
            if (worker->threads[i].state == GAVE_WAY ||
                (worker->threads[i].state == AT_CONDITION && condition_holds(&worker->threads[i])))
                worker->threads[i].state = READY;
        for (unsigned first = 0; first < launch->threads; first += WARP_SIZE) {
            unsigned end = first + WARP_SIZE < launch->threads ? first + WARP_SIZE : launch->threads;
            for (bool warp_ran = true; warp_ran;) {
                warp_ran = false;
                for (unsigned i = first; i < end; i++) {
                    struct thread *thread = &worker->threads[i];
                    if (thread->state > READY) continue;
                    fiber_resume(worker, thread);
                    if (thread->state == DONE) collectives_thread_done(worker, thread);
                    if (thread->state != GAVE_WAY && thread->state != AT_LOG)
                        atomic_store_explicit(&worker->watchdog.progress, worker->watchdog.progress + 1, memory_order_relaxed);
                    if (atomic_load_explicit(&launch->failed, memory_order_relaxed)) return;
                    warp_ran = any_ran = true;
                }
                if (!warp_ran && worker->meter.on) warp_ran = meter_make_room(worker, first, end);
                if (!warp_ran) warp_ran = collectives_answer_active_mask(worker, first);
            }
        }
        if (!any_ran) {
            char elsewhere[1200] = "";
            bool may_go_on = scheduler_park(worker, changes, elsewhere, sizeof elsewhere);
            if (atomic_load_explicit(&launch->failed, memory_order_relaxed)) return;
            if (may_go_on || explain_deadlock(worker, elsewhere)) continue;
            return;
        }
    }
    collectives_end_block(worker);
    if (!atomic_load_explicit(&launch->failed, memory_order_relaxed)) event_block_ended(worker);
}
