/* A race in words: who the other thread was, where both accesses stand, and what would order them.
 *
 * Invariant: a message says only what the cell holds. A cell keeps one reader, the last of several; when this is the thread
 * that now writes, `other_lines` may know where another one has read, and where it does not, no line is named. */
#include "judge.h"

#include "device_memory.h"
#include "sector_lock.h"

static const char *verb(enum access_kind kind) {
    return only_reads(kind) ? "reads" : kind == ACCESS_WRITE ? "writes" : "updates (atomically)";
}

/* Two accesses of one block between which the code has a barrier, though none was passed between them: the one further down
 * is of an earlier round of a loop than the other. Says so in `text`; false: it is not so. */
static bool explain_rounds(const void *pc, const void *other_pc, char *text, size_t room) {
    const struct worker *worker = simt_worker;
    if (worker->shadow.notes->last_barrier < 0) return false;
    const struct barrier_site *barrier = &worker->shadow.notes->barrier_sites[worker->shadow.notes->last_barrier];
    uintptr_t low = (uintptr_t)pc, high = (uintptr_t)other_pc, between = (uintptr_t)barrier->pc;
    bool this_is_later = low < high;
    if (!this_is_later) low = (uintptr_t)other_pc, high = (uintptr_t)pc;
    if (low >= between || between >= high) return false;
    snprintf(text, room,
             "the %s in line %d stands between the two lines, but not between the two accesses: %s access is of round %u of "
             "the loop, %s of round %u already; let all threads wait at the end of a round, too",
             barrier->place.what, barrier->place.line, this_is_later ? "the other thread's" : "this thread's", barrier->passed,
             this_is_later ? "this thread's" : "the other's", barrier->passed + 1);
    return true;
}

static bool was_passed(const struct shadow_notes *notes, const void *barrier) {
    for (unsigned i = 0; i < notes->barrier_site_count; i++)
        if (notes->barrier_sites[i].pc == barrier) return true;
    return false;
}

/* Two accesses of one block between which the code has a barrier where a part of the block waits, and which the thread of the
 * access further down has left out. Says so in `text`; false: it is not so. */
static bool explain_branch(const struct thread *self, const void *pc, const struct thread *other, const void *other_pc,
                           char *text, size_t room) {
    const struct worker *worker = simt_worker;
    bool self_is_further = (uintptr_t)pc > (uintptr_t)other_pc;
    const struct thread *further = self_is_further ? self : other;
    uintptr_t low = (uintptr_t)(self_is_further ? other_pc : pc), high = (uintptr_t)(self_is_further ? pc : other_pc);
    FOR_EACH_THREAD (waiting, worker) {
        uintptr_t between = (uintptr_t)waiting->last_pc;
        if (waiting->state != AT_BARRIER || low >= between || between >= high) continue;
        bool waits_too = further->state == AT_BARRIER && further->last_pc == waiting->last_pc;
        if (waits_too || was_passed(worker->shadow.notes, waiting->last_pc)) continue;
        snprintf(text, room,
                 "the %s in line %d stands between the two lines, but thread (%u,%u,%u) has left it out: is it in a branch "
                 "that only some threads take? All threads of a block must reach it",
                 waiting->place.what, waiting->place.line, XYZ(further->index));
        return true;
    }
    return false;
}

char *line_or(uint32_t pc, const char *unknown) { return pc != 0 ? source_line(absolute_pc(pc)) : strdup(unknown); }

static const char *cause_of(bool same_block, bool same_warp, bool same_line, bool both_write) {
    if (same_line && both_write && same_block)
        return "two threads reach one element by the same line: does an index leave its row, where a bounds check is "
               "missing? Do both threads compute the same index? If they are meant to meet there, let one of them store, "
               "or use an atomic operation";
    if (same_line && both_write)
        return "blocks run in any order, and two of them reach one element by the same line: does an index leave its "
               "row or its block's part, where a bounds check is missing? Is the block's or the head's number left out of "
               "it? If they are meant to meet there, use an atomic operation";
    if (!same_block && simt_worker->launch->has_semaphores)
        return "a semaphore must be raised after the earlier access, by a thread that has met the other one at a barrier "
               "since, and waited for before the later one, or before a barrier with the thread that waits";
    if (!same_block)
        return "blocks run in any order and cannot wait for one another: give each block its own output, use an atomic "
               "operation, or split the kernel in two";
    if (same_warp)
        return "put a __syncthreads() between the two accesses (the two threads are of one warp: a __syncwarp() is "
               "enough if no other warp uses the data)";
    if (simt_worker->async.on)
        return "a barrier is missing between the two: __syncthreads(), or an arrival at an mbarrier after the earlier access, "
               "and a wait for its phase before the later one";
    return "a __syncthreads() is missing between the two";
}

