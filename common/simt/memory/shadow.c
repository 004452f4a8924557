/* What is remembered of each word of memory, to tell races and reads of what nobody wrote.
 *
 * Beside each 4-byte word lies a cell with two stamps: who wrote it last, and who read it last. Two accesses of which one
 * writes are a race unless something orders them, and that is decided by the program's own order, never by the order in
 * which this run happened to execute them:
 *
 *     same thread                     ordered by the program
 *     same block, a barrier between   ordered: the earlier access's clock is below the last barrier's clock
 *     same warp, a collective between ordered: by vector clocks of the warp's lanes
 *     other blocks of one launch      never ordered
 *     other launches                  ordered
 *
 * stamp.h says what a stamp holds. Beside it stands the thread's clock: a collective of its warp advances it, and a barrier sets
 * all clocks of the block to one that is above all of them. The stamp keeps one reader and flags for "others too", as HiRace
 * does (arXiv 2401.04701): constant space, and no reader is forgotten in a way that hides a race.
 *
 * Two volatile or atomic accesses do not race with one another, with one exception: in shared memory, volatile accesses of
 * lanes of one warp are ordered by a collective only, as plain ones are. `volatile` once served to exchange values within
 * a warp, whose lanes then moved together; on a card of today they need not.
 *
 * Invariant: the members of a cell of global memory are one statement, though blocks on several workers access the word at
 * the same moment. A worker holds the lock of the word's sector while it judges an access and notes it. Of two such accesses
 * the second therefore finds all that the first has noted, so no race is missed and every message names its lines. Shared
 * memory belongs to one worker and needs no lock.
 */
#include "shadow.h"

#include "device_memory.h"
#include "report.h"
#include "sector_lock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a test lets another worker meet a cell that is not whole (tests/paused_shadow.c). */
#ifndef SIMT_PAUSE
#define SIMT_PAUSE(place) ((void)0)
#endif

/* Does the running thread know that lane `lane` of its own warp did what it did at `clock`? */
static bool ordered_in_warp(const struct warp *warp, unsigned lane, uint32_t clock, unsigned self_lane) {
    return clock < warp->known_to_all[lane] || (warp->has_partial && clock < warp->known[self_lane][lane]);
}

/* Is the earlier access, of the same launch, by another thread and not ordered before the running one's? */
static bool unordered(uint64_t stamp, uint32_t clock, uint64_t self_stamp) {
    /* A kernel with fences and atomic or volatile accesses may order its threads by flags or locks, which are not
     * followed here: no accusation on a guess. */
    if (simt_worker->block_synchronises && atomic_load_explicit(&simt_worker->launch->fenced, memory_order_relaxed))
        return false;
    if (!same_owner(stamp, self_stamp)) return true;
    if (simt_in_step || clock < simt_worker->barrier_clock) return false;
    unsigned thread = stamp_thread(stamp), self = stamp_thread(self_stamp);
    if (thread == self) return false;
    if (thread / WARP_SIZE != self / WARP_SIZE) return true;
    return !ordered_in_warp(&simt_worker->warps[self / WARP_SIZE], thread % WARP_SIZE, clock, self % WARP_SIZE);
}

/* The same for the readers that a read stamp stands for. */
static bool readers_unordered(uint64_t stamp, uint32_t clock, uint64_t self_stamp) {
    if (unordered(stamp, clock, self_stamp)) return true;
    if (simt_worker->block_synchronises && atomic_load_explicit(&simt_worker->launch->fenced, memory_order_relaxed))
        return false;
    if ((stamp & READ_BY_BLOCKS) != 0) return true;
    if (simt_in_step || clock < simt_worker->barrier_clock) return false;
    if ((stamp & READ_BY_WARPS) != 0) return true;
    if ((stamp & READ_BY_LANES) == 0) return false;
    /* This thread was the last of several lanes to read: has its warp met since? */
    unsigned self = stamp_thread(self_stamp);
    return !ordered_in_warp(&simt_worker->warps[self / WARP_SIZE], stamp_thread(stamp) % WARP_SIZE, clock,
                            self % WARP_SIZE);
}

static const char *verb(enum access_kind kind) {
    return only_reads(kind) ? "reads" : kind == ACCESS_WRITE ? "writes" : "updates (atomically)";
}

