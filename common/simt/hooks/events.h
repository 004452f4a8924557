/* The events of a block other than its accesses. events.c passes each to the layers that need it, in a fixed order. */
#ifndef SIMT_EVENTS_H
#define SIMT_EVENTS_H

#include "machine.h"

void event_block_started(struct worker *worker);
void event_block_ended(struct worker *worker);
/* All threads of the block have come to a barrier, `last` at the place that counts, and none has gone past. */
void event_barrier(struct worker *worker, const struct thread *last);
/* The last expected thread has arrived at an mbarrier. */
void event_phase_ended(struct worker *worker, const struct thread *last);
/* These lanes of a warp have met at one place; `orders`: their accesses, too; `times`: so many instructions it is on a card. */
void event_lanes_met(struct worker *worker, struct thread *first_lane, unsigned lanes, bool orders, int times);
/* By the running thread: cp.async of `bytes` bytes, the last `zero_bytes` of which are zeros and not read. It reads now. */
void event_copy_issued(struct worker *worker, const void *from, void *to, size_t bytes, size_t zero_bytes, const void *pc);
/* `accesses`: that its thread has made since it was issued. */
void event_copy_landed(struct worker *worker, const void *to, size_t bytes, uint64_t accesses);
void event_launch_ended(struct launch *launch);

#endif
