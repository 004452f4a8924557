/* Rule 9: from its issue to the wait for its group nobody but the product may touch its accumulators, and after other
 * instructions have written them a wgmma.fence comes before the next product. */
#include "accumulators.h"

#include "report.h"

#include <string.h>

enum { MOST_RANGES = 16 };

void accumulators_fence(struct thread *thread) {
    thread->wgmma_fenced = true;
    for (unsigned i = 0; i < thread->accumulator_count; i++) thread->accumulators[i].written_pc = NULL;
}

static void remove_range(struct thread *thread, unsigned i) {
    memmove(&thread->accumulators[i], &thread->accumulators[i + 1],
            (--thread->accumulator_count - i) * sizeof *thread->accumulators);
}

static struct accumulator_range *range_of(struct thread *thread, uintptr_t start, size_t bytes, const void *pc) {
    for (unsigned i = thread->accumulator_count; i-- > 0;) {
        struct accumulator_range *range = &thread->accumulators[i];
        if (range->start == start && range->bytes == bytes) return range;
        if (start + bytes <= range->start || range->start + range->bytes <= start) continue;
        if (range->pending)
            simt_fail_at(thread, cudaErrorLaunchFailure,
                         "%s: wgmma accumulates in a part of the registers of the wgmma issued at %s, which is under way",
                         source_line(pc), source_line(range->pc));
        remove_range(thread, i);
    }
    for (unsigned i = 0; thread->accumulator_count == MOST_RANGES; i++) {
        if (i == MOST_RANGES)
            simt_fail_at(thread, cudaErrorNotSupported,
                         "%s: the simulated device has at most %d arrays of accumulators of products that are under way",
                         source_line(pc), MOST_RANGES);
        if (!thread->accumulators[i].pending) remove_range(thread, i);
    }
    if (thread->accumulators == NULL) thread->accumulators = resize_or_die(NULL, MOST_RANGES * sizeof *thread->accumulators);
    struct accumulator_range *range = &thread->accumulators[thread->accumulator_count++];
    *range = (struct accumulator_range){.start = start, .bytes = bytes};
    return range;
}

void accumulators_issue(struct thread *thread, const void *start, size_t bytes, unsigned group, const void *pc) {
    struct accumulator_range *range = range_of(thread, (uintptr_t)start, bytes, pc);
    if (!thread->wgmma_fenced)
        simt_fail_at(thread, cudaErrorLaunchFailure,
                     "%s: wgmma before any wgmma.fence: one must come after the registers were written and before the first "
                     "product",
                     source_line(pc));
    if (range->written_pc != NULL)
        simt_fail_at(thread, cudaErrorLaunchFailure,
                     "%s: wgmma accumulates in registers that were written at %s, without a wgmma.fence between",
                     source_line(pc), source_line(range->written_pc));
    range->pending = true;
    range->group = group;
    range->pc = pc;
}

void accumulators_done(struct thread *thread, unsigned groups) {
    for (unsigned i = 0; i < thread->accumulator_count; i++)
        if (thread->accumulators[i].group < groups) thread->accumulators[i].pending = false;
}

bool accumulators_judge(uintptr_t address, size_t bytes, enum access_kind kind, const void *pc) {
    struct thread *self = simt_self;
    for (unsigned i = 0; i < self->accumulator_count; i++) {
        struct accumulator_range *range = &self->accumulators[i];
        if (address + bytes <= range->start || range->start + range->bytes <= address) continue;
        if (range->pending)
            simt_fail(
                cudaErrorLaunchFailure,
                "%s: %s of an accumulator of the wgmma issued at %s, which is under way: commit its group and wait for it "
                "first (wgmma.commit_group, wgmma.wait_group)",
                source_line(pc), only_reads(kind) ? "read" : "write", source_line(range->pc));
        if (!only_reads(kind)) range->written_pc = pc;
        return true;
    }
    return false;
}