static struct uint3 index_of(unsigned linear) {
    struct uint3 size = simt_worker->launch->block;
    return (struct uint3){linear % size.x, linear / size.x % size.y, linear / size.x / size.y};
}

/* Two accesses of one block between which the code has a barrier, though none was passed between them: the one further down
 * is of an earlier round of a loop than the other. Says so in `text`; false: it is not so. */
static bool explain_rounds(const void *pc, const void *other_pc, char *text, size_t room) {
    const struct worker *worker = simt_worker;
    if (worker->last_barrier < 0) return false;
    const struct barrier_site *barrier = &worker->barrier_sites[worker->last_barrier];
    uintptr_t low = (uintptr_t)pc, high = (uintptr_t)other_pc, between = (uintptr_t)barrier->pc;
    bool this_is_later = low < high;
    if (!this_is_later) low = (uintptr_t)other_pc, high = (uintptr_t)pc;
    if (low >= between || between >= high) return false;
    snprintf(
        text, room,
        "the %s in line %d stands between the two lines, but not between the two accesses: %s access is of round %u of "
        "the loop, %s of round %u already; let all threads wait at the end of a round, too",
        barrier->place.what, barrier->place.line, this_is_later ? "the other thread's" : "this thread's",
        barrier->passed, this_is_later ? "this thread's" : "the other's", barrier->passed + 1);
    return true;
}

/* To be freed. */
static char *line_or(uint32_t pc, const char *unknown) { return pc != 0 ? source_line(absolute_pc(pc)) : strdup(unknown); }

static const char *cause_of(bool same_block, bool same_warp, bool same_line, bool both_write) {
    if (same_line && both_write && same_block)
        return "two threads reach one element by the same line: does an index leave its row, where a bounds check is "
               "missing? Do both threads compute the same index? If they are meant to meet there, let one of them "
               "store, "
               "or use an atomic operation";
    if (same_line && both_write)
        return "blocks run in any order, and two of them reach one element by the same line: does an index leave its "
               "row or its block's part, where a bounds check is missing? Is the block's or the head's number left out "
               "of "
               "it? If they are meant to meet there, use an atomic operation";
    if (!same_block)
        return "blocks run in any order and cannot wait for one another: give each block its own output, use an atomic "
               "operation, or split the kernel in two";
    if (same_warp)
        return "put a __syncthreads() between the two accesses (the two threads are of one warp: a __syncwarp() is "
               "enough)";
    return "a __syncthreads() is missing between the two";
}

static struct other_line *other_line_of(const struct cell *cell) {
    size_t count = sizeof simt_worker->other_lines / sizeof *simt_worker->other_lines;
    return &simt_worker->other_lines[(uintptr_t)cell / sizeof *cell % count];
}

/* Of the reader that a message about a race with the running thread speaks of; 0: not known. */
static uint32_t line_of_reader(const struct cell *cell, uint64_t self_stamp) {
    if (!cell->read_elsewhere || (cell->read & ~STAMP_FLAGS) != self_stamp) return cell->read_pc;
    const struct other_line *other = other_line_of(cell);
    return other->cell == cell && other->owner == stamp_owner(cell->read) ? other->pc : 0;
}

