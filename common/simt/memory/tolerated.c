/* Races that a card tolerates, where SIMT_STRICT does not forbid them: suspected at the access, judged when its store is seen.
 *
 * Invariant: a race is told and lets the kernel go on only where whoever reads finds a value that was meant: the word lies in
 * global memory, its stores have at most 8 bytes, and either all of them in this launch are atomic (or volatile), or they
 * store one value. Two flags of the cell's write stamp say that neither is so. A barrier of the block begins anew for the
 * races inside of it. Whoever took part in a tolerated race stays known, as a reader: a later store that breaks the rule
 * races with it again, and then is a fault.
 *
 * A hook comes before its store. So a suspect keeps what the word held, and is settled before anything else is stored: at the
 * next access that is judged, at a barrier and at the end of the block. */
#include "judge.h"

#include "device_memory.h"
#include "sector_lock.h"

/* So many bytes at so odd a place are no one access for a card. Of the write that is judged. */
static bool is_wide(void) {
    size_t bytes = simt_self->judged_bytes;
    return simt_self->in_pieces || bytes > 8 || (bytes & (bytes - 1)) != 0 || simt_self->judged % bytes != 0;
}

static bool is_mixed(const struct cell *cell, uint64_t self_stamp, bool of_blocks) {
    if (of_blocks || !same_owner(cell->write, self_stamp)) return (cell->write & (WRITE_MIXED | WRITE_EVER_MIXED)) != 0;
    return cell->write_clock >= simt_worker->shadow.barrier_clock && (cell->write & WRITE_MIXED) != 0;
}

/* The hook comes before the store: what another worker's thread has noted may not be in memory yet, until that worker
 * has had the processor for a while or its thread has stored elsewhere. */
static void await_store(uint64_t stamp, uintptr_t address) {
    enum { NANOSECONDS = 20000, TRIES = 1000 };
    const struct launch *launch = simt_worker->launch;
    for (int i = 0; i < launch->worker_count; i++) {
        struct worker *other = launch->workers[i];
        if (other == simt_worker || other->launch != launch || other->shadow.owner != stamp_owner(stamp)) continue;
        const volatile struct thread *writer = &other->threads[index_of_number(launch, stamp_thread(stamp))];
        struct timespec pause = {.tv_nsec = NANOSECONDS};
        int64_t first = read_clock(other->processor_clock);
        for (int t = 0; t < TRIES && writer->state <= READY && address - writer->judged < writer->judged_bytes; t++) {
            if (read_clock(other->processor_clock) - first > NANOSECONDS) return;
            nanosleep(&pause, NULL);
        }
    }
}

/* NULL: there is no room. */
static struct suspect *add_suspect(struct cell *cell, uintptr_t address, const void *pc) {
    struct worker *worker = simt_worker;
    if (worker->shadow.suspect_count == sizeof worker->shadow.suspects / sizeof *worker->shadow.suspects) return NULL;
    struct suspect *suspect = &worker->shadow.suspects[worker->shadow.suspect_count++];
    *suspect =
        (struct suspect){.address = address, .width = worker->shadow.access_width, .pc = pc, .thread = simt_self, .cell = cell};
    suspect->atomic = (cell->write & WRITE_MARKED) != 0;
    return suspect;
}

static bool add_comparison(struct suspect *suspect) {
    if (suspect == NULL) return false;
    suspect->compares = true;
    if (shared_offset_of(simt_worker, suspect->address) >= SHARED_BYTES_MAX &&
        stamp_owner(suspect->cell->write) != simt_worker->shadow.owner)
        await_store(suspect->cell->write, suspect->address);
    memcpy(&suspect->before, (const void *)suspect->address, suspect->width);
    return true;
}

bool suspect_read(struct cell *cell, uintptr_t address, uint64_t stamp, bool shared, const void *pc) {
    if (simt_strict || shared || is_mixed(cell, stamp, false)) return false;
    struct suspect *suspect = add_suspect(cell, address, pc);
    if (suspect == NULL) return true; /* no room: 16 races of this access are noted already */
    suspect->races = suspect->reads = true;
    suspect->stamp = cell->write;
    suspect->other_pc = cell->write_pc;
    return true;
}

/* In shared memory only two stores of one value are tolerated. */
bool suspect_write(struct cell *cell, uintptr_t address, uint64_t stamp, bool marked, bool shared, bool with_read,
                   const void *pc) {
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

uint64_t mixed_by_write(struct cell *cell, uintptr_t address, uint64_t stamp, bool marked, bool races, const void *pc) {
    const uint64_t both = WRITE_MIXED | WRITE_EVER_MIXED;
    uint64_t write = cell->write;
    if (is_wide()) return both;
    if (!same_launch(write, stamp)) return 0;
    bool after_barrier = same_owner(write, stamp) && cell->write_clock < simt_worker->shadow.barrier_clock;
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
    if (races)
        report_race(suspect->thread, suspect->address, ACCESS_WRITE, suspect->pc, cell->read, line_of_reader(cell, stamp),
                    false);
    unlock_sector(simt_worker);
    return races;
}

static void tell_tolerated(const struct suspect *suspect) {
    struct words what = describe_address(suspect->address);
    char *line = source_line(suspect->pc), *other_line = line_or(suspect->other_pc, "another line");
    if (suspect->reads || suspect->other_reads)
        simt_warn(suspect->pc,
                  "race on %s: a thread reads it at %s, another one stores to it at %s, and nothing orders the two; a card may "
                  "give the right result, because %s: the reader finds the word as it was before or after a store",
                  what.text, suspect->reads ? line : other_line, suspect->reads ? other_line : line,
                  suspect->atomic ? "all stores to it so far are atomic" : "all stores to it so far store one value");
    else
        simt_warn(suspect->pc,
                  "race on %s: several threads store the same value to it, at %s and at %s, and nothing orders them", what.text,
                  line, other_line);
    free(line), free(other_line);
}

void shadow_settle_suspects(struct worker *worker) {
    unsigned count = worker->shadow.suspect_count;
    worker->shadow.suspect_count = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct suspect *suspect = &worker->shadow.suspects[i];
        uint32_t now = 0;
        memcpy(&now, (const void *)suspect->address, suspect->width);
        if (suspect->compares && now != suspect->before) {
            if (!suspect->races && !note_mixed(suspect)) continue;
            if (suspect->races)
                report_race(suspect->thread, suspect->address, ACCESS_WRITE, suspect->pc, suspect->stamp, suspect->other_pc,
                            !suspect->other_reads);
            break;
        }
        if (suspect->races && !simt_warned(suspect->pc)) tell_tolerated(suspect);
    }
}
