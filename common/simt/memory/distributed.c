/* Distributed shared memory: a block of a cluster accesses the shared memory of the other one.
 *
 * Rule 18. Before its first such access a thread must have learnt that the other block has begun, and a block may end only when one of
 * its threads has learnt of all such accesses to its memory: a barrier of the cluster does both. Learnt is what the rows of
 * async_shadow.h say, so that a fault is found in whatever order the two blocks run. */
#include "device_memory.h"

#include "async_shadow.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void describe_end(const struct worker *ended, const void *access, char *text, size_t room) {
    const struct thread *last = ended->cluster.last;
    const struct uint3 block = ended->block_index;
    char *line = source_line(access), *end = source_line(last->last_pc);
    snprintf(text, room,
             "%s: access to shared memory of block (%u,%u,%u) of the cluster, which may have ended: its last thread, "
             "(%u,%u,%u), was "
             "last seen at %s, and none of its threads has waited for this access. Let both blocks wait at the barrier of the "
             "cluster (barrier.cluster, cluster.sync()) before they end",
             line, block.x, block.y, block.z, last->index.x, last->index.y, last->index.z,
             last->last_pc != NULL ? end : "no access to memory");
    free(line);
    free(end);
}

void distributed_use(const struct worker *of, bool remembered, const void *pc) {
    struct thread *self = simt_self;
    if (of == self->home) return;
    bool begun = self->remote_pc != NULL;
    for (unsigned t = 0; t < of->launch->threads && !begun; t++) begun = row_of(self)[of->threads[t].number] > 0;
    if (!begun)
        simt_fail(
            cudaErrorLaunchFailure,
            "%s: access to shared memory of block (%u,%u,%u) of the cluster, which may not have begun: let both blocks wait at "
            "the barrier of the cluster (barrier.cluster, cluster.sync()) first",
            source_line(pc), of->block_index.x, of->block_index.y, of->block_index.z);
    if (of->alive == 0) {
        char text[800];
        describe_end(of, pc, text, sizeof text);
        simt_fail(cudaErrorLaunchFailure, "%s", text);
    }
    if (remembered) self->remote_pc = pc, self->remote_clock = self->clock;
}

void distributed_end(struct worker *worker) {
    const struct worker *peer = worker->cluster.peer;
    const struct async_shadow *shadow = worker->async.shadow;
    memset(shadow->scratch, 0, shadow->width * sizeof *shadow->scratch);
    for (unsigned t = 0; t < worker->launch->threads; t++)
        for (unsigned u = 0; u < shadow->numbers; u++)
            if (row_of(&worker->threads[t])[u] > shadow->scratch[u]) shadow->scratch[u] = row_of(&worker->threads[t])[u];
    for (unsigned t = 0; t < worker->launch->threads; t++) {
        const struct thread *other = &peer->threads[t];
        if (other->remote_pc == NULL || other->remote_clock < shadow->scratch[other->number]) continue;
        char text[800];
        describe_end(worker, other->remote_pc, text, sizeof text);
        simt_fail_at(other, cudaErrorLaunchFailure, "%s", text);
        return;
    }
}