static __attribute__((noinline, cold)) void report_race(uintptr_t address, enum access_kind kind, const void *pc,
                                                        uint64_t stamp, uint32_t other_pc, bool other_wrote) {
    char what[200], who[120], rounds[400];
    unlock_sector(simt_worker);
    describe_address(address, what, sizeof what);
    bool shared = shared_offset_of(simt_worker, address) < SHARED_BYTES_MAX;
    bool same_block = stamp_owner(stamp) == (shared ? simt_worker->shared_owner : simt_worker->owner);
    struct uint3 other = index_of(stamp_thread(stamp));
    bool same_warp = same_block && stamp_thread(stamp) / WARP_SIZE == simt_self->linear / WARP_SIZE;
    if (!same_block) {
        uint64_t number = stamp_block(stamp);
        struct uint3 grid = simt_worker->launch->grid;
        snprintf(who, sizeof who, "thread (%u,%u,%u) of block (%u,%u,%u)", other.x, other.y, other.z,
                 (unsigned)(number % grid.x), (unsigned)(number / grid.x % grid.y),
                 (unsigned)(number / grid.x / grid.y));
    } else if (stamp_thread(stamp) != simt_self->linear) {
        snprintf(who, sizeof who, "thread (%u,%u,%u) of the same block", other.x, other.y, other.z);
    } else { /* the last of several readers: the others are known by a flag only */
        same_block = (stamp & READ_BY_BLOCKS) == 0;
        same_warp = same_block && (stamp & READ_BY_WARPS) == 0;
        snprintf(who, sizeof who, "another thread of %s",
                 same_warp    ? "the same warp"
                 : same_block ? "the same block"
                              : "another block");
    }
    char *line = source_line(pc), *other_line = line_or(other_pc, "");
    bool both_write = other_wrote && kind == ACCESS_WRITE;
    const char *cause = same_block && other_pc != 0 && explain_rounds(pc, absolute_pc(other_pc), rounds, sizeof rounds)
                            ? rounds
                            : cause_of(same_block, same_warp, strcmp(line, other_line) == 0, both_write);
    const char *other_verb = other_wrote ? "wrote" : simt_strict || shared ? "read" : "accessed"; /* keep_writer() */
    simt_fail(cudaErrorLaunchFailure, "race on %s: this thread %s it at %s; %s %s it%s%s, and nothing orders the two: %s", what,
              verb(kind), line, who, other_verb, other_pc != 0 ? " at " : "", other_line, cause);
}

/* ---- what a card tolerates, where SIMT_STRICT does not forbid it ---------------------------------------------------- */

/* A race is told and lets the kernel go on where whoever reads finds a value that was meant: the word lies in global
 * memory, its stores have at most 8 bytes, and either all of them in this launch are atomic (or volatile), or they
 * store one value. Two flags of the cell's write stamp say that neither is so. A barrier of the block begins anew for
 * the races inside of it. Whoever took part in a tolerated race stays known, as a reader: a later store that breaks the
 * rule races with it again, and then is a fault. */

/* So many bytes at so odd a place are no one access for a card. Of the write that is judged. */
static bool is_wide(void) {
    size_t bytes = simt_self->judged_bytes;
    return simt_self->in_pieces || bytes > 8 || (bytes & (bytes - 1)) != 0 || simt_self->judged % bytes != 0;
}

static bool is_mixed(const struct cell *cell, uint64_t self_stamp, bool of_blocks) {
    if (of_blocks || !same_owner(cell->write, self_stamp)) return (cell->write & (WRITE_MIXED | WRITE_EVER_MIXED)) != 0;
    return cell->write_clock >= simt_worker->barrier_clock && (cell->write & WRITE_MIXED) != 0;
}

/* The hook comes before the store: what another worker's thread has noted may not be in memory yet, until that worker
 * has had the processor for a while or its thread has stored elsewhere. */
static void await_store(uint64_t stamp, uintptr_t address) {
    enum { NANOSECONDS = 20000, TRIES = 1000 };
    const struct launch *launch = simt_worker->launch;
    for (int i = 0; i < launch->worker_count; i++) {
        struct worker *other = launch->workers[i];
        if (other == simt_worker || other->launch != launch || other->owner != stamp_owner(stamp)) continue;
        const volatile struct thread *writer = &other->threads[stamp_thread(stamp)];
        struct timespec first = {0}, now = {0}, pause = {.tv_nsec = NANOSECONDS};
        clock_gettime(other->processor_clock, &first);
        for (int t = 0; t < TRIES && writer->state <= READY && address - writer->judged < writer->judged_bytes; t++) {
            clock_gettime(other->processor_clock, &now);
            if (now.tv_sec != first.tv_sec || now.tv_nsec - first.tv_nsec > NANOSECONDS) return;
            nanosleep(&pause, NULL);
        }
    }
}

/* NULL: there is no room. */
static struct suspect *add_suspect(struct cell *cell, uintptr_t address, const void *pc) {
    struct worker *worker = simt_worker;
    if (worker->suspect_count == sizeof worker->suspects / sizeof *worker->suspects) return NULL;
    struct suspect *suspect = &worker->suspects[worker->suspect_count++];
    *suspect = (struct suspect){
        .address = address, .width = worker->access_width, .pc = pc, .thread = simt_self, .cell = cell};
    suspect->atomic = (cell->write & WRITE_MARKED) != 0;
    return suspect;
}

