/* The check of one access: what is remembered of each word of memory, to tell races and reads of what nobody wrote.
 *
 * Beside each 4-byte word lies a cell with two stamps: who wrote it last, and who read it last. Two accesses of which one
 * writes are a race unless something orders them, and that is decided by the program's own order, never by the order in
 * which this run happened to execute them:
 *
 *     same thread                     ordered by the program
 *     same block, a barrier between   ordered: the earlier access's clock is below the last barrier's clock
 *     same warp, a collective between ordered: by vector clocks of the warp's lanes
 *     other blocks of one launch      never ordered
 *     other launches                  ordered, or of other streams: streams.c
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
#include "judge.h"

#include "device_memory.h"
#include "sector_lock.h"
#include "streams.h"

/* Where a test lets another worker meet a cell that is not whole (tests/simulated/paused_shadow.c). */
#ifndef SIMT_PAUSE
#define SIMT_PAUSE(place) ((void)0)
#endif

static __attribute__((noinline, cold)) void report_pending(uintptr_t address, const void *pc, uint32_t copy_pc) {
    unlock_sector(simt_worker);
    simt_fail(pc, cudaErrorLaunchFailure,
              "access to %s while the asynchronous copy into it, issued at %s, is under way: wait for it first "
              "(__pipeline_wait_prior), and let other threads wait at a barrier after that",
              describe_address(address).text, source_line(absolute_pc(copy_pc)));
}

/* A store or reduction of the async proxy whose issue comes before this access, but for whose landing nobody has waited. Atomic
 * additions of one block may come in any order, and of two blocks unless a semaphore gives them one. */
static bool not_landed(const struct cell *cell, uint64_t stamp, bool both_atomic) {
    if (!cell->write_under_way) return false;
    if (same_owner(cell->write, stamp)) return !both_atomic;
    return block_order_knows(simt_worker, simt_self, cell->write, cell->write_clock);
}

