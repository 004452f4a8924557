/* Semaphores between blocks: block_order.h says what they promise.
 *
 * Invariant: a row, the clocks up to which a block's threads are known, never changes once it is made. All that was released at a
 * semaphore is kept with it, and the value and the knowledge are read and written together, under one lock: who reads a value knows
 * of those that made it, and of no others. */
#include "block_order.h"

#include "judge.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- of the launch, under the lock ---- */

struct known_row {
    struct known_row *next;
    uint32_t clocks[];
};
struct known_block {
    uint64_t block;
    const uint32_t *clocks;
};
static struct {
    uint64_t launch;
    struct known_row *rows; /* all there are */
    struct semaphore {
        const uint32_t *word;
        struct known_block *blocks;
        unsigned count, room;
    } * semaphores;
    unsigned count, room;
    struct block_scopes { /* of each block of the launch; NULL as long as no scope is less than the device, or without room */
        uint32_t pc;      /* of its last fence, release or acquire of such a scope; 0: none */
        uint32_t clock;   /* of its last atomic or volatile write of such a scope, */
        uint16_t thread;  /* and whose it was, from 1; 0: none */
        uint8_t widest, scope, of;
        bool is_released; /* a fence of the device's scope has come after this write */
    } * scopes;
} released;

/* Beside a block's number: what its relaxed additions would have released. */
static const uint64_t UNRELEASED = (uint64_t)1 << STAMP_BLOCK_BITS;

static void forget_other_launches(const struct launch *launch) {
    if (released.launch == launch->number) return;
    released.launch = launch->number;
    for (struct known_row *row = released.rows, *next; row != NULL; row = next) {
        next = row->next;
        free(row);
    }
    for (unsigned i = 0; i < released.count; i++) free(released.semaphores[i].blocks);
    free(released.scopes);
    released.rows = NULL, released.scopes = NULL;
    released.count = 0;
}

static struct semaphore *find_semaphore(const uint32_t *word) {
    for (unsigned i = 0; i < released.count; i++)
        if (released.semaphores[i].word == word) return &released.semaphores[i];
    return NULL;
}

static struct semaphore *semaphore_at(const uint32_t *word) {
    struct semaphore *semaphore = find_semaphore(word);
    if (semaphore != NULL) return semaphore;
    APPEND(released.semaphores, released.count, released.room) = (struct semaphore){.word = word};
    return &released.semaphores[released.count - 1];
}

static const uint32_t *new_row(const uint32_t *a, const uint32_t *b, unsigned threads) {
    struct known_row *row = resize_or_die(NULL, sizeof *row + threads * sizeof *row->clocks);
    for (unsigned t = 0; t < threads; t++) row->clocks[t] = a[t] > b[t] ? a[t] : b[t];
    row->next = released.rows;
    released.rows = row;
    return row->clocks;
}

static bool says_more(const uint32_t *a, const uint32_t *than, unsigned threads) {
    for (unsigned t = 0; t < threads; t++)
        if (a[t] > than[t]) return true;
    return false;
}

/* What both say together: one of the two, where it says all of that. */
static const uint32_t *both(const uint32_t *a, const uint32_t *b, unsigned threads) {
    if (a == b || !says_more(b, a, threads)) return a;
    return says_more(a, b, threads) ? new_row(a, b, threads) : b;
}

static void add_block(struct semaphore *semaphore, uint64_t block, const uint32_t *clocks, unsigned threads) {
    for (unsigned i = 0; i < semaphore->count; i++) {
        if (semaphore->blocks[i].block != block) continue;
        semaphore->blocks[i].clocks = both(semaphore->blocks[i].clocks, clocks, threads);
        return;
    }
    APPEND(semaphore->blocks, semaphore->count, semaphore->room) = (struct known_block){block, clocks};
}

/* ---- of the block that runs ---- */

static unsigned bucket_of(uint64_t block) { return (unsigned)(block % ACQUIRED_BUCKETS); }

