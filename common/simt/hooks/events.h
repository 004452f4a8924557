/* The events of a block other than its accesses. events.c passes each to the layers that need it, in a fixed order. */
#pragma once

#include "shadow.h"

void event_block_started(struct worker *worker);
void event_block_ended(struct worker *worker);
/* All threads of the block have come to a barrier, `last` at the place that counts, and none has gone past. */
void event_barrier(struct worker *worker, const struct thread *last);
/* A phase is over: the last expected thread has arrived, at pc, and all bytes with it. `object` is an mbarrier's place in shared
 * memory or a named barrier's number; the barrier of a cluster has none. */
void event_phase_ended(struct worker *worker, const struct thread *last, const char *space, unsigned object, unsigned phase,
                       const void *pc);
/* By the running thread: it arrives there and announces so many bytes, or waits for this phase. */
void event_sync(const char *space, const char *what, unsigned object, unsigned phase, int64_t bytes, const void *pc);
/* These lanes of a warp have met at one place; `orders`: their accesses, too; `times`: so many instructions it is on a card. */
void event_lanes_met(struct worker *worker, struct thread *first_lane, unsigned lanes, bool orders, int times);
/* By the running thread: cp.async of `bytes` bytes, the last `zero_bytes` of which are zeros and not read. It reads now. */
void event_copy_issued(struct worker *worker, const void *from, void *to, size_t bytes, size_t zero_bytes, const void *pc);
/* By the running thread: it closes a group of its copies by cp.async (COPIES_COMMIT), or has waited until at most so many groups are
 * under way (COPIES_WAIT). */
void event_groups(enum access_kind what, unsigned groups, const void *pc);
/* `accesses`: that its thread has made since it was issued. */
void event_copy_landed(struct worker *worker, const void *to, size_t bytes, uint64_t accesses);
/* Before the next two: of 16 bytes of shared memory those that take part, and where they are in global memory. */
void event_unit(size_t shared, uintptr_t global, uint64_t inside);
/* The running thread starts a copy of the TMA, of the array at `base`, which counts at the mbarrier in this place; a warp of a
 * warpgroup, whose first lane this is, starts a product. */
void event_tensor_copy(enum tensor_traffic kind, uint64_t sectors, uintptr_t base, unsigned barrier, const void *pc);
void event_product(unsigned wavefronts, const struct thread *first_lane, const void *pc);
void event_launch_ended(struct launch *launch);