static __attribute__((noinline, cold)) void report_not_landed(uintptr_t address, enum access_kind kind, const void *pc,
                                                              const struct cell *cell) {
    uint32_t store_pc = cell->write_pc;
    bool same_block = same_owner(cell->write, simt_self->stamp);
    const struct launch *launch = simt_worker->launch;
    unsigned number = stamp_thread(cell->write);
    struct uint3 issuer = index_in(launch->block, index_of_number(launch, number));
    struct uint3 block = index_in(launch->grid, stamp_block(cell->write) + rank_of_number(launch, number));
    unlock_sector(simt_worker);
    simt_fail(pc, cudaErrorLaunchFailure,
              "%s %s, to which the bulk copy issued at %s by thread (%u,%u,%u) of block (%u,%u,%u) may not have written yet%s: "
              "its thread must wait for it by cp.async.bulk.wait_group without .read, and %s; .read says only that shared "
              "memory has been read",
              only_reads(kind)       ? "read of"
              : kind == ACCESS_WRITE ? "write to"
                                     : "atomic operation on",
              describe_address(address).text, source_line(absolute_pc(store_pc)), XYZ(issuer), XYZ(block),
              same_block ? "" : ", though a semaphore says that it comes first",
              same_block ? "this thread must meet it after that" : "only then may the semaphore be raised");
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
        simt_fail(__builtin_return_address(0), cudaErrorLaunchFailure,
                  "__ldg() reads %s, which this kernel has written at %s: its cache may still hold the old value, so it is for "
                  "memory that the kernel only reads",
                  describe_address(memory->start + i).text, source_line(absolute_pc(cell.write_pc)));
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
    bool same_time = same_owner(cell->read, stamp) && cell->read_clock >= simt_worker->shadow.barrier_clock;
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
static inline __attribute__((always_inline)) void note_read(struct cell *cell, uint64_t stamp, bool shared, const void *pc) {
    uint64_t read = cell->read;
    if (!shared && (read & READ_BY_BLOCKS) != 0 && same_launch(read, stamp)) return;
    if (shared && (read & READ_VOLATILE) != 0) {
        cell->read = stamp;
    } else if (same_owner(read, stamp) && cell->read_clock >= simt_worker->shadow.barrier_clock) {
        if ((read & READ_BY_WARPS) != 0) return;
        unsigned thread = stamp_thread(read), self = stamp_thread(stamp);
        uint64_t flags = read & STAMP_FLAGS;
        if (thread / WARP_SIZE != self / WARP_SIZE)
            flags |= READ_BY_WARPS;
        else if (ordered_in_warp(warp_numbered(self), thread % WARP_SIZE, cell->read_clock, self % WARP_SIZE))
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

static inline void on_read(struct cell *cell, uintptr_t address, uint64_t stamp, bool marked, bool shared, bool all_written,
                           const void *pc) {
    uint64_t write = cell->write;
    if (shared ? same_owner(write, stamp) : same_launch(write, stamp)) {
        if ((write & WRITE_PENDING) != 0 && shared) {
            report_pending(address, pc, cell->write_pc);
            return;
        }
        bool meant =
            marked && (write & WRITE_MARKED) != 0 && !((write & WRITE_VOLATILE) != 0 && volatile_lanes(write, stamp, shared));
        if (meant && (cell->write_scope | simt_self->scope) != 0 && block_order_apart(cell, stamp)) {
            report_race(simt_self, address, ACCESS_READ, pc, write, cell->write_pc, true, NOT_ATOMIC);
            return;
        }
        if (!meant && unordered(write, cell->write_clock, stamp)) {
            if (!suspect_read(cell, address, stamp, shared, pc)) {
                report_race(simt_self, address, ACCESS_READ, pc, write, cell->write_pc, true,
                            both_update(cell, ACCESS_READ, pc));
                return;
            }
            marked = false; /* to be noted */
        } else if (!shared && not_landed(cell, stamp, meant)) {
            report_not_landed(address, ACCESS_READ, pc, cell);
            return;
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
        bool both_marked = marked && (write & WRITE_MARKED) != 0;
        if (both_marked && (cell->write_scope | simt_self->scope) != 0 && block_order_apart(cell, stamp)) {
            report_race(simt_self, address, kind, pc, write, cell->write_pc, true, NOT_ATOMIC);
            return;
        }
        if (!both_marked && unordered(write, cell->write_clock, stamp)) {
            if (!suspect_write(cell, address, stamp, marked, shared, false, pc)) {
                report_race(simt_self, address, kind, pc, write, cell->write_pc, true, both_update(cell, kind, pc));
                return;
            }
            races_with_write = true;
        } else if (!shared && not_landed(cell, stamp, both_marked)) {
            report_not_landed(address, kind, pc, cell);
            return;
        }
    }
    if (shared ? same_owner(read, stamp) : same_launch(read, stamp)) {
        bool was_volatile = shared && (read & READ_VOLATILE) != 0;
        races_with_read = was_volatile ? kind != ACCESS_ATOMIC && volatile_lanes(read, stamp, shared) &&
                                             unordered(read, cell->read_clock, stamp)
                                       : readers_unordered(read, cell->read_clock, stamp);
        if (races_with_read && !suspect_write(cell, address, stamp, marked, shared, true, pc)) {
            report_race(simt_self, address, kind, pc, read, line_of_reader(cell, stamp), false, both_update(cell, kind, pc));
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
    if (!after_plain_store) cell->write_place = relative_pc(pc);
    if (marked && __builtin_expect(simt_self->scope != 0, 0)) {
        cell->write_scope = simt_self->scope;
        block_order_note_narrow(simt_self->home, simt_self);
    }
}

static inline __attribute__((always_inline)) void on_access(struct cell *cell, uintptr_t address, uint64_t stamp,
                                                            enum access_kind kind, bool marked, bool shared, bool all_written,
                                                            const void *pc) {
    if (!shared && __builtin_expect(simt_worker->launch->contested, 0)) streams_judge(cell, address, kind, marked, pc);
    if (only_reads(kind)) {
        on_read(cell, address, stamp, marked, shared, all_written, pc);
        return;
    }
    /* An atomic operation reads what it updates. */
    uint64_t write = cell->write;
    if (kind == ACCESS_ATOMIC && (shared ? !same_owner(write, stamp) : write == 0 && !all_written))
        note_unwritten(address, shared, pc);
    on_write(cell, address, stamp, kind, marked, shared, pc);
}

/* The bytes of a word have cells of their own from now on. */
static __attribute__((noinline)) void split(struct cell *word, struct cell own[4]) {
    for (int i = 0; i < 4; i++) own[i] = *word;
    SIMT_PAUSE(word_copied);
    word->read = 0;                            /* so that no read of the word is settled */
    atomic_thread_fence(memory_order_release); /* bytes_are_settled() holds no lock */
    word->split = 1;
}

/* Some bytes of a word, or all of one that is split. */
static __attribute__((noinline)) void on_bytes(const struct shadowed *memory, size_t offset, uintptr_t address, size_t bytes,
                                               uint64_t stamp, enum access_kind kind, bool marked, const void *pc) {
    struct cell *word = &memory->cells[offset / 4], *own = byte_cells(memory->cells, memory->bytes, offset / 4);
    if (!word->split) unsettle(memory->settled, offset), split(word, own);
    simt_worker->shadow.access_width = 1;
    for (size_t i = 0; i < bytes; i++)
        on_access(&own[offset % 4 + i], address + i, stamp, kind, marked, memory->shared, memory->all_written, pc);
    simt_worker->shadow.access_width = 4;
    if (!only_reads(kind)) word->write = stamp; /* readers of `write` only test whether it is set */
}

static inline void on_words(const struct shadowed *memory, size_t offset, uintptr_t address, size_t bytes, uint64_t stamp,
                            enum access_kind kind, bool marked, const void *pc) {
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

/* Is each word of the sector settled for whoever reads, as the one is that has just been read? From the last one on: readers
 * come from the first one on. */
static inline void settle_sector(const struct shadowed *memory, size_t offset, uint64_t stamp) {
    const struct worker *worker = simt_worker;
    size_t sector = offset / SETTLED_BYTES;
    const struct cell *first = &memory->cells[sector * SETTLED_BYTES / 4], *cell = first + SETTLED_BYTES / 4;
    const uint64_t several = memory->shared ? READ_BY_WARPS : READ_BY_BLOCKS;
    if ((memory->cells[offset / 4].read & several) == 0 || (sector + 1) * SETTLED_BYTES > memory->bytes) return;
    while (cell-- > first)
        if ((cell->read & several) == 0 ||
            !shadow_read_is_settled(cell, stamp, worker, simt_self->clock, !memory->shared, memory->all_written))
            return;
    uint64_t number = memory->shared ? worker->shadow.settled_shared : worker->shadow.settled_global;
    if (number != NEVER_SETTLED) __atomic_store_n(&memory->settled[sector], number, __ATOMIC_RELAXED);
}

void shadow_access(const struct shadowed *memory, size_t offset, uintptr_t address, size_t bytes, enum access_kind kind,
                   bool marked, const void *pc) {
    struct worker *worker = simt_worker;
    uint64_t stamp = simt_self->stamp;
    bool reads = only_reads(kind) && !marked && (offset | bytes) % 4 == 0;
    uint64_t number = memory->shared ? worker->shadow.settled_shared : worker->shadow.settled_global;
    if (reads && offset % SETTLED_BYTES + bytes <= SETTLED_BYTES && sector_is_settled(memory->settled, offset, number)) return;
    if (memory->shared) {
        stamp = stamp_in_shared(stamp, worker);
        if (!only_reads(kind)) unsettle(memory->settled, offset), unsettle(memory->settled, offset + bytes - 1);
        on_words(memory, offset, address, bytes, stamp, kind, marked, pc);
        if (reads) settle_sector(memory, offset, stamp);
        return;
    }
    if (kind == ACCESS_READ && !marked && bytes_are_settled(memory, offset, bytes, stamp)) return;
    while (bytes > 0) {
        size_t in_sector = LOCKED_SECTOR - address % LOCKED_SECTOR < bytes ? LOCKED_SECTOR - address % LOCKED_SECTOR : bytes;
        lock_sector(worker, address);
        if (!only_reads(kind)) unsettle(memory->settled, offset);
        on_words(memory, offset, address, in_sector, stamp, kind, marked, pc);
        if (reads) settle_sector(memory, offset, stamp);
        unlock_sector(worker);
        offset += in_sector, address += in_sector, bytes -= in_sector;
    }
}

/* An asynchronous copy into this shared memory begins or ends. */
void shadow_pending(struct worker *worker, size_t shared_offset, size_t bytes, bool pending) {
    for (size_t word = shared_offset / 4; word < (shared_offset + bytes) / 4; word++) {
        struct cell *cell = &worker->shared.cells[word], *end = cell + 1;
        if (cell->split) cell = byte_cells(worker->shared.cells, SHARED_BYTES_MAX, word), end = cell + 4;
        for (; cell < end; cell++) {
            cell->write = pending ? cell->write | WRITE_PENDING : stamp_in_shared(simt_self->stamp, worker);
            if (!pending) cell->write_clock = simt_self->clock;
        }
    }
}

/* When it lands, the wait for it is what other threads must know of. */
void shadow_under_way(struct worker *worker, const struct thread *issuer, uintptr_t address, size_t bytes, bool under_way) {
    const struct allocation *memory = memory_find(address);
    if (memory == NULL) return;
    lock_sector(worker, address);
    for (size_t i = address - memory->start; i < address - memory->start + bytes && i < memory->bytes; i++) {
        struct cell *word = &memory->cells[i / 4];
        if (!word->split && i % 4 != 0) continue;
        struct cell *cell = word->split ? &byte_cells(memory->cells, memory->bytes, i / 4)[i % 4] : word;
        if ((cell->write & ~STAMP_FLAGS) != issuer->stamp || (!under_way && !cell->write_under_way)) continue;
        cell->write_under_way = under_way;
        if (!under_way) cell->write_clock = issuer->clock;
    }
    unlock_sector(worker);
}

/* Sums of floating numbers differ with the order of their addends. Who waits by ld.acquire until another block has added wants an
 * order, and a relaxed operation gives none (PTX, memory consistency model: a release pattern begins with a release or a fence). */
void shadow_judge_sum(uintptr_t address, size_t bytes, const void *pc) {
    const struct worker *worker = simt_worker;
    const struct launch *launch = worker->launch;
    const struct allocation *memory = memory_find(address);
    if (memory == NULL || !worker->async.on || !launch->has_semaphores || launch->fenced) return;
    for (size_t i = address - memory->start; i < address - memory->start + bytes && i < memory->bytes; i += 4) {
        lock_sector(simt_worker, memory->start + i);
        struct cell cell = memory->cells[i / 4];
        unlock_sector(simt_worker);
        if (!same_launch(cell.write, simt_self->stamp) || same_owner(cell.write, simt_self->stamp)) continue;
        if ((cell.write & WRITE_MARKED) == 0 || !block_order_is_meant(worker, simt_self, cell.write, cell.write_clock))
            continue;
        simt_fail(
            pc, cudaErrorLaunchFailure,
            "addition to %s in a turn that block (%u,%u,%u) has passed on by a relaxed addition, which releases nothing: what "
            "that block adds at %s may come later, and the sum then differs; raise the semaphore by red.release",
            describe_address(memory->start + i).text, XYZ(index_in(launch->grid, stamp_block(cell.write))),
            source_line(absolute_pc(cell.write_pc)));
    }
}