/* The newest of its entries for the block that the acquirer had after `count` acquisitions, or NULL. */
static const struct acquired *find(const struct acquirer *acquirer, uint64_t block, uint32_t count) {
    int i = acquirer->newest[bucket_of(block)];
    while (i >= 0 && (acquirer->list[i].block != block || acquirer->list[i].number > count)) i = acquirer->list[i].older;
    return i >= 0 ? &acquirer->list[i] : NULL;
}

static bool knows(const struct worker *worker, const struct thread *thread, uint64_t block, uint64_t stamp, uint32_t clock) {
    const struct async_shadow *shadow = worker->async.shadow;
    const uint32_t *row = worker->async.on ? row_of(thread) : NULL;
    for (unsigned a = 0; row != NULL && a < shadow->acquirer_count; a++) {
        const struct acquired *known = find(&shadow->acquirers[a], block, row[acquired_column(shadow, a)]);
        if (known != NULL && clock < known->clocks[stamp_thread(stamp)]) return true;
    }
    return false;
}

bool block_order_knows(const struct worker *worker, const struct thread *thread, uint64_t stamp, uint32_t clock) {
    return knows(worker, thread, stamp_block(stamp), stamp, clock);
}
bool block_order_is_meant(const struct worker *worker, const struct thread *thread, uint64_t stamp, uint32_t clock) {
    return knows(worker, thread, stamp_block(stamp) | UNRELEASED, stamp, clock) &&
           !knows(worker, thread, stamp_block(stamp), stamp, clock);
}

/* Threads beyond the table share its last entry: they then count as knowing of one another's acquisitions. */
static unsigned acquirer_of(struct async_shadow *shadow, const struct thread *thread) {
    unsigned a = 0;
    while (a < shadow->acquirer_count && shadow->acquirers[a].thread != thread->linear) a++;
    if (a == MOST_ACQUIRERS) return a - 1;
    if (a == shadow->acquirer_count) shadow->acquirers[shadow->acquirer_count++].thread = thread->linear;
    return a;
}

static void add_acquired(struct acquirer *acquirer, const struct known_block *block, unsigned threads) {
    const struct acquired *before = find(acquirer, block->block, UINT32_MAX);
    const uint32_t *clocks = before != NULL ? both(before->clocks, block->clocks, threads) : block->clocks;
    if (before != NULL && clocks == before->clocks) return;
    int *newest = &acquirer->newest[bucket_of(block->block)];
    APPEND(acquirer->list, acquirer->listed, acquirer->room) =
        (struct acquired){block->block, clocks, acquirer->count, *newest};
    *newest = (int)acquirer->listed - 1;
}

uint32_t block_order_acquire(struct worker *worker, struct thread *thread, const uint32_t *word, enum simt_scope scope) {
    struct async_shadow *shadow = worker->async.shadow;
    pthread_mutex_lock(&lock);
    forget_other_launches(worker->launch);
    const struct semaphore *semaphore = semaphore_at(word);
    uint32_t value = __atomic_load_n(word, __ATOMIC_RELAXED);
    if (semaphore->count > 0 && scope == SIMT_DEVICE) {
        unsigned a = acquirer_of(shadow, thread);
        struct acquirer *acquirer = &shadow->acquirers[a];
        acquirer->count++;
        for (unsigned i = 0; i < semaphore->count; i++)
            if ((semaphore->blocks[i].block & ~UNRELEASED) != worker->block_number)
                add_acquired(acquirer, &semaphore->blocks[i], shadow->threads);
        row_of(thread)[acquired_column(shadow, a)] = acquirer->count;
    }
    pthread_mutex_unlock(&lock);
    return value;
}

static void row_to_release(struct worker *worker, struct thread *thread) {
    struct async_shadow *shadow = worker->async.shadow;
    memset(shadow->scratch, 0, shadow->width * sizeof *shadow->scratch);
    async_release(worker, thread, shadow->scratch);
}

