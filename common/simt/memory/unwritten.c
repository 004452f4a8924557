/* Reads of memory that nobody has written.
 *
 * Invariant: the writer may just not have run yet; then its write will be found to race with this read. So a read is only
 * noted, the first one since the last barrier, and told at the next barrier or the end of the block. */
#include "judge.h"

#include "device_memory.h"

void note_unwritten(uintptr_t address, bool shared, const void *pc) {
    struct worker *worker = simt_worker;
    if (simt_in_step || worker->shadow.unwritten.thread != NULL || (worker->launch->after_failure && !shared)) return;
    worker->shadow.unwritten = (struct unwritten){address, pc, simt_self, shared};
}

void shadow_report_unwritten(struct worker *worker) {
    shadow_settle_suspects(worker);
    const struct unwritten read = worker->shadow.unwritten;
    worker->shadow.unwritten.thread = NULL;
    if (read.thread == NULL || (!simt_strict && simt_warned(read.pc))) return;
    struct words what = describe_address(read.address);
    char *line = source_line(read.pc);
    if (simt_strict)
        simt_fail_at(read.thread, NULL, cudaErrorLaunchFailure, "%s: read of %s, which nobody has written%s", line, what.text,
                     read.shared ? " in this block: shared memory starts out with no defined contents" : "");
    else
        simt_warn(read.pc, "%s: read of %s, which nobody has written", line, what.text);
    free(line);
}
