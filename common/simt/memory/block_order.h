/* What blocks know of one another: by semaphores, words of global memory that one thread raises (release) and another one reads
 * (acquire). Who acquires knows what the releases whose sum it has read knew: of each block, what each of its threads did before
 * which clock.
 *
 * A thread that acquires is an acquirer of its block. The rows of async_shadow.h say how many acquisitions of each acquirer a
 * thread knows of. So the knowledge of other blocks goes from thread to thread within a block as all else does. */
#pragma once

#include "async_shadow.h"

/* ---- scopes: what an operation of less than the device's scope does not order, and what it is not atomic with ------------------
 *
 * Flags are not followed. But a chain of flags from one block to another begins with a release of the one, and ends with an acquire
 * of the other, whose scopes hold both blocks: where either block has executed narrower ones only, nothing orders the two. */

/* By the running thread: a fence, a release or an acquire of this scope. */
void block_order_fence(struct worker *worker, struct thread *thread, enum simt_scope scope, enum simt_ordering of,
                       const void *pc);
/* It has written by an atomic or volatile operation of a scope that is less than the device. */
void block_order_note_narrow(struct worker *worker, const struct thread *thread);
/* May flags order the access with this stamp before the running thread's? Some fence has been executed. */
bool block_order_may_be(uint64_t stamp, uint64_t self_stamp, bool of_blocks);
/* Two atomic or volatile accesses to a word, the earlier one by the cell: does the scope of one leave the other's block out, and nothing
 * order them? */
bool block_order_apart(const struct cell *cell, uint64_t stamp);
/* Why nothing orders the two, where a scope is the cause: a sentence for the message, or false. */
bool block_order_explain(uint64_t stamp, uint64_t self_stamp, char *text, size_t room);

/* Add `value` to the word, and let who reads it from now on know what the running thread knows, by the scope of the device. */
void block_order_release(struct worker *worker, struct thread *thread, uint32_t *word, uint32_t value, enum simt_scope scope);
/* Read the word; the thread learns, by the scope of the device. */
uint32_t block_order_acquire(struct worker *worker, struct thread *thread, const uint32_t *word, enum simt_scope scope);
/* Add `value` to the word as a relaxed operation, if it is one that somebody acquires, and set `old` to what it was. Who reads it
 * from now on is taken to mean to come after the running thread, and does not: such an addition releases nothing. */
bool block_order_add(struct worker *worker, struct thread *thread, uint32_t *word, uint32_t value, uint64_t *old);
/* Does the running thread know of what a thread of another block of this launch did at this clock? */
bool block_order_knows(const struct worker *worker, const struct thread *thread, uint64_t stamp, uint32_t clock);
/* It does not, but has waited for a relaxed addition that comes after it. */
bool block_order_is_meant(const struct worker *worker, const struct thread *thread, uint64_t stamp, uint32_t clock);
