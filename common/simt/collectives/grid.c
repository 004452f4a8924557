/* The barrier of a cooperative launch: all blocks of the grid wait for one another. Each block has a CPU thread of its own
 * then, which sleeps here while all of the block's fibers wait. */
#include "collectives.h"

#include "report.h"
#include "shadow.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* By the first thread of a block. A fault in another block ends the wait, too, and with it this block. */
static void wait_for_grid(struct worker *worker, const char *name, const char *file, int line) {
    struct launch *launch = worker->launch;
    int64_t started = atomic_exchange(&worker->watchdog.block_started_ns, 0); /* who sleeps here is not stuck */
    pthread_mutex_lock(&lock);
    uint64_t round = launch->grid_barriers;
    if (++launch->blocks_waiting == launch->blocks) {
        shadow_next_order(launch); /* what follows is ordered as by another launch */
        launch->grid_barriers++;
        launch->blocks_waiting = 0;
    }
    pthread_cond_broadcast(&changed);
    bool never = false;
    while (launch->grid_barriers == round && !atomic_load(&launch->failed) && !never) {
        never = launch->blocks_waiting + launch->blocks_done == launch->blocks;
        if (!never) pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    if (never)
        simt_fail(NULL, cudaErrorLaunchFailure,
                  "barrier not reached: %lu of %lu blocks wait at %s in %s:%d, and the others have returned from the kernel",
                  launch->blocks_waiting, launch->blocks, name, file, line);
    if (atomic_load(&launch->failed)) fiber_abandon(worker);
    atomic_store(&worker->watchdog.block_started_ns, started);
}

void grid_block_done(struct worker *worker) {
    pthread_mutex_lock(&lock);
    worker->launch->blocks_done++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

int simt_is_cooperative(void) { return simt_worker->launch->cooperative; }

void simt_grid_barrier(const char *name, const char *file, int line) {
    struct worker *worker = simt_worker;
    if (!worker->launch->cooperative)
        simt_fail(NULL, cudaErrorLaunchFailure,
                  "%s:%d: %s in a kernel that was not launched by cudaLaunchCooperativeKernel(): its blocks run in any order "
                  "and cannot wait for one another",
                  file, line, name);
    simt_block_barrier(name, 0, file, line);
    if (simt_self->linear == 0) {
        wait_for_grid(worker, name, file, line);
        shadow_grid_barrier(worker);
    }
    simt_block_barrier(name, 0, file, line); /* a card's, too, has one before and one after */
}
