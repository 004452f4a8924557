/* What threads know of one another, exactly, and who accesses shared memory asynchronously. Hopper's copies and products run
 * beside the threads, in the async proxy: an order between two threads is not enough for them.
 *
 * Each thread has a row of clocks, in which a thread of another block of its cluster has columns, too. What it knows grows where it waits: at a barrier of any kind, or where its warp meets.
 *
 *     known[u]    it knows what thread u did before this clock
 *     fenced[u]   and that a fence.proxy.async came between: of these the async proxy sees the stores
 *     phases[b]   it has waited for so many phases of mbarrier b: their copies have landed
 *     reads[r]    it knows that so many groups of reader r are done with shared memory. Readers are the warps of wgmma, and
 *                 from WARP_READERS on the threads that store tensors or bytes
 *     acquired[a] it knows of so many acquisitions of acquirer a, a thread that reads semaphores (block_order.h)
 *     rounds[n]   it knows that so many rounds of named barrier n of its block are over
 *
 * The rows are in use in blocks that execute an instruction of Hopper, from the first of them on. They order ordinary accesses,
 * too, in place of the clocks of shadow.c. */
#pragma once

#include "shadow.h"

enum { MOST_TRANSACTIONS = 64, MOST_READERS = 64, WARP_READERS = 32, MOST_ACQUIRERS = 16, ACQUIRED_BUCKETS = 32, ROUNDS = 16 };
enum { UNIT = 16, UNITS = SHARED_BYTES_MAX / UNIT };

/* What reads shared memory asynchronously. */
enum async_reader { PRODUCT_A, PRODUCT_B, TENSOR_BOX, BULK_STORE, BULK_REDUCTION };
enum { ANY_SWIZZLE = 0 }; /* of a bulk copy: bytes are taken, and left, as they lie */

struct async_shadow {
    unsigned threads, numbers; /* of the block; of its cluster: columns */
    unsigned rank, ranks;
    unsigned width; /* of a row */
    unsigned ages;  /* how often all orders have aged */
    uint32_t *rows, *scratch;
    unsigned store_readers;
    uint32_t groups[MOST_READERS]; /* of each reader, closed; never reset: of earlier blocks nothing is unknown */
    struct async_write {           /* the last copy into these 16 bytes */
        uint32_t phase, pc;        /* it lands with this phase, from 1; 0: none */
        uint16_t barrier;
        uint8_t swizzle;
        bool pending;
    } writes[UNITS];
    bool last[SHARED_BYTES_MAX / 4]; /* the last write of the word was such a copy */
    struct async_read {
        uint32_t group, pc : 29, what : 3;
    } reads[UNITS][MOST_READERS];
    struct
        remote { /* of each thread of the cluster, by its number: its latest access to the shared memory of this block, or NULL */
        const void *pc;
        uint32_t clock;
    } remotes[MAX_BLOCK_THREADS];
    unsigned acquirer_count;
    struct acquirer {
        unsigned thread, listed, room;
        uint32_t count; /* of its acquisitions */
        int newest[ACQUIRED_BUCKETS];
        struct acquired {
            uint64_t block;         /* that it has learnt of, */
            const uint32_t *clocks; /* all that it knows of that block, */
            uint32_t number;        /* by this acquisition */
            int older;              /* the entry before this one of its bucket, or -1 */
        } * list;
    } acquirers[MOST_ACQUIRERS];
};

static inline uint32_t *row_of(const struct thread *thread) {
    const struct async_shadow *shadow = thread->home->async.shadow;
    return shadow->rows + (size_t)thread->linear * shadow->width;
}
static inline unsigned fenced_column(const struct async_shadow *shadow, unsigned number) { return shadow->numbers + number; }
/* Of a barrier, and of a reader, of the block whose shadow this is. */
static inline unsigned phase_column(const struct async_shadow *shadow, unsigned barrier) {
    return 2 * shadow->numbers + shadow->rank * MOST_TRANSACTIONS + barrier;
}
static inline unsigned reads_column(const struct async_shadow *shadow, unsigned reader) {
    return 2 * shadow->numbers + shadow->ranks * MOST_TRANSACTIONS + shadow->rank * MOST_READERS + reader;
}

/* The thread has learnt that all groups of the reader but the last `pending` are done with shared memory. */
static inline void async_learn_read(const struct thread *thread, unsigned reader, unsigned pending) {
    const struct async_shadow *shadow = thread->home->async.shadow;
    uint32_t *known = &row_of(thread)[reads_column(shadow, reader)], groups = shadow->groups[reader] - pending;
    if (groups > *known) *known = groups;
}

static inline unsigned acquired_column(const struct async_shadow *shadow, unsigned acquirer) {
    return 2 * shadow->numbers + shadow->ranks * (MOST_TRANSACTIONS + MOST_READERS) + acquirer;
}

static inline unsigned rounds_column(const struct async_shadow *shadow, unsigned barrier) {
    return acquired_column(shadow, MOST_ACQUIRERS) + shadow->rank * ROUNDS + barrier;
}

void async_start(struct worker *worker);  /* by an instruction of Hopper, or for a cluster; for all its blocks */
void async_forget(struct worker *worker); /* all orders have aged */
/* A thread lets others know, through `row`; who waits there, learns. What the thread does next is not known by that. */
void async_release(struct worker *worker, struct thread *thread, uint32_t *row);
void async_acquire(struct worker *worker, struct thread *thread, const uint32_t *row);
void async_fence(struct worker *worker, struct thread *thread); /* fence.proxy.async */
void async_meet(struct worker *worker, struct thread *first, unsigned lanes);
void async_meet_all(struct worker *worker);
void async_join_all(struct worker *worker); /* what any thread of the block knows, to the shadow's scratch row */
/* What all lanes of a warp know, or this thread: to judge what they issue. Valid until the next call. */
const uint32_t *async_row_of_warp(struct worker *worker, struct thread *first_lane);
const uint32_t *async_row_of_thread(struct worker *worker, struct thread *thread);

const char *swizzle_name(unsigned swizzle); /* "the 128-byte" */
/* An ordinary access to shared memory. */
void async_judge(size_t offset, size_t bytes, enum access_kind kind, const void *pc);
/* 16 bytes are read asynchronously from now on, as a part of the reader's open group, in a tile with this swizzle. */
void async_judge_read(const uint32_t *row, size_t offset, unsigned reader, unsigned swizzle, enum async_reader what,
                      const void *pc);
/* They are written, from now on until phase `phase` of the barrier. */
void async_judge_write(const uint32_t *row, size_t offset, unsigned barrier, uint32_t phase, unsigned swizzle, const void *pc);
void async_landed(struct worker *worker, const struct thread *issuer, size_t offset, size_t bytes);

/* ---- accumulators.c: the registers that wgmma accumulates in are local arrays of a thread here, which the product writes when it is
 * waited for. So are those that it reads A from, four at a time, where they lie in a local array. ---- */
/* By wgmma.fence, by a product, and when `groups` groups of the warp are done. */
void accumulators_fence(struct thread *thread);
void accumulators_issue(struct thread *thread, const void *start, size_t bytes, unsigned group, const void *pc);
void registers_of_A_issue(struct thread *thread, const void *start, unsigned group, const void *pc);
void accumulators_done(struct thread *thread, unsigned groups);
/* An access of the running thread to its own stack. True: to registers of wgmma, which are no local memory. */
bool accumulators_judge(uintptr_t address, size_t bytes, enum access_kind kind, const void *pc);
