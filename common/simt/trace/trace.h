/* The trace of chosen blocks. Knows the meter's requests. */
#pragma once

#include "machine.h"

bool trace_start_block(struct worker *worker); /* is it watched? */
/* Beside accesses and barriers: at what threads of a watched block wait, arrive or copy; what and where. */
struct sync {
    const char *space, *what;
    uint32_t object, phase;
    int64_t bytes;
    const void *pc;
};

void trace_event(struct worker *worker, int warp,
                 const struct thread *thread); /* at its place, of a watched block; warp -1: a barrier */
void trace_sync(struct worker *worker, const struct thread *thread, struct sync sync); /* no thread: a phase is over */
/* Bytes that take part, before the copy or the product that moves them; `base`: of the array in global memory, or 0. */
void trace_unit(struct worker *worker, uint32_t shared, uintptr_t global, uint64_t inside);
void trace_units(struct worker *worker, const struct thread *thread, struct sync sync, uintptr_t base);
void trace_launch_done(const struct launch *launch); /* nothing without a trace */