static bool add_comparison(struct suspect *suspect) {
    if (suspect == NULL) return false;
    suspect->compares = true;
    if (shared_offset_of(simt_worker, suspect->address) >= SHARED_BYTES_MAX &&
        stamp_owner(suspect->cell->write) != simt_worker->owner)
        await_store(suspect->cell->write, suspect->address);
    memcpy(&suspect->before, (const void *)suspect->address, suspect->width);
    return true;
}

/* A read races with the last write. */
static __attribute__((noinline, cold)) bool suspect_read(struct cell *cell, uintptr_t address, uint64_t stamp,
                                                         bool shared, const void *pc) {
    if (simt_strict || shared || is_mixed(cell, stamp, false)) return false;
    struct suspect *suspect = add_suspect(cell, address, pc);
    if (suspect == NULL) return true; /* no room: 16 races of this access are noted already */
    suspect->races = suspect->reads = true;
    suspect->stamp = cell->write;
    suspect->other_pc = cell->write_pc;
    return true;
}

/* A write races with the last one, or with a read. What it stores is seen later: at the next access, barrier or end of
 * the block. In shared memory only two stores of one value are tolerated. */
static __attribute__((noinline, cold)) bool suspect_write(struct cell *cell, uintptr_t address, uint64_t stamp,
                                                          bool marked, bool shared, bool with_read, const void *pc) {
    uint64_t write = cell->write;
    bool written = shared ? same_owner(write, stamp) : same_launch(write, stamp);
    bool was_marked = (write & WRITE_MARKED) != 0;
    if (simt_strict || (shared && with_read) || (!shared && is_wide())) return false;
    if (written && marked != was_marked) return false;
    if (with_read && written) {
        bool of_blocks = (cell->read & READ_BY_BLOCKS) != 0 || !same_owner(cell->read, stamp);
        if (is_mixed(cell, stamp, of_blocks)) return false;
    }
    struct suspect *suspect = add_suspect(cell, address, pc);
    if (written && !marked && !add_comparison(suspect)) return false;
    if (suspect == NULL) return true;
    suspect->races = true;
    suspect->other_reads = with_read;
    suspect->stamp = with_read ? cell->read : write;
    suspect->other_pc = with_read ? line_of_reader(cell, stamp) : cell->write_pc;
    suspect->atomic = marked;
    return true;
}

/* The flags that a write to global memory adds to its stamp; `races`: it is a suspect already. */
static __attribute__((noinline)) uint64_t mixed_by_write(struct cell *cell, uintptr_t address, uint64_t stamp,
                                                         bool marked, bool races, const void *pc) {
    const uint64_t both = WRITE_MIXED | WRITE_EVER_MIXED;
    uint64_t write = cell->write;
    if (is_wide()) return both;
    if (!same_launch(write, stamp)) return 0;
    bool after_barrier = same_owner(write, stamp) && cell->write_clock < simt_worker->barrier_clock;
    uint64_t mixed = after_barrier ? WRITE_EVER_MIXED : both, flags = write & both;
    if (after_barrier && flags != 0) flags = WRITE_EVER_MIXED;
    if (((write & WRITE_MARKED) != 0) != marked) return mixed;
    if (marked || races || (flags & mixed) == mixed) return flags;
    struct suspect *suspect = add_suspect(cell, address, pc);
    if (!add_comparison(suspect)) return mixed;
    suspect->mixed = mixed;
    return flags;
}

/* Another value than before, where no race is known. One with a reader may have come since. */
static bool note_mixed(const struct suspect *suspect) {
    struct cell *cell = suspect->cell;
    uint64_t stamp = suspect->thread->stamp;
    lock_sector(simt_worker, suspect->address);
    bool races = same_launch(cell->read, stamp) && readers_unordered(cell->read, cell->read_clock, stamp);
    if (same_launch(cell->write, stamp)) cell->write |= suspect->mixed;
    if (races) report_race(suspect->address, ACCESS_WRITE, suspect->pc, cell->read, line_of_reader(cell, stamp), false);
    unlock_sector(simt_worker);
    return races;
}