uint32_t line_of_reader(const struct cell *cell, uint64_t self_stamp) {
    if (!cell->read_elsewhere || (cell->read & ~STAMP_FLAGS) != self_stamp) return cell->read_pc;
    const struct other_line *other = other_line_of(cell);
    return other->cell == cell && other->owner == stamp_owner(cell->read) ? other->pc : 0;
}

bool both_update(const struct cell *cell, enum access_kind kind, const void *pc) {
    bool several = (cell->read & STAMP_FLAGS) != 0 && !cell->read_elsewhere;
    if (!only_reads(kind)) return kind == ACCESS_WRITE && several;
    return cell->read_pc == relative_pc(pc) && (several || ((cell->read ^ cell->write) & ~STAMP_FLAGS) == 0);
}

static bool explain_not_atomic(const char *line, const char *other_line, char *text, size_t room) {
    const struct shadow_notes *notes = simt_worker->shadow.notes;
    bool of_block = notes->apart_scope == SIMT_CTA;
    snprintf(text, room,
             "the access at %s has scope .%s%s, so it is not atomic with one of another block%s: use .gpu, as atomicAdd() has",
             notes->apart == APART_BY_SELF ? line : other_line, of_block ? "cta" : "cluster",
             of_block ? ", as atomicAdd_block() has" : "", of_block ? "" : " outside of the cluster");
    return true;
}

void report_race(const struct thread *self, uintptr_t address, enum access_kind kind, const void *pc, uint64_t stamp,
                 uint32_t other_pc, bool other_wrote, enum race race) {
    char who[120], text[800];
    unlock_sector(simt_worker);
    bool shared = shared_offset_of(simt_worker, address) < SHARED_BYTES_MAX;
    bool same_block = stamp_owner(stamp) == (shared ? simt_worker->shadow.shared_owner : simt_worker->shadow.owner);
    const struct launch *launch = simt_worker->launch;
    unsigned rank = rank_of_number(launch, stamp_thread(stamp));
    struct uint3 other = index_in(launch->block, index_of_number(launch, stamp_thread(stamp)));
    bool same_cluster = same_block && rank != self->home->cluster.rank;
    same_block = same_block && !same_cluster;
    bool same_warp = same_block && stamp_thread(stamp) / WARP_SIZE == self->number / WARP_SIZE;
    if (!same_block) {
        struct uint3 block = same_cluster ? worker_numbered(stamp_thread(stamp))->block_index
                                          : index_in(launch->grid, stamp_block(stamp) + rank);
        snprintf(who, sizeof who, "thread (%u,%u,%u) of block (%u,%u,%u)", XYZ(other), XYZ(block));
    } else if (stamp_thread(stamp) != self->number) {
        snprintf(who, sizeof who, "thread (%u,%u,%u) of the same block", XYZ(other));
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
    bool same_line = strcmp(line, other_line) == 0;
    enum update update = race == UPDATES && same_line && (same_block || !launch->has_semaphores)
                             ? source_update(line, text, sizeof text)
                             : NO_UPDATE;
    uint64_t self_stamp = shared ? stamp_in_shared(self->stamp, simt_worker) : self->stamp;
    bool explained_by_scope = !same_block && (race == NOT_ATOMIC ? explain_not_atomic(line, other_line, text, sizeof text)
                                                                 : block_order_explain(stamp, self_stamp, text, sizeof text));
    bool known = same_block && other_pc != 0 && !simt_worker->async.on, explained = explained_by_scope || update == UPDATE;
    if (known && !explained) explained = explain_rounds(pc, absolute_pc(other_pc), text, sizeof text);
    if (known && !explained && stamp_thread(stamp) != self->number)
        explained = explain_branch(self, pc, thread_numbered(stamp_thread(stamp)), absolute_pc(other_pc), text, sizeof text);
    const char *cause = explained ? text
                        : same_cluster
                            ? "a barrier of the cluster is missing between the two, or an arrival of one thread at an "
                              "mbarrier for whose phase the other one waits"
                            : cause_of(same_block, same_warp, same_line, both_write);
    if (update == UPDATE_UNKNOWN && !explained) {
        snprintf(text, sizeof text,
                 "if this line updates the element, as += does, use an atomic operation (atomicAdd); if not: %s", cause);
        cause = text;
    }
    const char *other_verb = other_wrote ? "wrote" : simt_strict || shared ? "read" : "accessed"; /* keep_writer() */
    simt_fail_at(
        self, NULL, cudaErrorLaunchFailure, "race on %s: this thread %s it at %s; %s %s it%s%s, and nothing orders the two: %s",
        describe_address(address).text, verb(kind), line, who, other_verb, other_pc != 0 ? " at " : "", other_line, cause);
}