void block_order_release(struct worker *worker, struct thread *thread, uint32_t *word, uint32_t value, enum simt_scope scope) {
    struct async_shadow *shadow = worker->async.shadow;
    row_to_release(worker, thread);
    pthread_mutex_lock(&lock);
    forget_other_launches(worker->launch);
    if (scope != SIMT_DEVICE) {
        __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&lock);
        return;
    }
    struct semaphore *semaphore = semaphore_at(word);
    add_block(semaphore, worker->block_number, new_row(shadow->scratch, shadow->scratch, shadow->threads), shadow->threads);
    for (unsigned a = 0; a < shadow->acquirer_count; a++)
        for (unsigned i = 0; i < shadow->acquirers[a].listed; i++) {
            const struct acquired *entry = &shadow->acquirers[a].list[i];
            uint32_t count = shadow->scratch[acquired_column(shadow, a)];
            if (entry == find(&shadow->acquirers[a], entry->block, count))
                add_block(semaphore, entry->block, entry->clocks, shadow->threads);
        }
    __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
}

bool block_order_add(struct worker *worker, struct thread *thread, uint32_t *word, uint32_t value, uint64_t *old) {
    struct async_shadow *shadow = worker->async.shadow;
    row_to_release(worker, thread);
    pthread_mutex_lock(&lock);
    forget_other_launches(worker->launch);
    struct semaphore *semaphore = find_semaphore(word);
    if (semaphore != NULL) {
        const uint32_t *row = new_row(shadow->scratch, shadow->scratch, shadow->threads);
        add_block(semaphore, worker->block_number | UNRELEASED, row, shadow->threads);
        *old = __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
    return semaphore != NULL;
}

/* ---- scopes ------------------------------------------------------------------------------------------------------------------ */

static struct block_scopes *scopes_of(const struct launch *launch, uint64_t block) {
    forget_other_launches(launch);
    if (released.scopes == NULL) released.scopes = calloc(launch->blocks, sizeof *released.scopes);
    return released.scopes != NULL ? &released.scopes[block] : NULL;
}

static uint64_t block_of(uint64_t stamp, uint64_t self_stamp) {
    if (same_owner(stamp, self_stamp)) return worker_numbered(stamp_thread(stamp))->block_number;
    return stamp_block(stamp) + rank_of_number(simt_worker->launch, stamp_thread(stamp));
}

/* The scope that two threads have in common. */
static enum simt_scope scope_of_both(uint64_t stamp, uint64_t self_stamp) {
    const struct launch *launch = simt_worker->launch;
    if (!same_owner(stamp, self_stamp)) return SIMT_DEVICE;
    return rank_of_number(launch, stamp_thread(stamp)) == rank_of_number(launch, stamp_thread(self_stamp)) ? SIMT_CTA
                                                                                                           : SIMT_CLUSTER;
}

/* Does the thread know of what thread `of`, from 1, of its block did at this clock? */
static bool knows_of(const struct worker *worker, const struct thread *thread, unsigned of, uint32_t clock) {
    const struct warp *warp = &worker->warps[thread->linear / WARP_SIZE];
    unsigned number = of - 1 + (thread->number - thread->linear), lane = (of - 1) % WARP_SIZE;
    if (thread->number == number || clock < worker->shadow.barrier_clock) return true;
    if (worker->async.on && clock < row_of(thread)[number]) return true;
    return (of - 1) / WARP_SIZE == thread->linear / WARP_SIZE && ordered_in_warp(warp, lane, clock, thread->linear % WARP_SIZE);
}

void block_order_fence(struct worker *worker, struct thread *thread, enum simt_scope scope, enum simt_ordering of,
                       const void *pc) {
    if (worker->shadow.widest < scope) worker->shadow.widest = scope;
    if (scope == SIMT_DEVICE && !atomic_load_explicit(&worker->launch->has_narrow, memory_order_relaxed)) return;
    pthread_mutex_lock(&lock);
    struct block_scopes *own = scopes_of(worker->launch, worker->block_number);
    if (own != NULL) {
        own->widest = (uint8_t)worker->shadow.widest;
        if (scope != SIMT_DEVICE) own->pc = relative_pc(pc), own->scope = (uint8_t)scope, own->of = (uint8_t)of;
        if (scope == SIMT_DEVICE && own->thread != 0 && knows_of(worker, thread, own->thread, own->clock))
            own->is_released = true;
    }
    pthread_mutex_unlock(&lock);
    if (scope != SIMT_DEVICE) atomic_store_explicit(&worker->launch->has_narrow, true, memory_order_relaxed);
}

void block_order_note_narrow(struct worker *worker, const struct thread *thread) {
    pthread_mutex_lock(&lock);
    struct block_scopes *own = scopes_of(worker->launch, worker->block_number);
    if (own != NULL) own->thread = (uint16_t)(thread->linear + 1), own->clock = thread->clock, own->is_released = false;
    pthread_mutex_unlock(&lock);
    atomic_store_explicit(&worker->launch->has_narrow, true, memory_order_relaxed);
}

bool block_order_may_be(uint64_t stamp, uint64_t self_stamp, bool of_blocks) {
    const struct launch *launch = simt_worker->launch;
    enum simt_scope needed = of_blocks ? SIMT_DEVICE : scope_of_both(stamp, self_stamp);
    if (atomic_load_explicit(&launch->fenced, memory_order_relaxed) < needed) return false;
    if (needed == SIMT_CTA || !atomic_load_explicit(&launch->has_narrow, memory_order_relaxed)) return true;
    unsigned mine = worker_numbered(stamp_thread(self_stamp))->shadow.widest;
    pthread_mutex_lock(&lock);
    const struct block_scopes *other = scopes_of(launch, block_of(stamp, self_stamp));
    unsigned theirs = other != NULL ? other->widest : 0;
    pthread_mutex_unlock(&lock);
    return (mine == 0 || mine >= needed) && (theirs == 0 || theirs >= needed);
}

bool block_order_apart(const struct cell *cell, uint64_t stamp) {
    const struct worker *worker = simt_worker;
    enum simt_scope both = scope_of_both(cell->write, stamp);
    unsigned theirs = cell->write_scope != 0 ? cell->write_scope : SIMT_DEVICE;
    unsigned mine = simt_self->scope != 0 ? simt_self->scope : SIMT_DEVICE;
    if (theirs >= both && mine >= both) return false;
    worker->shadow.notes->apart = mine < both ? APART_BY_SELF : APART_BY_OTHER;
    worker->shadow.notes->apart_scope = (enum simt_scope)(mine < both ? mine : theirs);
    if (both == SIMT_DEVICE && block_order_knows(worker, simt_self, cell->write, cell->write_clock)) return false;
    if (both != SIMT_DEVICE && worker->async.on && cell->write_clock < row_of(simt_self)[stamp_thread(cell->write)])
        return false;
    if (simt_self->home->shadow.widest < both) return true;
    pthread_mutex_lock(&lock);
    const struct block_scopes *other = scopes_of(worker->launch, block_of(cell->write, stamp));
    unsigned thread = index_of_number(worker->launch, stamp_thread(cell->write)) + 1;
    bool is_last = other != NULL && other->thread == thread && other->clock == cell->write_clock;
    bool apart = is_last && !other->is_released;
    pthread_mutex_unlock(&lock);
    return apart;
}

bool block_order_explain(uint64_t stamp, uint64_t self_stamp, char *text, size_t room) {
    static const char *const names[] = {"fence", "release", "acquire"};
    const struct worker *worker = simt_worker;
    enum simt_scope both = scope_of_both(stamp, self_stamp);
    if (both == SIMT_CTA || !atomic_load(&worker->launch->has_narrow)) return false;
    pthread_mutex_lock(&lock);
    struct block_scopes of[2] = {{0}}, *theirs = scopes_of(worker->launch, block_of(stamp, self_stamp));
    if (theirs != NULL) of[0] = *theirs, of[1] = *scopes_of(worker->launch, block_of(self_stamp, self_stamp));
    pthread_mutex_unlock(&lock);
    const struct block_scopes *narrow = of[0].pc != 0 && of[0].scope < both ? &of[0] : &of[1];
    if (narrow->pc == 0 || narrow->scope >= both) return false;
    snprintf(text, room, "the %s at %s has scope .%s, which orders nothing for another block%s: use %s", names[narrow->of],
             source_line(absolute_pc(narrow->pc)), narrow->scope == SIMT_CTA ? "cta" : "cluster",
             narrow->scope == SIMT_CTA ? "" : " outside of the cluster",
             narrow->of == SIMT_FENCE ? ".gpu, as __threadfence() has" : ".gpu");
    return true;
}