static void tell_tolerated(const struct suspect *suspect) {
    char what[200];
    describe_address(suspect->address, what, sizeof what);
    char *line = source_line(suspect->pc), *other_line = line_or(suspect->other_pc, "another line");
    if (suspect->reads || suspect->other_reads)
        simt_warn(
            suspect->pc,
            "race on %s: a thread reads it at %s, another one stores to it at %s, and nothing orders the two; a card "
            "tolerates it, because %s: the reader finds the word as it was before or after a store",
            what, suspect->reads ? line : other_line, suspect->reads ? other_line : line,
            suspect->atomic ? "all stores to it so far are atomic" : "all stores to it so far store one value");
    else
        simt_warn(suspect->pc, "several threads store the same value to %s, at %s and at %s, and nothing orders them",
                  what, line, other_line);
    free(line);
    free(other_line);
}

void shadow_settle_suspects(struct worker *worker) {
    struct thread *self = simt_self;
    unsigned count = worker->suspect_count;
    worker->suspect_count = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct suspect *suspect = &worker->suspects[i];
        uint32_t now = 0;
        memcpy(&now, (const void *)suspect->address, suspect->width);
        simt_self = suspect->thread;
        if (suspect->compares && now != suspect->before) {
            if (!suspect->races && !note_mixed(suspect)) continue;
            if (suspect->races)
                report_race(suspect->address, ACCESS_WRITE, suspect->pc, suspect->stamp, suspect->other_pc,
                            !suspect->other_reads);
            break;
        }
        if (suspect->races && !simt_warned(suspect->pc)) tell_tolerated(suspect);
    }
    simt_self = self;
}

/* The writer may just not have run yet: then its write will be found to race with this read. So the read is only noted,
 * and told at the next barrier or the end of the block. */
static __attribute__((noinline, cold)) void note_unwritten(uintptr_t address, bool shared, const void *pc) {
    struct worker *worker = simt_worker;
    if (simt_in_step || worker->unwritten.thread != NULL || (worker->launch->after_failure && !shared)) return;
    worker->unwritten.address = address;
    worker->unwritten.pc = pc;
    worker->unwritten.thread = simt_self;
    worker->unwritten.shared = shared;
}

void shadow_report_unwritten(struct worker *worker) {
    shadow_settle_suspects(worker);
    if (worker->unwritten.thread == NULL) return;
    if (!simt_strict && simt_warned(worker->unwritten.pc)) {
        worker->unwritten.thread = NULL;
        return;
    }
    char what[200];
    describe_address(worker->unwritten.address, what, sizeof what);
    char *line = source_line(worker->unwritten.pc);
    if (!simt_strict) {
        simt_warn(worker->unwritten.pc, "%s: read of %s, which nobody has written", line, what);
        free(line);
        worker->unwritten.thread = NULL;
        return;
    }
    simt_self = worker->unwritten.thread;
    simt_fail(cudaErrorLaunchFailure, "%s: read of %s, which nobody has written%s", line, what,
              worker->unwritten.shared ? " in this block: shared memory starts out with no defined contents" : "");
    simt_self = NULL;
}

static __attribute__((noinline, cold)) void report_pending(uintptr_t address, const void *pc, uint32_t copy_pc) {
    char what[200];
    unlock_sector(simt_worker);
    describe_address(address, what, sizeof what);
    char *line = source_line(pc), *copy_line = source_line(absolute_pc(copy_pc));
    simt_fail(cudaErrorLaunchFailure,
              "%s: access to %s while the asynchronous copy into it, issued at %s, is under way: wait for it first "
              "(__pipeline_wait_prior), and let other threads wait at a barrier after that",
              line, what, copy_line);
}

void simt_check_constant(const void *pointer, size_t bytes) {
    const struct allocation *memory = simt_self != NULL ? memory_find((uintptr_t)pointer) : NULL;
    if (memory == NULL) return; /* the read that follows is judged */
    size_t offset = (uintptr_t)pointer - memory->start;
    for (size_t i = offset; i < offset + bytes && i < memory->bytes; i++) {
        const struct cell *word = &memory->cells[i / 4];
        if (!same_launch(word->write, simt_self->stamp)) continue; /* of its bytes, too, one at least */
        lock_sector(simt_worker, memory->start + i);
        struct cell cell = word->split ? byte_cells(memory->cells, memory->bytes, i / 4)[i % 4] : *word;
        unlock_sector(simt_worker);
        if (!same_launch(cell.write, simt_self->stamp)) continue;
        char what[200];
        describe_address(memory->start + i, what, sizeof what);
        char *line = source_line(__builtin_return_address(0)), *store_line = source_line(absolute_pc(cell.write_pc));
        simt_fail(cudaErrorLaunchFailure,
                  "%s: __ldg() reads %s, which this kernel has written at %s: its cache may still hold the old value, "
                  "so it is "
                  "for memory that the kernel only reads",
                  line, what, store_line);
    }
}

