/* What is remembered of each word of memory, to tell races and reads of what nobody wrote (shadow.c tells how). */
#pragma once

#include "stamp.h"

/* ACCESS_COPY: the reading side of an asynchronous copy to shared memory. ACCESS_LDMATRIX: a lane's row of it. COPIES_*: no access,
 * not counted, but a trace has it in order: a lane closes a group of its copies by cp.async, or has waited until at most so many
 * groups (in place of the address) are under way. */
enum access_kind {
    ACCESS_READ,
    ACCESS_WRITE,
    ACCESS_ATOMIC,
    ACCESS_COPY,
    ACCESS_LDMATRIX,
    ACCESS_KINDS,
    COPIES_COMMIT = ACCESS_KINDS,
    COPIES_WAIT
};
static inline bool only_reads(enum access_kind kind) { return kind != ACCESS_WRITE && kind != ACCESS_ATOMIC; }

/* A plain read that adds nothing to what the word's cell already says, and cannot race: nobody has written the word in
 * this launch (or, with `global` false, no thread of this block since the last barrier), and as many readers are noted
 * already; a word that is split notes none. Nearly all reads are such, so this is the part that must be fast. */
static inline bool shadow_read_is_settled(const struct cell *cell, uint64_t stamp, const struct worker *worker, uint32_t clock,
                                          bool global, bool all_written) {
    uint64_t write = cell->write, read = cell->read;
    if (global) {
        if (same_launch(write, stamp) || (write == 0 && !all_written)) return false;
        if ((read & READ_BY_BLOCKS) != 0 && same_launch(read, stamp)) return true;
    } else {
        if (!same_owner(write, stamp) || cell->write_clock >= worker->shadow.barrier_clock || (write & WRITE_PENDING) != 0)
            return false;
    }
    if ((read & READ_BY_WARPS) != 0 && same_owner(read, stamp) && cell->read_clock >= worker->shadow.barrier_clock) return true;
    return read == stamp && cell->read_clock == clock;
}
/* Another lane of the warp has read a word of shared memory in this line, since the warp last met: shadow.c would note this
 * one in its place, and that there are several. True: that is done. (One element for all lanes is what many loops read.) */
static inline bool shadow_read_of_next_lane(struct cell *cell, uint64_t stamp, const struct worker *worker,
                                            const struct thread *self, uint32_t line) {
    uint64_t write = cell->write, read = cell->read;
    if (!same_owner(write, stamp) || cell->write_clock >= worker->shadow.barrier_clock || (write & WRITE_PENDING) != 0)
        return false;
    if (((read ^ stamp) >> STAMP_FLAG_BITS) / WARP_SIZE != 0 || (read & STAMP_FLAGS & ~(uint64_t)READ_BY_LANES) != 0)
        return false;
    if (cell->read_clock != self->clock || cell->read_pc != line || cell->read_elsewhere) return false;
    if (worker->warps[self->linear / WARP_SIZE].has_partial) return false;
    cell->read = stamp | READ_BY_LANES;
    return true;
}
/* An access to `bytes` bytes that begin `offset` bytes into some memory with these cells.
 *
 * settled: a number for each sector of 32 bytes. It is the worker's own (shadow.settled_global, settled_shared) where all words
 * of the sector lie in the memory and are settled for whoever reads: by readers of several blocks, or in shared memory of
 * several warps. So a read needs no look at its cells. The worker's number changes with all that settled reads depend on, the
 * order of the launch or the block's last barrier; a write and the split of a word take the sector's away. */
struct shadowed {
    struct cell *cells;
    size_t bytes;
    bool shared, all_written;
    uint64_t *settled;
};
static inline bool sector_is_settled(const uint64_t *settled, size_t offset, uint64_t number) {
    return __atomic_load_n(&settled[offset / SETTLED_BYTES], __ATOMIC_RELAXED) == number;
}
static inline void unsettle(uint64_t *settled, size_t offset) {
    uint64_t *number = &settled[offset / SETTLED_BYTES]; /* a page that nobody has touched stays so */
    if (__atomic_load_n(number, __ATOMIC_RELAXED) != 0) __atomic_store_n(number, 0, __ATOMIC_RELAXED);
}
static const uint64_t NEVER_SETTLED = UINT64_MAX; /* of a worker: no sector is */
/* In shared memory. */
static inline void shadow_next_settled(struct worker *worker) {
    worker->shadow.settled_shared = worker->async.on ? NEVER_SETTLED : ++worker->shadow.last_settled;
}
void shadow_access(const struct shadowed *memory, size_t offset, uintptr_t address, size_t bytes, enum access_kind kind,
                   bool marked, const void *pc);
/* By the host before a launch, and by the last block to come to a barrier of the grid: what follows is ordered after. */
void shadow_next_order(struct launch *launch);
void shadow_start_block(struct worker *worker, uint64_t number);
void shadow_barrier(struct worker *worker, const struct thread *last); /* `last` was the last to come, or was there */
void shadow_grid_barrier(struct worker *worker);                       /* launch->order has changed */
void shadow_report_unwritten(struct worker *worker);
void shadow_settle_suspects(struct worker *worker); /* before anything else is stored */
void shadow_settle_doubt(struct worker *worker);    /* its block has ended */
void shadow_collective(struct warp *warp, struct thread *first_lane, unsigned lanes);
void shadow_pending(struct worker *worker, size_t shared_offset, size_t bytes, bool pending);
/* Numbers of a floating type are about to be added to these bytes: to what other blocks have added, in the order that is meant? */
void shadow_judge_sum(uintptr_t address, size_t bytes, const void *pc);
/* A store or reduction of the async proxy to global memory, judged as its issuer's write, is under way from now on, or lands. */
void shadow_under_way(struct worker *worker, const struct thread *issuer, uintptr_t address, size_t bytes, bool under_way);
