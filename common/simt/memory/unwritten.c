/* Reads of memory that nobody has written.
 *
 * Invariant: the writer may just not have run yet; then its write will be found to race with this read. So a read is only
 * noted, the first one since the last barrier, and told at the next barrier or the end of the block. */
#include "judge.h"

#include "device_memory.h"

void note_unwritten(uintptr_t address, bool shared, const void *pc) {
    struct worker *worker = simt_worker;
    if (simt_in_step || worker->shadow.unwritten.thread != NULL || (worker->launch->after_failure && !shared)) return;
    worker->shadow.unwritten.address = address;
    worker->shadow.unwritten.pc = pc;
    worker->shadow.unwritten.thread = simt_self;
    worker->shadow.unwritten.shared = shared;
}

void shadow_report_unwritten(struct worker *worker) {
    shadow_settle_suspects(worker);
    const struct thread *thread = worker->shadow.unwritten.thread;
    worker->shadow.unwritten.thread = NULL;
    if (thread == NULL || (!simt_strict && simt_warned(worker->shadow.unwritten.pc))) return;
    struct words what = describe_address(worker->shadow.unwritten.address);
    char *line = source_line(worker->shadow.unwritten.pc);
    if (simt_strict)
        simt_fail_at(thread, NULL, cudaErrorLaunchFailure, "%s: read of %s, which nobody has written%s", line, what.text,
                     worker->shadow.unwritten.shared ? " in this block: shared memory starts out with no defined contents"
                                                     : "");
    else
        simt_warn(worker->shadow.unwritten.pc, "%s: read of %s, which nobody has written", line, what.text);
    free(line);
}