/* Volatile accesses to shared memory of two lanes of one warp, of which one writes and the other reads. */
static bool volatile_lanes(uint64_t earlier, uint64_t stamp, bool shared) {
    return shared && stamp_thread(earlier) / WARP_SIZE == stamp_thread(stamp) / WARP_SIZE;
}

static inline void set_line(struct cell *cell, uint32_t pc, bool elsewhere) {
    const struct cell next = {.read_pc = pc, .read_elsewhere = elsewhere, .split = cell->split};
    cell->read_place = next.read_place;
}

/* A volatile read is kept where no plain one is that it would hide. */
static void note_volatile_read(struct cell *cell, uint64_t stamp, const void *pc) {
    bool same_time = same_owner(cell->read, stamp) && cell->read_clock >= simt_worker->barrier_clock;
    if (same_time && (cell->read & READ_VOLATILE) == 0) return;
    cell->read = stamp | READ_VOLATILE;
    cell->read_clock = simt_self->clock;
    set_line(cell, relative_pc(pc), false);
}

/* The line of a read. The stamp names the last of several readers. When this is who comes to write, the others are meant:
 * where the last of them has read in another line, it is kept beside, until one of another cell takes its place. */
static inline void note_line(struct cell *cell, uint64_t read_before, const void *pc) {
    uint32_t line = relative_pc(pc);
    bool several = (cell->read & STAMP_FLAGS) != 0, same_thread = ((cell->read ^ read_before) & ~STAMP_FLAGS) == 0;
    bool elsewhere = several && cell->read_elsewhere;
    if (!elsewhere || !same_thread) {
        elsewhere = several && line != cell->read_pc;
        if (elsewhere) *other_line_of(cell) = (struct other_line){cell, stamp_owner(cell->read), cell->read_pc};
    }
    set_line(cell, line, elsewhere);
}

/* Of a read in global memory, or of a plain one in shared memory. */
static inline __attribute__((always_inline)) void note_read(struct cell *cell, uint64_t stamp, bool shared,
                                                            const void *pc) {
    uint64_t read = cell->read;
    if (!shared && (read & READ_BY_BLOCKS) != 0 && same_launch(read, stamp)) return;
    if (shared && (read & READ_VOLATILE) != 0) {
        cell->read = stamp;
    } else if (same_owner(read, stamp) && cell->read_clock >= simt_worker->barrier_clock) {
        if ((read & READ_BY_WARPS) != 0) return;
        unsigned thread = stamp_thread(read), self = stamp_thread(stamp);
        uint64_t flags = read & STAMP_FLAGS;
        if (thread / WARP_SIZE != self / WARP_SIZE)
            flags |= READ_BY_WARPS;
        else if (ordered_in_warp(&simt_worker->warps[self / WARP_SIZE], thread % WARP_SIZE, cell->read_clock,
                                 self % WARP_SIZE))
            flags = 0; /* the warp has met since: the earlier readers are done */
        else if (thread != self)
            flags |= READ_BY_LANES;
        cell->read = stamp | flags;
    } else if (!shared && same_launch(read, stamp) && !same_owner(read, stamp)) {
        cell->read = stamp | READ_BY_BLOCKS;
    } else {
        cell->read = stamp;
    }
    SIMT_PAUSE(reader_stamped);
    cell->read_clock = simt_self->clock;
    note_line(cell, read, pc);
}

static inline void on_read(struct cell *cell, uintptr_t address, uint64_t stamp, bool marked, bool shared,
                           bool all_written, const void *pc) {
    uint64_t write = cell->write;
    if (shared ? same_owner(write, stamp) : same_launch(write, stamp)) {
        if ((write & WRITE_PENDING) != 0 && shared) {
            report_pending(address, pc, cell->write_pc);
            return;
        }
        bool meant = marked && (write & WRITE_MARKED) != 0 &&
                     !((write & WRITE_VOLATILE) != 0 && volatile_lanes(write, stamp, shared));
        if (!meant && unordered(write, cell->write_clock, stamp)) {
            if (!suspect_read(cell, address, stamp, shared, pc)) {
                report_race(address, ACCESS_READ, pc, write, cell->write_pc, true);
                return;
            }
            marked = false; /* to be noted */
        }
    } else if (shared ? true : write == 0 && !all_written) {
        note_unwritten(address, shared, pc);
    }
    if (marked) {
        if (shared) note_volatile_read(cell, stamp, pc);
        return;
    }
    SIMT_PAUSE(reader_judged);
    note_read(cell, stamp, shared, pc);
}

