/* Races that a card tolerates, where SIMT_STRICT does not forbid them: suspected at the access, judged when its store is seen.
 *
 * Invariant: a race is told and lets the kernel go on only where whoever reads finds a value that was meant: the word lies in
 * global memory, its stores have at most 8 bytes, and either all of them in this launch are atomic (or volatile), or they
 * store one value. Two flags of the cell's write stamp say that neither is so. A barrier of the block begins anew for the
 * races inside of it. Whoever took part in a tolerated race stays known, as a reader: a later store that breaks the rule
 * races with it again, and then is a fault.
 *
 * A plain store of one value is still read before or after, as the order has it. That is meant only where the read is a test
 * after which its thread may store this value itself (a label, a flag): a line that some thread has read by, before it stored to
 * the word. Where no thread has done that by the end of the block, it is a fault.
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

/* Lines of reads after which the same thread has stored to the word, wherever in the program. */
enum { TESTS = 256 };
static _Atomic uint32_t tests[TESTS];

static void note_test(uint32_t line) {
    for (unsigned i = 0; i < TESTS; i++) {
        _Atomic uint32_t *place = &tests[(line + i) % TESTS];
        uint32_t none = 0;
        if (atomic_compare_exchange_strong(place, &none, line) || none == line) return;
    }
}

static bool is_test(uint32_t line) {
    for (unsigned i = 0; i < TESTS; i++) {
        uint32_t there = atomic_load(&tests[(line + i) % TESTS]);
        if (there == 0 || there == line) return there != 0;
    }
    return true; /* perhaps: there was no room */
}

/* NULL: there is no room. */
static struct suspect *add_suspect(struct cell *cell, uintptr_t address, const void *pc) {
    struct worker *worker = simt_worker;
    if (worker->shadow.suspect_count == sizeof worker->shadow.notes->suspects / sizeof *worker->shadow.notes->suspects)
        return NULL;
    struct suspect *suspect = &worker->shadow.notes->suspects[worker->shadow.suspect_count++];
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
    if (((cell->read ^ cell->write) & ~STAMP_FLAGS) == 0) note_test(cell->read_pc);
    suspect->races = suspect->reads = true;
    suspect->updates = both_update(cell, ACCESS_READ, pc);
    suspect->stamp = cell->write;
    suspect->other_pc = cell->write_pc;
    return true;
}

/* Has the running thread, which is about to store to the word, read it by the line that the cell names? It is the reader that the
 * cell names, or one of several by that line: the word was its latest access. */
static bool has_tested(const struct cell *cell, uint64_t stamp) {
    bool several = (cell->read & STAMP_FLAGS) != 0 && !cell->read_elsewhere;
    return (cell->read & ~STAMP_FLAGS) == stamp || (several && simt_self->tested);
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
    if (!with_read) note_test(cell->write_pc); /* the earlier writer will be known as a reader of this line */
    if (with_read && has_tested(cell, stamp)) note_test(cell->read_pc);
    struct suspect *suspect = add_suspect(cell, address, pc);
    if (written && !marked && !add_comparison(suspect)) return false;
    if (suspect == NULL) return true;
    suspect->races = true;
    suspect->updates = both_update(cell, ACCESS_WRITE, pc);
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
                    false, false);
    unlock_sector(simt_worker);
    return races;
}

static void tell_tolerated(const struct suspect *suspect) {
    struct words what = describe_address(suspect->address);
    char *line = source_line(suspect->pc), *other_line = line_or(suspect->other_pc, "another line");
    char why[400];
    if (!suspect->updates || strcmp(line, other_line) != 0 || source_update(line, why, sizeof why) != UPDATE)
        snprintf(
            why, sizeof why,
            "a card may give the right result, because all stores to it so far %s: the reader finds the word as it was before "
            "or after a store",
            suspect->atomic ? "are atomic" : "store one value");
    if (suspect->reads || suspect->other_reads)
        simt_warn(suspect->pc,
                  "race on %s: a thread reads it at %s, another one stores to it at %s, and nothing orders the two; %s",
                  what.text, suspect->reads ? line : other_line, suspect->reads ? other_line : line, why);
    else
        simt_warn(suspect->pc,
                  "race on %s: several threads store the same value to it, at %s and at %s, and nothing orders them", what.text,
                  line, other_line);
    free(line), free(other_line);
}

static void report(const struct suspect *suspect) {
    report_race(suspect->thread, suspect->address, suspect->reads ? ACCESS_READ : ACCESS_WRITE, suspect->pc, suspect->stamp,
                suspect->other_pc, !suspect->other_reads, suspect->updates);
}

/* Is it a read that nothing shows to be a test so far? */
static bool is_doubtful(const struct suspect *suspect) {
    uint32_t line = suspect->reads ? relative_pc(suspect->pc) : suspect->other_pc;
    return !suspect->atomic && (suspect->reads || suspect->other_reads) && line != 0 && !is_test(line);
}

void shadow_settle_doubt(struct worker *worker) {
    struct suspect *doubt = &worker->shadow.notes->doubt;
    if (doubt->thread == NULL) return;
    if (is_doubtful(doubt))
        report(doubt);
    else if (!simt_warned(doubt->pc))
        tell_tolerated(doubt);
    doubt->thread = NULL;
}

void shadow_settle_suspects(struct worker *worker) {
    unsigned count = worker->shadow.suspect_count;
    worker->shadow.suspect_count = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct suspect *suspect = &worker->shadow.notes->suspects[i];
        uint32_t now = 0;
        memcpy(&now, (const void *)suspect->address, suspect->width);
        if (suspect->compares && now != suspect->before) {
            if (!suspect->races && !note_mixed(suspect)) continue;
            if (suspect->races) report(suspect);
            break;
        }
        if (!suspect->races) continue;
        struct suspect *doubt = &worker->shadow.notes->doubt;
        if (!is_doubtful(suspect)) {
            if (!simt_warned(suspect->pc)) tell_tolerated(suspect);
        } else if (doubt->thread == NULL || !is_doubtful(doubt)) {
            *doubt = *suspect;
        }
    }
}
