/* The rules of visibility, with the numbers that docs/simulated-device-inside.md gives them. */
#include "async_shadow.h"

#include "device_memory.h"
#include "judge.h"

#include <sys/mman.h>

/* ---- what threads know --------------------------------------------------------------------------------------------------- */

static void join(uint32_t *restrict into, const uint32_t *restrict from, unsigned width) {
    for (unsigned i = 0; i < width; i++) into[i] = from[i] > into[i] ? from[i] : into[i];
}

/* Before the first instruction of Hopper only barriers of the block and warp collectives have ordered threads. */
static void start_rows(struct worker *worker) {
    struct async_shadow *shadow = worker->async.shadow;
    FOR_EACH_THREAD (thread, worker) {
        unsigned t = thread->linear;
        uint32_t *row = row_of(thread), *block = row + worker->threads[0].number;
        const struct warp *warp = &worker->warps[t / WARP_SIZE];
        memset(row, 0, shadow->width * sizeof *row);
        for (unsigned u = 0; u < shadow->threads; u++) block[u] = worker->shadow.barrier_clock;
        for (unsigned lane = 0; lane < WARP_SIZE && t / WARP_SIZE * WARP_SIZE + lane < shadow->threads; lane++) {
            uint32_t *known = &block[t / WARP_SIZE * WARP_SIZE + lane];
            if (warp->known_to_all[lane] > *known) *known = warp->known_to_all[lane];
            if (warp->has_partial && warp->known[t % WARP_SIZE][lane] > *known) *known = warp->known[t % WARP_SIZE][lane];
        }
        FOR_EACH_BLOCK (of, worker)
            for (unsigned r = 0; r < MOST_READERS; r++) row[reads_column(of->async.shadow, r)] = of->async.shadow->groups[r];
    }
}

static void start_acquirers(struct async_shadow *shadow) {
    shadow->acquirer_count = 0;
    for (unsigned a = 0; a < MOST_ACQUIRERS; a++) {
        struct acquirer *acquirer = &shadow->acquirers[a];
        acquirer->count = acquirer->listed = 0;
        for (unsigned b = 0; b < ACQUIRED_BUCKETS; b++) acquirer->newest[b] = -1;
    }
}