/* The earlier one of two writers whose race is tolerated stays known, as one of several readers. */
static __attribute__((noinline, cold)) void keep_writer(struct cell *cell, uint64_t stamp, const void *pc) {
    uint64_t write = cell->write;
    note_read(cell, stamp, false, pc);
    cell->read |= !same_owner(write, stamp)                                            ? READ_BY_BLOCKS
                  : stamp_thread(write) / WARP_SIZE != stamp_thread(stamp) / WARP_SIZE ? READ_BY_WARPS
                                                                                       : READ_BY_LANES;
    set_line(cell, cell->write_pc, false);
}

static inline void on_write(struct cell *cell, uintptr_t address, uint64_t stamp, enum access_kind kind, bool marked,
                            bool shared, const void *pc) {
    uint64_t write = cell->write, read = cell->read;
    bool races_with_write = false, races_with_read = false;
    if (shared ? same_owner(write, stamp) : same_launch(write, stamp)) {
        if ((write & WRITE_PENDING) != 0 && shared) {
            report_pending(address, pc, cell->write_pc);
            return;
        }
        if (!(marked && (write & WRITE_MARKED) != 0) && unordered(write, cell->write_clock, stamp)) {
            if (!suspect_write(cell, address, stamp, marked, shared, false, pc)) {
                report_race(address, kind, pc, write, cell->write_pc, true);
                return;
            }
            races_with_write = true;
        }
    }
    if (shared ? same_owner(read, stamp) : same_launch(read, stamp)) {
        bool was_volatile = shared && (read & READ_VOLATILE) != 0;
        races_with_read = was_volatile ? kind != ACCESS_ATOMIC && volatile_lanes(read, stamp, shared) &&
                                             unordered(read, cell->read_clock, stamp)
                                       : readers_unordered(read, cell->read_clock, stamp);
        if (races_with_read && !suspect_write(cell, address, stamp, marked, shared, true, pc)) {
            report_race(address, kind, pc, read, line_of_reader(cell, stamp), false);
            return;
        }
    }
    uint64_t mixed = 0;
    if (!simt_strict && !shared) {
        mixed = mixed_by_write(cell, address, stamp, marked, races_with_write || races_with_read, pc);
        if (races_with_write) keep_writer(cell, stamp, pc);
    }
    /* A plain store that this thread has just made stays one for the others, though an atomic of its own follows. */
    bool after_plain_store =
        (write & ~STAMP_FLAGS) == stamp && (write & WRITE_MARKED) == 0 && cell->write_clock == simt_self->clock;
    uint64_t flags = marked && !after_plain_store ? WRITE_MARKED : 0;
    if (flags != 0 && shared && kind == ACCESS_WRITE) flags |= WRITE_VOLATILE;
    cell->write = stamp | flags | mixed;
    cell->write_clock = simt_self->clock;
    if (!after_plain_store) cell->write_pc = relative_pc(pc);
}

static inline __attribute__((always_inline)) void on_access(struct cell *cell, uintptr_t address, uint64_t stamp,
                                                            enum access_kind kind, bool marked, bool shared,
                                                            bool all_written, const void *pc) {
    if (only_reads(kind)) {
        on_read(cell, address, stamp, marked, shared, all_written, pc);
        return;
    }
    /* An atomic operation reads what it updates. */
    uint64_t write = cell->write;
    if (kind == ACCESS_ATOMIC &&
        (shared ? !same_owner(write, stamp) : write == 0 && !all_written))
        note_unwritten(address, shared, pc);
    on_write(cell, address, stamp, kind, marked, shared, pc);
}

/* The bytes of a word have cells of their own from now on. */
static __attribute__((noinline)) void split(struct cell *word, struct cell own[4]) {
    for (int i = 0; i < 4; i++) own[i] = *word;
    SIMT_PAUSE(word_copied);
    word->read = 0; /* so that no read of the word is settled */
    atomic_thread_fence(memory_order_release); /* bytes_are_settled() holds no lock */
    word->split = 1;
}

