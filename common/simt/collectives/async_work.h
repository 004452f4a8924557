/* What Hopper's instructions of a block have under way. Between the files tensor_copy, tile, mbarrier, transaction and bulk, each of
 * which calls those before it; wgmma and named_barrier call none of them but tile. */
#pragma once

#include "async_shadow.h"
#include "tensor_map.h"

/* One box of a tensor on its way to shared memory or back; or `bytes` bytes in a row from map.address on, where map.rank is 0. */
struct tensor_copy {
    struct tensor_map map;
    int64_t at[MOST_DIMENSIONS];
    size_t offset; /* in shared memory */
    uint32_t bytes;
    struct thread *issuer;
    const void *pc;
    int barrier;    /* of a load: the number of its mbarrier */
    unsigned group; /* of a store: the number of the thread's group, from 0 */
    unsigned reader;
    bool adds;            /* of a store: floats are added to those in global memory */
    bool was_read;        /* its thread has waited for it, by .read at least */
    bool written;         /* global memory holds it, though nobody has waited for that: SIMT_ASYNC=early */
    bool landed;          /* and its thread has */
    unsigned char *taken; /* what it has read of shared memory, from `offset` on, between the two; or NULL */
};

/* The box of a load, in shared memory: tile.c. */
struct tile {
    uint32_t start, bytes, row_bytes;
    uint16_t rows; /* the box's second dimension: behind them others begin, where it has three */
    uint8_t swizzle;
    const void *pc;
};
enum { MOST_TILES = 64 };

/* 16 bytes of a matrix that a product reads. */
struct unit {
    uint32_t address;
    unsigned swizzle, pair; /* pair: its numbers in 16 bits */
    char matrix;
    uint32_t of_row, of_column; /* its first element */
    const void *pc;
};

/* An mbarrier that PTX has initialised. One of cuda::barrier has the rows and the phases, and nobody in initialised_by. */
struct transaction {
    size_t offset; /* in shared memory */
    bool fenced;
    const struct thread *initialised_by;
    const void *init_pc;
    uint32_t init_clock;
    unsigned init_age;
    int64_t bytes;        /* announced, and not here */
    uint32_t phases;      /* that are over, of all barriers that have lain here */
    uint32_t first_phase; /* so many when this one was initialised */
    struct thread *last;  /* to arrive */
    const void *last_pc;
    uint32_t *arriving, *over; /* rows: what those that arrive in this phase know; what whoever waits for one learns */
};

/* One of the barriers 0 to 15, or of a tile of several warps: of size 512 the numbers 18 and 19, of 256 20 to 23 and so on. */
enum { NAMED = 16, NAMED_AND_TILES = 48 };
struct named_barrier {
    int threads, arrived;
    uint64_t round;
    uint32_t *row, *over;
    struct place first;
};

/* A thread that has bulk groups. */
struct store_thread {
    struct thread *thread;
    unsigned committed;
};

struct async_work {
    unsigned width;
    struct transaction transactions[MOST_TRANSACTIONS];
    unsigned transaction_count;
    struct tile tiles[MOST_TILES];
    unsigned tile_count;
    struct named_barrier named[NAMED_AND_TILES];
    uint64_t tile_values[2][MAX_BLOCK_THREADS]; /* of a round, and of the one before */
    uint32_t *cluster_row, *cluster_over;       /* of the barrier of the cluster, in the work of its first block */
    struct tensor_copy *loads, *stores;
    unsigned load_count, load_room, store_count, store_room;
    struct store_thread store_threads[MOST_READERS - WARP_READERS];
    unsigned store_thread_count;
    struct warp_registers { /* setmaxnreg, of each warp */
        int last;
        const void *pc;
        unsigned count;
    } registers[MAX_BLOCK_THREADS / WARP_SIZE];
    struct warp_products *products; /* of each warp: wgmma.c */
    bool binds_copies;              /* by cp.async.mbarrier.arrive */
    const void *fenced_maps[16];    /* the last tensor maps of global memory that the block `fenced_by` has fenced */
    unsigned fenced_count;
    uint64_t fenced_by;
};

/* By each instruction of Hopper: what the block has under way, empty at its first one. */
struct async_work *async_work_of(struct worker *worker);
extern bool async_is_early(void); /* SIMT_ASYNC=early: copies and products happen at once, not at the last moment */

/* ---- barrier.c: a thread comes to one of the barriers 0 to 15; its place is noted ---- */
void named_judge_round(int id, const struct thread *thread);

/* ---- tensor_copy.c ---- */
/* Call visit(shared offset, global address, bytes inside of the tensor) for each 16 bytes of the box. */
uint64_t tensor_copy_sectors(const struct tensor_copy *copy, bool also_outside);
void tensor_copy_each(const struct tensor_copy *copy,
                      void (*visit)(const struct tensor_copy *copy, size_t offset, uintptr_t global, uint64_t inside));
void tensor_copy_load(const struct tensor_copy *copy); /* now */
void tensor_copy_take(struct tensor_copy *copy);       /* shared memory is read now */
void tensor_copy_store(struct tensor_copy *copy);      /* global memory is written now, unless it has been */

/* ---- tile.c ---- */
void tile_written(const struct tensor_copy *copy);
/* The rows of the tile at this address, if a copy has written it, are as long as the swizzle. */
bool tile_has_rows(const uint32_t *row, uint32_t address, unsigned swizzle);
void tile_judge(const uint32_t *row, const struct unit *unit, uint32_t origin, uint32_t along, uint32_t down);

/* ---- mbarrier.c has those of cuda::barrier, transaction.c those that PTX names ---- */
struct mbarrier {
    uint64_t expected : 20, pending : 20, phase : 24;
};
enum { MOST_ARRIVALS = (1 << 20) - 1, PHASE_BITS = 24 };
static inline bool mbarrier_is_over(const struct mbarrier *barrier, unsigned phase) {
    return ((barrier->phase - phase) & ((1u << PHASE_BITS) - 1)) - 1 < 1u << (PHASE_BITS - 1);
}
/* The barrier, if it can be one; the access is judged. */
struct mbarrier *mbarrier_check(void *address, enum access_kind kind, const char *what, const void *pc);
void mbarrier_init(void *address, unsigned expected, const void *pc);
#define ONE_INTERFACE "the simulated device follows one of the two interfaces for each mbarrier"
static inline int transaction_number(const struct transaction *barrier) {
    return (int)(barrier - simt_worker->async.work->transactions);
}
struct transaction *transaction_find(size_t offset);   /* or NULL */
struct transaction *transaction_enlist(size_t offset); /* or NULL: the table is full */
void transaction_over(struct transaction *barrier);    /* a phase: who waits for it learns what its arrivals knew */

/* ---- transaction.c ---- */
struct transaction *transaction_of(size_t address, const char *what, const void *pc);
void transaction_arrive(size_t address, unsigned count, unsigned bytes, const char *what, const char *file, int line,
                        const void *pc);
/* A load has come to be under way, or early, to its end. */
void transaction_load(struct tensor_copy *copy);

/* ---- cluster.c ---- */
/* The running thread uses this block's shared memory, and simt_worker is this block's: until the caller sets it to what is
 * returned. */
struct worker *cluster_act_in(struct worker *of, bool remembered, const void *pc);

/* ---- wgmma.c, named_barrier.c: no thread is left ---- */
void wgmma_end_block(struct worker *worker);
void registers_end_block(struct worker *worker);
