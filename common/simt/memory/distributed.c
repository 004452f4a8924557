/* Distributed shared memory: a block of a cluster accesses the shared memory of another one.
 *
 * Rule 18. Before its first such access a thread must have learnt that the other block has begun, and a block may end only when one of
 * its threads has learnt of all such accesses to its memory: a barrier of the cluster does both. Learnt is what the rows of
 * async_shadow.h say, so that a fault is found in whatever order the blocks run. */
#include "device_memory.h"

#include "async_shadow.h"
#include "report.h"

static void report_end(const struct worker *ended, const struct thread *user, const void *access) {
    const struct thread *last = ended->cluster.last;
    const struct uint3 block = ended->block_index;
    simt_fail_at(user, access, cudaErrorLaunchFailure,
                 "access to shared memory of block (%u,%u,%u) of the cluster, which may have ended: its last thread, "
                 "(%u,%u,%u), was last seen at %s, and none of its threads has waited for this access. Let both blocks wait at "
                 "the barrier of the cluster (barrier.cluster, cluster.sync()) before they end",
                 XYZ(block), XYZ(last->index), last->last_pc != NULL ? source_line(last->last_pc) : "no access to memory");
}

void distributed_use(const struct worker *of, bool remembered, const void *pc) {
    struct thread *self = simt_self;
    if (of == self->home) return;
    struct remote *own = &of->async.shadow->remotes[self->number];
    bool begun = own->pc != NULL;
    for (unsigned t = 0; t < of->launch->threads && !begun; t++) begun = row_of(self)[of->threads[t].number] > 0;
    if (!begun)
        simt_fail(pc, cudaErrorLaunchFailure,
                  "access to shared memory of block (%u,%u,%u) of the cluster, which may not have begun: let both blocks wait "
                  "at the barrier of the cluster (barrier.cluster, cluster.sync()) first",
                  XYZ(of->block_index));
    if (of->alive == 0) report_end(of, self, pc);
    if (remembered) *own = (struct remote){pc, self->clock};
}

void distributed_end(struct worker *worker) {
    const struct async_shadow *shadow = worker->async.shadow;
    async_join_all(worker);
    for (unsigned number = 0; number < shadow->numbers; number++) {
        const struct remote *access = &shadow->remotes[number];
        if (access->pc == NULL || access->clock < shadow->scratch[number]) continue;
        report_end(worker, thread_numbered(number), access->pc);
        return;
    }
}
