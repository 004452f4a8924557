/* One block from its first thread to its last, or a cluster of several, whose blocks take turns on one CPU thread. */
#include "scheduler.h"

#include "collectives.h"
#include "device_memory.h"
#include "events.h"
#include "meter.h"
#include "sector_lock.h"

bool (*scheduler_park)(struct worker *worker, uint64_t changes, char *elsewhere, size_t room);

static void start_block(struct worker *worker, uint64_t number) {
    const struct launch *launch = worker->launch;
    worker->block_index = index_in(launch->grid, number);
    enter_block(worker);
    blockDim = launch->block;
    gridDim = launch->grid;
    shared_start_block(worker);
    FOR_EACH_THREAD (thread, worker) {
        unsigned i = (unsigned)(thread - worker->threads);
        *thread = (struct thread){.state = FRESH,
                                  .linear = i,
                                  .number = worker->cluster.rank * launch->stride + i,
                                  .home = worker,
                                  .index = index_in(launch->block, i),
                                  .place = {"", "", 0},
                                  .stack = thread->stack,
                                  .copies = thread->copies,
                                  .accumulators = thread->accumulators};
    }
    collectives_start_block(worker);
    worker->cluster.arrived = 0;
    worker->cluster.last = NULL;
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

/* In which order the warps take their turns where a seed shuffles them: warp start, then start + step and so on, modulo their number.
 * The draws depend on the seed, the number of the launch and the block only, not on the CPU thread. */
struct order {
    uint64_t random;
    unsigned draws_every, start, step; /* a new order at one wait in so many; step 0: none is drawn yet */
};

/* The generator "splitmix64": each state gives 64 bits that look random. */
static uint64_t next(struct order *order) {
    uint64_t x = order->random += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static struct order order_of_block(const struct launch *launch, uint64_t number) {
    struct order order = {.random = launch->seed + number * 0xd6e8feb86659fd93u};
    order.draws_every = 1u << (next(&order) >> 32) % 3 * 2; /* 1, 4 or 16 waits */
    return order;
}

/* At a wait: keep the order, or draw a new one. */
static void draw_order(struct order *order, unsigned warps) {
    uint64_t random = next(order);
    if (order->step != 0 && random % order->draws_every != 0) return;
    order->start = (unsigned)(random >> 32) % warps;
    order->step = (unsigned)(random >> 16 & 0xffff) % warps + 1;
    while (greatest_common_divisor(order->step, warps) != 1) order->step++;
}

/* With a seed: the first one of the warps, in an order that is drawn, that can run. A new order is drawn at each wait in some
 * blocks, and in others now and then only: there a warp runs as far ahead of the others as it can. */
static bool run_any_warp(struct worker *const blocks[], unsigned count, struct order *order) {
    unsigned threads = blocks[0]->launch->threads, warps = (threads + WARP_SIZE - 1) / WARP_SIZE;
    draw_order(order, count * warps);
    for (unsigned i = 0; i < count * warps; i++) {
        unsigned warp = (order->start + i * order->step) % (count * warps), first = warp % warps * WARP_SIZE;
        unsigned end = first + WARP_SIZE < threads ? first + WARP_SIZE : threads;
        struct worker *worker = blocks[warp / warps];
        if (count > 1) enter_block(worker);
        wake_warp(worker, first, end);
        if (run_warp(worker, first, end)) return true;
    }
    return false;
}

static void end_block(struct worker *worker) {
    collectives_end_block(worker);
    if (!atomic_load_explicit(&worker->launch->failed, memory_order_relaxed)) event_block_ended(worker);
}

/* Each block in turn. A block that has no thread left ends at once: its shared memory is nobody's then. */
static bool run_blocks(struct worker *const blocks[], unsigned count, struct order *order) {
    const struct launch *launch = blocks[0]->launch;
    unsigned alive[MAX_CLUSTER];
    for (unsigned b = 0; b < count; b++) alive[b] = blocks[b]->alive;
    bool any_ran = launch->seed != 0 && run_any_warp(blocks, count, order);
    for (unsigned b = 0; b < count; b++) {
        if (count > 1) enter_block(blocks[b]);
        if (launch->seed == 0 && alive[b] > 0) any_ran |= run_warps(blocks[b]);
        if (atomic_load_explicit(&launch->failed, memory_order_relaxed)) return true;
        if (alive[b] > 0 && blocks[b]->alive == 0) end_block(blocks[b]);
    }
    return any_ran;
}

void scheduler_run_block(struct worker *worker, uint64_t number) {
    struct launch *launch = worker->launch;
    struct worker *blocks[MAX_CLUSTER];
    const unsigned count = launch->cluster;
    FOR_EACH_BLOCK (of, worker) blocks[of->cluster.rank] = of;
    for (unsigned b = 0; b < count; b++) start_block(blocks[b], number * count + b);
    if (count > 1) cluster_start(worker);
    struct order order = order_of_block(launch, number);
    atomic_store_explicit(&worker->watchdog.block_started_ns, watchdog_clock_ns, memory_order_relaxed);
    for (unsigned b = 0; b < count; b++)
        if (sigsetjmp(blocks[b]->signal->escape, 1) != 0) {
            unlock_sector(simt_worker);
            scheduler_explain_signal(simt_worker);
            simt_self = NULL;
            simt_worker = worker;
            return;
        }
    for (;;) {
        unsigned alive = 0;
        for (unsigned b = 0; b < count; b++) alive += blocks[b]->alive;
        if (alive == 0) break;
        uint64_t changes = semaphore_changes();
        bool any_ran = run_blocks(blocks, count, &order);
        if (atomic_load_explicit(&launch->failed, memory_order_relaxed)) break;
        if (any_ran) continue;
        char elsewhere[1200] = "";
        simt_worker = worker;
        bool may_go_on = scheduler_park(worker, changes, elsewhere, sizeof elsewhere);
        if (atomic_load_explicit(&launch->failed, memory_order_relaxed)) break;
        if (!may_go_on && !explain_deadlock(blocks, count, elsewhere)) break;
    }
    simt_worker = worker;
}