static void prepare(struct worker *worker) {
    struct async_shadow *shadow = worker->async.shadow;
    const struct launch *launch = worker->launch;
    if (shadow == NULL) {
        shadow = mmap(NULL, sizeof *shadow, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (shadow == MAP_FAILED) simt_fail(NULL, cudaErrorMemoryAllocation, "no memory for the checks of asynchronous copies");
        memory_expect_notes(shadow, sizeof *shadow);
        worker->async.shadow = shadow;
    }
    unsigned threads = launch->threads, numbers = launch->stride != 0 ? launch->cluster * launch->stride : threads;
    unsigned width = 2 * numbers + launch->cluster * (MOST_TRANSACTIONS + MOST_READERS + ROUNDS) + MOST_ACQUIRERS;
    if (threads != shadow->threads || width != shadow->width) {
        free(shadow->rows);
        shadow->rows = resize_or_die(NULL, ((size_t)threads + 1) * width * sizeof *shadow->rows);
        shadow->scratch = shadow->rows + (size_t)threads * width;
        shadow->threads = threads, shadow->width = width;
    }
    shadow->numbers = numbers, shadow->rank = worker->cluster.rank, shadow->ranks = launch->cluster;
    memset(shadow->writes, 0, sizeof shadow->writes);
    memset(shadow->last, 0, sizeof shadow->last);
    shadow->store_readers = 0;
    if (launch->cluster > 1) memset(shadow->remotes, 0, sizeof shadow->remotes);
    start_acquirers(shadow);
    for (unsigned r = 0; r < MOST_READERS; r++) shadow->groups[r]++; /* what an earlier block has left open is over */
}

void async_start(struct worker *worker) {
    if (worker->async.on) return;
    FOR_EACH_BLOCK (of, worker) prepare(of);
    FOR_EACH_BLOCK (of, worker) start_rows(of);
    FOR_EACH_BLOCK (of, worker) of->async.on = true, shadow_next_settled(of);
}

/* A guess that accuses nobody: what came before is known and fenced. */
void async_forget(struct worker *worker) {
    struct async_shadow *shadow = worker->async.shadow;
    if (worker->async.on) shadow->ages++;
    FOR_EACH_THREAD (thread, worker)
        for (unsigned u = 0; worker->async.on && u < 2 * shadow->numbers; u++) row_of(thread)[u] = 1;
}

/* What the thread does from now on is of a later clock. One that has reached its end stays: less is then found. */
static uint32_t advance(struct thread *thread) {
    if (thread->clock < STAMP_CLOCK_MAX) return ++thread->clock;
    return STAMP_CLOCK_BITS < 32 ? thread->clock + 1 : thread->clock;
}

void async_release(struct worker *worker, struct thread *thread, uint32_t *row) {
    uint32_t next = advance(thread);
    join(row, row_of(thread), worker->async.shadow->width);
    if (row[thread->number] < next) row[thread->number] = next;
}

void async_acquire(struct worker *worker, struct thread *thread, const uint32_t *row) {
    join(row_of(thread), row, worker->async.shadow->width);
}

void async_fence(struct worker *worker, struct thread *thread) {
    unsigned numbers = worker->async.shadow->numbers;
    uint32_t *row = row_of(thread);
    row[thread->number] = advance(thread);
    join(row + numbers, row, numbers);
}

/* Each learns what any of them knew, and what all of them did. */
void async_meet(struct worker *worker, struct thread *first, unsigned lanes) {
    struct async_shadow *shadow = worker->async.shadow;
    memset(shadow->scratch, 0, shadow->width * sizeof *shadow->scratch);
    FOR_EACH_LANE (lane, lanes) join(shadow->scratch, row_of(&first[lane]), shadow->width);
    FOR_EACH_LANE (lane, lanes) shadow->scratch[first[lane].number] = first[lane].clock;
    FOR_EACH_LANE (lane, lanes) memcpy(row_of(&first[lane]), shadow->scratch, shadow->width * sizeof *shadow->scratch);
}

void async_join_all(struct worker *worker) {
    const struct async_shadow *shadow = worker->async.shadow;
    memset(shadow->scratch, 0, shadow->width * sizeof *shadow->scratch);
    FOR_EACH_THREAD (thread, worker) join(shadow->scratch, row_of(thread), shadow->width);
}

void async_meet_all(struct worker *worker) {
    const struct async_shadow *shadow = worker->async.shadow;
    async_join_all(worker);
    FOR_EACH_THREAD (thread, worker) shadow->scratch[thread->number] = thread->clock;
    FOR_EACH_THREAD (thread, worker) memcpy(row_of(thread), shadow->scratch, shadow->width * sizeof *shadow->scratch);
}

const uint32_t *async_row_of_thread(struct worker *worker, struct thread *thread) {
    struct async_shadow *shadow = worker->async.shadow;
    memcpy(shadow->scratch, row_of(thread), shadow->width * sizeof *shadow->scratch);
    shadow->scratch[thread->number] = UINT32_MAX;
    return shadow->scratch;
}

/* A lane knows of itself, too, what the others do not know: what counts is what the others know. */
const uint32_t *async_row_of_warp(struct worker *worker, struct thread *first_lane) {
    const unsigned width = worker->async.shadow->width;
    uint32_t *restrict least = worker->async.shadow->scratch;
    memset(least, 0xff, width * sizeof *least);
    for (unsigned lane = 0; lane < WARP_SIZE; lane++) {
        uint32_t *restrict row = row_of(&first_lane[lane]), own = row[first_lane[lane].number];
        row[first_lane[lane].number] = UINT32_MAX;
        for (unsigned i = 0; i < width; i++) least[i] = row[i] < least[i] ? row[i] : least[i];
        row[first_lane[lane].number] = own;
    }
    return least;
}

/* ---- faults ---------------------------------------------------------------------------------------------------------------- */

static struct words name_of(size_t offset) { return describe_address((uintptr_t)simt_worker->shared.start + offset); }

static const char *const reader_names[] = {"wgmma, as A,", "wgmma, as B,", "the store of a tensor", "the bulk store",
                                           "the bulk reduction"};

static const char *copy_name(unsigned swizzle) { return swizzle == ANY_SWIZZLE ? "bulk copy" : "copy of a tensor"; }

/* What the running thread has waited for instead of the copy's phase, if for anything there. */
static const char *last_wait(const struct async_write *copy) {
    char *words;
    if (simt_self->waited.pc == NULL || simt_self->waited.barrier != copy->barrier) return "";
    if (asprintf(&words, " (the last wait of this thread there, with parity %u at %s, was for an earlier phase)",
                 simt_self->waited.parity, source_line(simt_self->waited.pc)) < 0)
        abort();
    return words;
}

static void report_reader(size_t offset, const char *verb, const void *pc, const struct async_read *read, unsigned reader) {
    bool wgmma = reader < WARP_READERS;
    simt_fail(pc, cudaErrorLaunchFailure, "%s %s while the %s issued at %s may still read it: %s", verb, name_of(offset).text,
              wgmma ? "wgmma" : reader_names[read->what] + strlen("the "), source_line(absolute_pc(read->pc)),
              wgmma
                  ? "its warp must wait for it (wgmma.wait_group), and this thread must meet that warp at a barrier after that"
                  : "its thread must wait for it (cp.async.bulk.wait_group.read), and this thread must meet it at a barrier "
                    "after that");
}

/* ---- accesses -------------------------------------------------------------------------------------------------------------- */

/* Rules 2 and 4: whoever accesses what a copy has written must have waited, or have met who has. */
static void judge_after_copy(const uint32_t *row, size_t offset, const char *verb, const void *pc) {
    const struct async_shadow *shadow = simt_worker->async.shadow;
    const struct async_write *copy = &shadow->writes[offset / UNIT];
    if (!shadow->last[offset / 4] || (!copy->pending && row[phase_column(shadow, copy->barrier)] >= copy->phase)) return;
    simt_fail(pc, cudaErrorLaunchFailure,
              copy->pending
                  ? "%s %s while the %s into it, issued at %s, is under way: wait for the phase of its mbarrier first, "
                    "by the right parity%s"
                  : "%s %s, which the %s issued at %s has written, but this thread has neither waited for the phase "
                    "of its mbarrier nor met a thread that has%s",
              verb, name_of(offset).text, copy_name(copy->swizzle), source_line(absolute_pc(copy->pc)), last_wait(copy));
}

/* Rule 5: whoever writes must know that the asynchronous readers are done. */
static void judge_after_readers(const uint32_t *row, size_t offset, const char *verb, const void *pc) {
    const struct async_shadow *shadow = simt_worker->async.shadow;
    unsigned warps = (shadow->threads + WARP_SIZE - 1) / WARP_SIZE;
    for (unsigned r = 0; r < WARP_READERS + shadow->store_readers; r = r + 1 == warps ? WARP_READERS : r + 1) {
        const struct async_read *read = &shadow->reads[offset / UNIT][r];
        if (read->group > row[reads_column(shadow, r)]) report_reader(offset, verb, pc, read, r);
    }
}

void async_judge(size_t offset, size_t bytes, enum access_kind kind, const void *pc) {
    struct async_shadow *shadow = simt_worker->async.shadow;
    const uint32_t *row = row_of(simt_self);
    for (size_t at = offset / 4 * 4; at < offset + bytes; at += 4) {
        judge_after_copy(row, at, only_reads(kind) ? "read of" : "write to", pc);
        if (only_reads(kind)) continue;
        judge_after_readers(row, at, "write to", pc);
        shadow->last[at / 4] = false;
    }
}

/* Rule 1: of an ordinary store the async proxy sees nothing before its issuer knows of it, and a fence lies between. */
static void judge_after_store(const uint32_t *row, const struct cell *cell, size_t offset, const char *what, const void *pc) {
    const struct async_shadow *shadow = simt_worker->async.shadow;
    if (!same_owner(cell->write, stamp_in_shared(0, simt_worker))) return;
    unsigned writer = stamp_thread(cell->write);
    struct uint3 index = index_in(simt_worker->launch->block, index_of_number(simt_worker->launch, writer));
    if (cell->write_clock >= row[writer])
        simt_fail(NULL, cudaErrorLaunchFailure,
                  "race on %s: %s at %s accesses it; thread (%u,%u,%u) of the %s block wrote it at %s, and nothing orders the "
                  "two: a barrier is missing between them",
                  name_of(offset).text, what, source_line(pc), XYZ(index),
                  rank_of_number(simt_worker->launch, writer) == simt_worker->cluster.rank ? "same" : "cluster's other",
                  source_line(absolute_pc(cell->write_pc)));
    else if (cell->write_clock >= row[fenced_column(shadow, writer)])
        simt_fail(pc, cudaErrorLaunchFailure,
                  "%s accesses %s through the async proxy, and thread (%u,%u,%u) wrote it by an ordinary store at %s: no "
                  "fence.proxy.async by a thread that knew of the store stands between them. Let each thread that stores "
                  "execute it before the barrier",
                  what, name_of(offset).text, XYZ(index), source_line(absolute_pc(cell->write_pc)));
}

static void judge_after_stores(const uint32_t *row, size_t offset, const char *what, const void *pc) {
    const struct cell *word = &simt_worker->shared.cells[offset / 4];
    if (simt_worker->async.shadow->last[offset / 4]) return;
    const struct cell *cells = word->split ? byte_cells(simt_worker->shared.cells, SHARED_BYTES_MAX, offset / 4) : word;
    for (int i = 0; i < (word->split ? 4 : 1); i++) judge_after_store(row, &cells[i], offset + (size_t)i, what, pc);
}

const char *swizzle_name(unsigned swizzle) {
    return swizzle < 2 ? "no" : swizzle == 2 ? "the 32-byte" : swizzle == 4 ? "the 64-byte" : "the 128-byte";
}

/* Rule 10, as far as copies have written the tile. */
static void judge_swizzle(size_t offset, unsigned swizzle, const char *what, const void *pc) {
    const struct async_write *write = &simt_worker->async.shadow->writes[offset / UNIT];
    if (write->swizzle == swizzle || write->swizzle == ANY_SWIZZLE || swizzle == ANY_SWIZZLE) return;
    simt_fail(pc, cudaErrorLaunchFailure,
              "%s reads %s in %s swizzle, but the copy of a tensor at %s has written it in %s swizzle: the product would take "
              "elements of other columns",
              what, name_of(offset).text, swizzle_name(swizzle), source_line(absolute_pc(write->pc)),
              swizzle_name(write->swizzle));
}

void async_judge_read(const uint32_t *row, size_t offset, unsigned reader, unsigned swizzle, enum async_reader what,
                      const void *pc) {
    struct async_shadow *shadow = simt_worker->async.shadow;
    const char *name = reader_names[what];
    for (size_t at = offset; at < offset + UNIT; at += 4) {
        bool written =
            shadow->last[at / 4] || same_owner(simt_worker->shared.cells[at / 4].write, stamp_in_shared(0, simt_worker));
        if (!written)
            simt_fail(pc, cudaErrorLaunchFailure,
                      "%s reads %s, which nobody has written in this block: does its descriptor or swizzle match how the tile "
                      "was written?",
                      name, name_of(at).text);
        judge_after_copy(row, at, "asynchronous read of", pc);
        judge_after_stores(row, at, name, pc);
    }
    if (shadow->last[offset / 4]) judge_swizzle(offset, swizzle, name, pc);
    shadow->reads[offset / UNIT][reader] =
        (struct async_read){.group = shadow->groups[reader] + 1, .pc = relative_pc(pc), .what = what};
}

void async_judge_write(const uint32_t *row, size_t offset, unsigned barrier, uint32_t phase, unsigned swizzle, const void *pc) {
    struct async_shadow *shadow = simt_worker->async.shadow;
    const char *name = swizzle == ANY_SWIZZLE ? "the bulk copy" : "the copy of a tensor";
    const char *verb = swizzle == ANY_SWIZZLE ? "bulk copy into" : "copy of a tensor into";
    judge_after_readers(row, offset, verb, pc);
    for (size_t at = offset; at < offset + UNIT; at += 4) {
        judge_after_copy(row, at, verb, pc);
        judge_after_stores(row, at, name, pc);
        shadow->last[at / 4] = true;
    }
    shadow->writes[offset / UNIT] = (struct async_write){phase, relative_pc(pc), (uint16_t)barrier, (uint8_t)swizzle, true};
}

void async_landed(struct worker *worker, const struct thread *issuer, size_t offset, size_t bytes) {
    for (size_t at = offset; at < offset + bytes; at += UNIT) worker->async.shadow->writes[at / UNIT].pending = false;
    for (size_t word = offset / 4; word < (offset + bytes) / 4; word++) {
        struct cell *cell = &worker->shared.cells[word], *own = byte_cells(worker->shared.cells, SHARED_BYTES_MAX, word);
        for (int i = 0; i < (cell->split ? 5 : 1); i++) {
            struct cell *landed = i == 0 ? cell : &own[i - 1];
            landed->write = stamp_in_shared(issuer->stamp, worker);
            landed->write_clock = 0; /* async_judge() knows who may access it */
        }
    }
}