/* Some bytes of a word, or all of one that is split. */
static __attribute__((noinline)) void on_bytes(const struct shadowed *memory, size_t offset, uintptr_t address,
                                               size_t bytes, uint64_t stamp, enum access_kind kind, bool marked,
                                               const void *pc) {
    struct cell *word = &memory->cells[offset / 4], *own = byte_cells(memory->cells, memory->bytes, offset / 4);
    if (!word->split) split(word, own);
    simt_worker->access_width = 1;
    for (size_t i = 0; i < bytes; i++)
        on_access(&own[offset % 4 + i], address + i, stamp, kind, marked, memory->shared, memory->all_written, pc);
    simt_worker->access_width = 4;
    if (!only_reads(kind)) word->write = stamp; /* readers of `write` only test whether it is set */
}

static inline void on_words(const struct shadowed *memory, size_t offset, uintptr_t address, size_t bytes,
                            uint64_t stamp, enum access_kind kind, bool marked, const void *pc) {
    struct cell *cell = &memory->cells[offset / 4];
    if ((offset | bytes) % 4 == 0) {
        for (; bytes > 0; cell++, offset += 4, address += 4, bytes -= 4)
            if (!cell->split)
                on_access(cell, address, stamp, kind, marked, memory->shared, memory->all_written, pc);
            else
                on_bytes(memory, offset, address, 4, stamp, kind, marked, pc);
        return;
    }
    while (bytes > 0) {
        size_t in_word = 4 - offset % 4 < bytes ? 4 - offset % 4 : bytes;
        on_bytes(memory, offset, address, in_word, stamp, kind, marked, pc);
        offset += in_word, address += in_word, bytes -= in_word;
    }
}

/* As shadow_read_is_settled(), for a plain read of some bytes of a word of global memory that is split. */
static inline bool bytes_are_settled(const struct shadowed *memory, size_t offset, size_t bytes, uint64_t stamp) {
    const struct cell *word = &memory->cells[offset / 4];
    if (offset % 4 + bytes > 4 || !word->split) return false;
    atomic_thread_fence(memory_order_acquire);
    const struct cell *own = byte_cells(memory->cells, memory->bytes, offset / 4) + offset % 4;
    for (size_t i = 0; i < bytes; i++)
        if (!shadow_read_is_settled(&own[i], stamp, simt_worker, simt_self->clock, true, memory->all_written)) return false;
    return true;
}

void shadow_access(const struct shadowed *memory, size_t offset, uintptr_t address, size_t bytes, enum access_kind kind,
                   bool marked, const void *pc) {
    struct worker *worker = simt_worker;
    uint64_t stamp = simt_self->stamp;
    if (memory->shared) {
        on_words(memory, offset, address, bytes, stamp_in_shared(stamp, worker), kind, marked, pc);
        return;
    }
    if (kind == ACCESS_READ && !marked && bytes_are_settled(memory, offset, bytes, stamp)) return;
    while (bytes > 0) {
        size_t in_sector = LOCKED_SECTOR - address % LOCKED_SECTOR < bytes ? LOCKED_SECTOR - address % LOCKED_SECTOR : bytes;
        lock_sector(worker, address);
        on_words(memory, offset, address, in_sector, stamp, kind, marked, pc);
        unlock_sector(worker);
        offset += in_sector, address += in_sector, bytes -= in_sector;
    }
}

/* An asynchronous copy into this shared memory begins or ends. */
void shadow_pending(struct worker *worker, size_t shared_offset, size_t bytes, bool pending) {
    for (size_t word = shared_offset / 4; word < (shared_offset + bytes) / 4; word++) {
        struct cell *cell = &worker->shared_cells[word], *bytes_of = NULL;
        if (cell->split) bytes_of = byte_cells(worker->shared_cells, SHARED_BYTES_MAX, word);
        for (int i = 0; i < (bytes_of != NULL ? 4 : 1); i++) {
            struct cell *own = bytes_of != NULL ? &bytes_of[i] : cell;
            if (pending) {
                own->write |= WRITE_PENDING;
            } else {
                own->write = stamp_in_shared(simt_self->stamp, worker);
                own->write_clock = simt_self->clock;
            }
        }
    }
}
