/* Rule 9: from its issue to the wait for its group nobody but the product may touch its accumulators, and after other
 * instructions have written them a wgmma.fence comes before the next product. Registers of A may be read meanwhile. */
#include "async_shadow.h"

#include "report.h"

enum { MOST_RANGES = 64 };

struct accumulator_range {
    uintptr_t start;
    size_t bytes;
    bool is_A;                   /* the product only reads them */
    bool pending;                /* a product is under way */
    unsigned group;              /* of its warp */
    const void *pc, *written_pc; /* of the product; of a store after the last wgmma.fence, or NULL */
};

void accumulators_fence(struct thread *thread) {
    thread->wgmma_fenced = true;
    for (unsigned i = 0; i < thread->accumulator_count; i++) thread->accumulators[i].written_pc = NULL;
}

static void remove_range(struct thread *thread, unsigned i) {
    memmove(&thread->accumulators[i], &thread->accumulators[i + 1],
            (--thread->accumulator_count - i) * sizeof *thread->accumulators);
}

/* A product at `pc` uses registers that overlap those of a product under way in another way. */
static void refuse_overlap(struct thread *thread, const struct accumulator_range *range, bool is_A, const void *pc) {
    simt_fail_at(thread, pc, cudaErrorLaunchFailure, "wgmma %s the wgmma issued at %s, which is under way",
                 is_A          ? "reads A from accumulators of"
                 : range->is_A ? "accumulates in registers of A of"
                               : "accumulates in a part of the registers of",
                 source_line(range->pc));
}

/* The range of these registers. NULL: there is no room. */
static struct accumulator_range *range_of(struct thread *thread, uintptr_t start, size_t bytes, bool is_A, const void *pc) {
    for (unsigned i = thread->accumulator_count; i-- > 0;) {
        struct accumulator_range *range = &thread->accumulators[i];
        if (start + bytes <= range->start || range->start + range->bytes <= start) continue;
        if (range->start == start && range->bytes == bytes && range->is_A == is_A) return range;
        if (range->is_A && is_A) continue; /* both only read */
        if (range->pending) refuse_overlap(thread, range, is_A, pc);
        remove_range(thread, i);
    }
    if (thread->accumulators == NULL) thread->accumulators = resize_or_die(NULL, MOST_RANGES * sizeof *thread->accumulators);
    for (unsigned i = thread->accumulator_count; thread->accumulator_count == MOST_RANGES && i-- > 0;)
        if (!thread->accumulators[i].pending) remove_range(thread, i);
    if (thread->accumulator_count == MOST_RANGES) return NULL;
    struct accumulator_range *range = &thread->accumulators[thread->accumulator_count++];
    *range = (struct accumulator_range){.start = start, .bytes = bytes, .is_A = is_A};
    return range;
}

static void begin(struct thread *thread, struct accumulator_range *range, unsigned group, const void *pc) {
    if (range->written_pc != NULL)
        simt_fail_at(thread, pc, cudaErrorLaunchFailure,
                     "wgmma %s registers that were written at %s, without a wgmma.fence between",
                     range->is_A ? "reads A from" : "accumulates in", source_line(range->written_pc));
    range->pending = true;
    range->group = group;
    range->pc = pc;
}

void accumulators_issue(struct thread *thread, const void *start, size_t bytes, unsigned group, const void *pc) {
    struct accumulator_range *range = range_of(thread, (uintptr_t)start, bytes, false, pc);
    if (range == NULL) {
        simt_fail_at(thread, pc, cudaErrorNotSupported,
                     "the simulated device has at most %d arrays of registers of products that are under way", MOST_RANGES);
        return;
    }
    if (!thread->wgmma_fenced)
        simt_fail_at(
            thread, pc, cudaErrorLaunchFailure,
            "wgmma before any wgmma.fence: one must come after the registers were written and before the first product");
    begin(thread, range, group, pc);
}

/* Registers for which there is no room are not judged. */
void registers_of_A_issue(struct thread *thread, const void *start, unsigned group, const void *pc) {
    struct accumulator_range *range = range_of(thread, (uintptr_t)start, 4 * sizeof(uint32_t), true, pc);
    if (range != NULL) begin(thread, range, group, pc);
}

void accumulators_done(struct thread *thread, unsigned groups) {
    for (unsigned i = 0; i < thread->accumulator_count; i++)
        if (thread->accumulators[i].group < groups) thread->accumulators[i].pending = false;
}

bool accumulators_judge(uintptr_t address, size_t bytes, enum access_kind kind, const void *pc) {
    struct thread *self = simt_self;
    bool found = false;
    for (unsigned i = 0; i < self->accumulator_count; i++) {
        struct accumulator_range *range = &self->accumulators[i];
        if (address + bytes <= range->start || range->start + range->bytes <= address) continue;
        if (range->pending && !(range->is_A && only_reads(kind)))
            simt_fail(pc, cudaErrorLaunchFailure,
                      "%s of %s of the wgmma issued at %s, which is under way: commit its group and wait for it first "
                      "(wgmma.commit_group, wgmma.wait_group)",
                      only_reads(kind) ? "read" : "write", range->is_A ? "a register of A" : "an accumulator",
                      source_line(range->pc));
        if (!only_reads(kind)) range->written_pc = pc;
        if (!range->is_A) return true;
        found = true; /* an access of 32 bytes touches two */
    }
    return found;
}
