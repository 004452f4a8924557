/* Clusters of blocks (PTX ISA, sections "barrier.cluster", "mapa" and "mbarrier.arrive"). The blocks run on one CPU thread, each
 * with a worker of its own, and are judged as one block of all their threads with several shared memories. What a thread does to
 * another block's memory and barriers it does in that block's place: simt_worker is the other worker for so long. */
#include "async_work.h"
#include "collectives.h"

#include "device_memory.h"
#include "events.h"
#include "report.h"

unsigned simt_cluster_rank(void) { return simt_worker->cluster.rank; }
unsigned simt_cluster_size(void) { return simt_worker->launch->cluster; }

void cluster_start(struct worker *worker) { async_work_of(worker); }

/* Whose shared memory an address of the cluster names. */
static struct worker *target_of(size_t *address, const char *what, const void *pc) {
    size_t given = *address;
    struct worker *of = shared_worker_of(address);
    if (of == NULL)
        simt_fail(pc, cudaErrorIllegalAddress, "%s: %#zx is no address of shared memory in a cluster of %u blocks", what, given,
                  simt_worker->launch->cluster);
    return of;
}

size_t simt_mapa(size_t address, unsigned rank) {
    const void *pc = __builtin_return_address(0);
    target_of(&address, "mapa", pc);
    if (rank >= simt_worker->launch->cluster)
        simt_fail(pc, cudaErrorLaunchFailure, "mapa: the cluster has no block %u: it has %u", rank,
                  simt_worker->launch->cluster);
    return cluster_address(address, rank);
}

void *simt_map_shared(const void *pointer, unsigned rank) {
    const void *pc = __builtin_return_address(0);
    if (!simt_is_shared(pointer) || rank >= simt_worker->launch->cluster)
        simt_fail(pc, cudaErrorLaunchFailure, "map_shared_rank(): %s",
                  simt_is_shared(pointer) ? "the cluster has no block of this rank" : "the pointer leads to no shared memory");
    return simt_shared_pointer(cluster_address(simt_shared_address(pointer), rank));
}

struct worker *cluster_act_in(struct worker *of, bool remembered, const void *pc) {
    struct worker *own = simt_worker;
    distributed_use(of, remembered, pc);
    simt_worker = of;
    return own;
}

void simt_remote_arrive(size_t address, unsigned count, unsigned bytes, const char *what, const char *file, int line) {
    const void *pc = __builtin_return_address(0);
    async_work_of(simt_worker);
    struct worker *of = target_of(&address, what, pc), *own = cluster_act_in(of, true, pc);
    transaction_arrive(address, count, bytes, what, file, line, pc);
    simt_worker = own;
}

/* ---- the barrier of a cluster ------------------------------------------------------------------------------------------------ */

static struct async_work *rows_of(const struct worker *worker) {
    return worker_of_rank((struct worker *)(uintptr_t)worker, 0)->async.work;
}

/* All threads of the cluster that have not returned have arrived. */
static void try_to_end(struct worker *worker, const struct thread *last) {
    unsigned arrived = 0, alive = 0;
    FOR_EACH_BLOCK (of, worker) arrived += of->cluster.arrived, alive += of->alive;
    if (arrived == 0 || arrived < alive) return;
    struct async_work *work = rows_of(worker);
    memcpy(work->cluster_over, work->cluster_row, work->width * sizeof *work->cluster_row);
    FOR_EACH_BLOCK (of, worker) {
        of->cluster.arrived = 0;
        event_phase_ended(of, last, "cluster", 0, (unsigned)of->cluster.round++, last->last_pc);
    }
}

static int is_over(void *data) {
    const struct thread *thread = data;
    return thread->home->cluster.round != thread->cluster_round;
}

static void describe(void *data, char *text, size_t room) {
    struct worker *own = ((const struct thread *)data)->home;
    snprintf(text, room, "for the barrier of the cluster, to which %u of the block's %u threads have come",
             own->cluster.arrived, own->alive);
    FOR_EACH_BLOCK (of, own)
        if (of != own)
            append_text(text, room, ", and of block (%u,%u,%u) %u of %u", XYZ(of->block_index), of->cluster.arrived, of->alive);
}

void simt_cluster_arrive(const char *file, int line) {
    struct thread *self = simt_self;
    async_work_of(simt_worker);
    self->last_pc = __builtin_return_address(0);
    if (self->at_cluster)
        simt_fail(
            NULL, cudaErrorLaunchFailure,
            "%s:%d: barrier.cluster.arrive: this thread has arrived already, at %s:%d, and must wait before it arrives again",
            TEXT_OF_KERNEL(file), line, self->cluster_place.file, self->cluster_place.line);
    self->place = self->cluster_place = place_in_kernel("barrier.cluster.arrive", file, line);
    self->at_cluster = true;
    self->cluster_round = simt_worker->cluster.round;
    async_release(simt_worker, self, rows_of(simt_worker)->cluster_row);
    event_sync("cluster", "arrive", 0, (unsigned)self->cluster_round, 0, self->last_pc);
    simt_worker->cluster.arrived++;
    try_to_end(simt_worker, self);
}

void simt_cluster_wait(const char *file, int line) {
    static const struct simt_condition over = {"barrier.cluster.wait", is_over, describe};
    struct thread *self = simt_self;
    self->last_pc = __builtin_return_address(0);
    if (!self->at_cluster)
        simt_fail(NULL, cudaErrorLaunchFailure,
                  "%s:%d: barrier.cluster.wait: this thread has not arrived: barrier.cluster.arrive must come first",
                  TEXT_OF_KERNEL(file), line);
    event_sync("cluster", "wait", 0, (unsigned)self->cluster_round, 0, self->last_pc);
    simt_wait_until(&over, self, file, line);
    self->at_cluster = false;
    async_acquire(simt_worker, self, rows_of(simt_worker)->cluster_over);
}

void cluster_thread_done(struct worker *worker, const struct thread *thread) {
    worker->cluster.last = thread;
    if (thread->at_cluster && !is_over((void *)thread)) worker->cluster.arrived--;
    if (worker->async.on) try_to_end(worker, thread);
}
