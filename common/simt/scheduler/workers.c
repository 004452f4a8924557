/* Workers: the CPU threads that run blocks, and the watchdog over them. */
#include "scheduler.h"

#include "collectives.h"
#include "device_memory.h"
#include "events.h"
#include "report.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static pthread_t *worker_threads;
enum { MOST_WORKERS = 1024, ROOM_FOR_WORKERS = 8192 }; /* the latter for cooperative launches: all that a card runs at once */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    struct worker *workers[ROOM_FOR_WORKERS];
    int count, busy;
    int count_for_blocks; /* the first so many run the blocks of a launch that is not cooperative */
    int most_resident;    /* blocks of such a launch that have begun and not ended */
    int active, parked;   /* the first so many take part in this launch; so many of them wait for other blocks */
    uint64_t generation;
    struct launch *launch;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static struct worker *new_worker(int number) {
    struct worker *worker = resize_or_die(NULL, sizeof *worker);
    worker->number = number;
    worker->threads = aligned_alloc(_Alignof(struct thread), MAX_BLOCK_THREADS * sizeof *worker->threads);
    worker->signal = resize_or_die(NULL, sizeof *worker->signal);
    if (worker->threads == NULL || !shared_create(worker)) {
        fputs("simulated device: no memory for a block\n", stderr);
        abort();
    }
    memset(worker->threads, 0, MAX_BLOCK_THREADS * sizeof *worker->threads);
    return worker;
}

/* False: there is no memory for the stacks. */
static bool make_ready(struct worker *worker, struct launch *launch) {
    struct worker *last = worker;
    for (unsigned rank = 1; rank < launch->cluster; rank++, last = last->second) {
        if (last->second == NULL) {
            last->second = new_worker(worker->number);
            last->second->processor_clock = worker->processor_clock;
            last->second->cluster.rank = rank;
        }
        last->cluster.next = last->second;
    }
    last->cluster.next = launch->cluster > 1 ? worker : NULL;
    FOR_EACH_BLOCK (of, worker) {
        of->launch = launch;
        memset(of->hooks.sites, 0, sizeof of->hooks.sites);
        if (!fiber_ensure_stacks(of, launch->threads)) return false;
    }
    return true;
}

static void *worker_main(void *data) {
    struct worker *worker = data;
    simt_worker = worker;
    pthread_getcpuclockid(pthread_self(), &worker->processor_clock);
    stack_t stack = {.ss_sp = worker->signal->stack, .ss_size = 1 << 16};
    sigaltstack(&stack, NULL);
    uint64_t seen = worker->generation;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.generation == seen || worker->number >= pool.active) pthread_cond_wait(&pool.work, &pool.lock);
        seen = pool.generation;
        struct launch *launch = pool.launch;
        pthread_mutex_unlock(&pool.lock);

        if (make_ready(worker, launch)) {
            while (!atomic_load(&launch->failed)) {
                uint64_t number = atomic_fetch_add(&launch->next_block, 1);
                if (number >= launch->end_block) break;
                scheduler_run_block(worker, (number * launch->step + launch->offset) % (launch->blocks / launch->cluster));
                if (launch->cooperative) grid_block_done(worker);
            }
        } else {
            simt_fail(NULL, cudaErrorMemoryAllocation, "no memory for the stacks of %u threads", launch->threads);
        }
        atomic_store(&worker->watchdog.block_started_ns, 0);

        pthread_mutex_lock(&pool.lock);
        if (--pool.busy == 0) pthread_cond_signal(&pool.done);
    }
    return NULL;
}

int scheduler_threads(void) { return pool.count; }

static int wanted_workers(void) {
    double processors = (double)sysconf(_SC_NPROCESSORS_ONLN);
    return (int)simt_setting("SIMT_THREADS", 1, MOST_WORKERS, fmax(1, fmin(processors, MOST_WORKERS)));
}

/* So many that there are `count`. */
static void start_workers(int count) {
    if (count <= pool.count) return;
    scheduler_catch_signals();
    if (count > ROOM_FOR_WORKERS) abort(); /* api/launch.c lets no launch have so many */
    worker_threads = resize_or_die(worker_threads, (size_t)count * sizeof *worker_threads);
    for (int i = pool.count; i < count; i++) {
        struct worker *worker = new_worker(i);
        worker->generation = pool.generation - (pool.busy > 0); /* it takes part in the launch that runs */
        worker->signal->stack = resize_or_die(NULL, 1 << 16);
        if (pthread_create(&worker_threads[i], NULL, worker_main, worker) != 0) {
            fputs("simulated device: cannot start its threads\n", stderr);
            abort();
        }
        pool.workers[i] = worker;
        pool.count++;
    }
}

/* ---- the watchdog ---- */

/* Wall time, but no more of it than the processors gave to each block that runs, so that a busy machine stops no kernel; for a
 * kernel that sleeps, at least one part in so many of wall time. */
_Atomic int64_t watchdog_clock_ns = 1;
struct tick {
    int64_t wall, processor; /* 0: none yet */
};

static void advance_watchdog_clock(struct tick *last, int running) {
    enum { SLEEPING_PART = 64 };
    struct tick now = {read_clock(CLOCK_MONOTONIC), read_clock(CLOCK_PROCESS_CPUTIME_ID)};
    int64_t wall = now.wall - last->wall, given = now.processor - last->processor;
    if (running > 1) given /= running;
    if (given < wall / SLEEPING_PART) given = wall / SLEEPING_PART;
    if (last->wall != 0) atomic_fetch_add(&watchdog_clock_ns, given < wall ? given : wall);
    *last = now;
}

