/* The registers that wgmma accumulates in: local arrays of a thread here, which the product writes when it is waited for. And the
 * registers that it reads A from, four at a time, where they lie in a local array. */
#pragma once

#include "shadow.h"

struct accumulator_range {
    uintptr_t start;
    size_t bytes;
    bool is_A;                   /* the product only reads them */
    bool pending;                /* a product is under way */
    unsigned group;              /* of its warp */
    const void *pc, *written_pc; /* of the product; of a store after the last wgmma.fence, or NULL */
};

/* By wgmma.fence, by a product, and when `groups` groups of the warp are done. */
void accumulators_fence(struct thread *thread);
void accumulators_issue(struct thread *thread, const void *start, size_t bytes, unsigned group, const void *pc);
void registers_of_A_issue(struct thread *thread, const void *start, unsigned group, const void *pc);
void accumulators_done(struct thread *thread, unsigned groups);
/* An access of the running thread to its own stack. True: to registers of wgmma, which are no local memory. */
bool accumulators_judge(uintptr_t address, size_t bytes, enum access_kind kind, const void *pc);
