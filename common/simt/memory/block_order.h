/* What blocks know of one another: by semaphores, words of global memory that one thread raises (release) and another one reads
 * (acquire). Who acquires knows what the releases whose sum it has read knew: of each block, what each of its threads did before
 * which clock.
 *
 * A thread that acquires is an acquirer of its block. The rows of async_shadow.h say how many acquisitions of each acquirer a
 * thread knows of. So the knowledge of other blocks goes from thread to thread within a block as all else does. */
#pragma once

#include "async_shadow.h"

/* Add `value` to the word, and let who reads it from now on know what the running thread knows. */
void block_order_release(struct worker *worker, struct thread *thread, uint32_t *word, uint32_t value);
/* Read the word; the thread learns. */
uint32_t block_order_acquire(struct worker *worker, struct thread *thread, const uint32_t *word);
/* Add `value` to the word as a relaxed operation, if it is one that somebody acquires, and set `old` to what it was. Who reads it
 * from now on is taken to mean to come after the running thread, and does not: such an addition releases nothing. */
bool block_order_add(struct worker *worker, struct thread *thread, uint32_t *word, uint32_t value, uint64_t *old);
/* Does the running thread know of what a thread of another block of this launch did at this clock? */
bool block_order_knows(const struct worker *worker, const struct thread *thread, uint64_t stamp, uint32_t clock);
/* It does not, but has waited for a relaxed addition that comes after it. */
bool block_order_is_meant(const struct worker *worker, const struct thread *thread, uint64_t stamp, uint32_t clock);
