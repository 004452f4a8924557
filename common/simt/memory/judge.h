/* Between the files of the shadow: which accesses are ordered, and what becomes of those that are not.
 *
 *     shadow.c      the check of one access
 *     order.c       when an access was
 *     block_order.c what blocks know of one another by semaphores, and what scopes leave out
 *     unwritten.c   reads of what nobody has written
 *     tolerated.c   races that a card may tolerate, judged when their stores are in memory
 *     race.c        a race in words
 *
 * Each calls those below it only. */
#pragma once

#include "block_order.h"
#include "report.h"

/* Of the block that runs. */
struct shadow_notes {
    enum { APART_BY_NONE, APART_BY_SELF, APART_BY_OTHER } apart; /* whose scope block_order_apart() has found too small, */
    enum simt_scope apart_scope;                                 /* and what it is */
    int last_barrier;                                            /* of barrier_sites, or -1 */
    unsigned barrier_site_count;
    struct barrier_site { /* the places of its barriers, and how often it has passed each */
        const void *pc;
        struct place place;
        unsigned passed;
    } barrier_sites[16];
    struct suspect { /* races that a card may tolerate, and stores that may be another value than the one before */
        uintptr_t address;
        uint32_t before, other_pc;
        unsigned width;
        const void *pc;
        uint64_t stamp;
        struct thread *thread;
        struct cell *cell;
        bool races, reads, other_reads, atomic; /* it; it reads; the other access does; all stores so far were atomic */
        bool updates;                           /* both threads read and write it, as += does */
        bool compares;                          /* it is tolerated only where it stores what was there before */
        uint64_t mixed;                         /* else, where no race is known: the flags of the write stamp */
    } suspects[16], doubt; /* the first race that is a fault unless something shows it to be tolerated; no thread: none */
    struct other_line {    /* where another one of several readers has read, one for each of some cells */
        const struct cell *cell;
        uint64_t owner; /* of the stamp */
        uint32_t pc;
    } other_lines[64];
};

/* Does the running thread know that lane `lane` of its own warp did what it did at `clock`? */
static inline bool ordered_in_warp(const struct warp *warp, unsigned lane, uint32_t clock, unsigned self_lane) {
    return clock < warp->known_to_all[lane] || (warp->has_partial && clock < warp->known[self_lane][lane]);
}

/* May they be? Scopes say where they cannot. `of_blocks`: of readers of several blocks. */
static inline bool ordered_by_flags(uint64_t stamp, uint64_t self_stamp, bool of_blocks) {
    return simt_worker->shadow.block_synchronises &&
           atomic_load_explicit(&simt_worker->launch->fenced, memory_order_relaxed) != SIMT_NO_SCOPE &&
           block_order_may_be(stamp, self_stamp, of_blocks);
}

/* Is the earlier access, of the same launch, by another thread and not ordered before the running one's? */
static inline bool unordered(uint64_t stamp, uint32_t clock, uint64_t self_stamp) {
    /* A kernel with fences and atomic or volatile accesses may order its threads by flags or locks, which are not
     * followed here: no accusation on a guess. */
    if (ordered_by_flags(stamp, self_stamp, false)) return false;
    if (!same_owner(stamp, self_stamp))
        return !block_order_knows(simt_worker, thread_numbered(stamp_thread(self_stamp)), stamp, clock);
    if (simt_in_step) return false;
    unsigned thread = stamp_thread(stamp), self = stamp_thread(self_stamp);
    if (thread == self) return false;
    if (simt_worker->async.on) return clock >= row_of(thread_numbered(self))[thread];
    if (clock < simt_worker->shadow.barrier_clock) return false;
    if (thread / WARP_SIZE != self / WARP_SIZE) return true;
    return !ordered_in_warp(warp_numbered(self), thread % WARP_SIZE, clock, self % WARP_SIZE);
}

/* The same for the readers that a read stamp stands for. */
static inline bool readers_unordered(uint64_t stamp, uint32_t clock, uint64_t self_stamp) {
    if (unordered(stamp, clock, self_stamp)) return true;
    if (ordered_by_flags(stamp, self_stamp, (stamp & READ_BY_BLOCKS) != 0)) return false;
    if ((stamp & READ_BY_BLOCKS) != 0) /* of several one is kept: where semaphores order blocks, the others may be known */
        return !simt_worker->async.on || simt_worker->async.shadow->acquirer_count == 0;
    if (!same_owner(stamp, self_stamp)) return false;
    if (simt_in_step || clock < simt_worker->shadow.barrier_clock) return false;
    if ((stamp & READ_BY_WARPS) != 0) return true;
    if ((stamp & READ_BY_LANES) == 0) return false;
    /* This thread was the last of several lanes to read: has its warp met since? */
    unsigned self = stamp_thread(self_stamp);
    return !ordered_in_warp(warp_numbered(self), stamp_thread(stamp) % WARP_SIZE, clock, self % WARP_SIZE);
}

/* Where another one of several readers of the cell may be noted. */
static inline struct other_line *other_line_of(const struct cell *cell) {
    size_t count = sizeof simt_worker->shadow.notes->other_lines / sizeof *simt_worker->shadow.notes->other_lines;
    return &simt_worker->shadow.notes->other_lines[(uintptr_t)cell / sizeof *cell % count];
}

/* ---- race.c ---- */

/* May both threads of a race update the word, as += does? Then all have read it by one instruction: several, or the one that has
 * written it. That a writer is among them its line must say. Asked before the access is noted. */
bool both_update(const struct cell *cell, enum access_kind kind, const void *pc) __attribute__((cold));
/* UPDATES: both_update(). NOT_ATOMIC: of two atomic accesses, block_order_apart() says so. */
enum race { PLAIN_RACE, UPDATES, NOT_ATOMIC };
/* `kind` is the access of `self`. Ends the launch; holds no lock then. */
void report_race(const struct thread *self, uintptr_t address, enum access_kind kind, const void *pc, uint64_t stamp,
                 uint32_t other_pc, bool other_wrote, enum race race) __attribute__((cold));
/* Of the reader that a message about a race with the running thread speaks of; 0: not known. */
uint32_t line_of_reader(const struct cell *cell, uint64_t self_stamp);
char *line_or(uint32_t pc, const char *unknown); /* the source line, or `unknown` where pc is 0; to be freed */

/* ---- unwritten.c ---- */

void note_unwritten(uintptr_t address, bool shared, const void *pc) __attribute__((cold));

/* ---- tolerated.c; the first two are false where it is a fault at once ---- */

/* A read races with the last write. */
bool suspect_read(struct cell *cell, uintptr_t address, uint64_t stamp, bool shared, const void *pc) __attribute__((cold));
/* A write races with the last one, or (`with_read`) with a read. */
bool suspect_write(struct cell *cell, uintptr_t address, uint64_t stamp, bool marked, bool shared, bool with_read,
                   const void *pc) __attribute__((cold));
/* The flags that a write to global memory adds to its stamp; `races`: it is a suspect already. */
uint64_t mixed_by_write(struct cell *cell, uintptr_t address, uint64_t stamp, bool marked, bool races, const void *pc);