/* A loop without end may have a barrier: such a one is told by the time that its block takes in all. */
enum { LIMITS_OF_BLOCK = 6 };

static void wake_stuck_workers(int64_t limit_ns, uint64_t *progress, int64_t *progress_ns) {
    uint64_t sum = 0;
    int64_t now = watchdog_clock_ns;
    for (int i = 0; i < pool.count; i++)
        for (const struct worker *of = pool.workers[i]; of != NULL; of = of->second)
            sum += atomic_load_explicit(&of->watchdog.progress, memory_order_relaxed);
    if (sum != *progress) *progress = sum, *progress_ns = now;
    bool none = now - *progress_ns > limit_ns;
    for (int i = 0; i < pool.count; i++) {
        int64_t started = atomic_load(&pool.workers[i]->watchdog.block_started_ns);
        if (started != 0 && now - started > (none ? limit_ns : LIMITS_OF_BLOCK * limit_ns))
            pthread_kill(worker_threads[i], SIGUSR2);
    }
}

static int count_running_blocks(void) {
    int running = 0;
    for (int i = 0; i < pool.count; i++) running += atomic_load(&pool.workers[i]->watchdog.block_started_ns) != 0;
    return running;
}

/* ---- blocks that wait for other blocks ---- */

static bool blocks_are_left(const struct launch *launch) {
    return atomic_load(&launch->next_block) < launch->end_block && pool.active < pool.most_resident;
}

/* Where blocks wait, others run. */
static void replace_parked_workers(struct launch *launch) {
    while (pool.busy - pool.parked < pool.count_for_blocks && blocks_are_left(launch) && !atomic_load(&launch->failed)) {
        start_workers(pool.active + 1);
        launch->worker_count = pool.count;
        pool.active++;
        pool.busy++;
        pthread_cond_broadcast(&pool.work);
    }
}

/* All are parked, and what they wait for can change no more. */
static bool nobody_can_go_on(const struct launch *launch) {
    if (pool.parked < pool.busy || blocks_are_left(launch)) return false;
    for (int i = 0; i < pool.active; i++)
        if (pool.workers[i]->parked && semaphore_lets_go_on(pool.workers[i])) return false;
    return true;
}

static void describe_parked(const struct worker *self, char *text, size_t room) {
    enum { MOST_TOLD = 3 };
    for (int i = 0, told = 0; i < pool.active && told < MOST_TOLD; i++) {
        const struct worker *worker = pool.workers[i];
        if (worker == self || !worker->parked) continue;
        semaphore_describe(worker, text, room);
        told++;
    }
}

static bool park(struct worker *worker, uint64_t changes, char *elsewhere, size_t room) {
    struct launch *launch = worker->launch;
    if (!semaphore_is_waited_for(worker)) return false;
    shadow_report_unwritten(worker); /* a semaphore without a first value, say */
    if (atomic_load(&launch->failed)) return true;
    atomic_store(&worker->watchdog.block_started_ns, 0); /* who sleeps here is not stuck */
    pthread_mutex_lock(&pool.lock);
    worker->parked = true;
    pool.parked++;
    bool never = nobody_can_go_on(launch);
    if (never) describe_parked(worker, elsewhere, room);
    uint64_t begun = atomic_load(&launch->next_block);
    if (never && begun < launch->end_block)
        append_text(elsewhere, room, "; %lu blocks have not begun: no more than %d of them run at once",
                    (launch->end_block - begun) * launch->cluster, pool.most_resident * (int)launch->cluster);
    if (blocks_are_left(launch)) pthread_cond_signal(&pool.done); /* simt_run() has another worker take part */
    pthread_mutex_unlock(&pool.lock);
    if (!never) semaphore_sleep(changes);
    pthread_mutex_lock(&pool.lock);
    worker->parked = false;
    pool.parked--;
    pthread_mutex_unlock(&pool.lock);
    atomic_store(&worker->watchdog.block_started_ns, watchdog_clock_ns);
    return !never;
}

void simt_run(struct launch *launch) {
    int64_t limit_ns = (int64_t)(simt_setting("SIMT_WATCHDOG_SECONDS", 0.001, 86400, 10) * 1e9);
    pool.most_resident = (int)simt_setting("SIMT_RESIDENT_BLOCKS", 1, MOST_WORKERS, MOST_WORKERS);
    if (pool.count_for_blocks == 0) pool.count_for_blocks = (int)fmin(wanted_workers(), pool.most_resident);
    if (launch->most_resident > 0) pool.most_resident = (int)fmin(pool.most_resident, launch->most_resident);
    start_workers(pool.count_for_blocks);
    if (launch->cooperative) start_workers((int)launch->blocks);
    scheduler_park = park;
    pthread_mutex_lock(&pool.lock);
    uint64_t progress = 0;
    int64_t progress_ns = watchdog_clock_ns;
    struct tick last = {0};
    pool.launch = launch;
    launch->workers = pool.workers, launch->worker_count = pool.count;
    pool.active = pool.busy = launch->cooperative ? (int)launch->blocks : (int)fmin(pool.count_for_blocks, pool.most_resident);
    pool.generation++;
    pthread_cond_broadcast(&pool.work);
    while (pool.busy > 0) {
        struct timespec until = time_in(100000000);
        if (pthread_cond_timedwait(&pool.done, &pool.lock, &until) == ETIMEDOUT)
            advance_watchdog_clock(&last, count_running_blocks());
        wake_stuck_workers(limit_ns, &progress, &progress_ns);
        replace_parked_workers(launch);
    }
    pthread_mutex_unlock(&pool.lock);
    if (launch->wanted[0] == 0) event_launch_ended(launch);
}
