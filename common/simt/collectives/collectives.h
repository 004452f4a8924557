/* Where threads meet: block barriers, warp collectives, and waiting until a condition holds. What kernels call of it is
 * declared in simt_abi.h. Knows the hooks, the meter and memory. */
#pragma once

#include "machine.h"

/* A shuffle, a vote or an mma.sync is a name and a function that combines. Every lane of `mask` comes with its operand and with
 * room for its result; when all of them that have not returned from the kernel are at the same source line, combine() is called
 * once. NULL: the lanes only meet. */
struct simt_lanes {
    unsigned mask, present; /* mask: the lanes that the call names; present: the lanes among them that reached the call */
    const void *operand[WARP_SIZE];
    void *result[WARP_SIZE]; /* of lanes that are not present: NULL, as the operand is */
    void *first_lane;
};
/* Flags: all 32 lanes must take part; accesses to memory of lanes that have met here are not ordered by that. */
enum { SIMT_ALL_LANES = 1, SIMT_ORDERS_NOTHING = 2 };
struct simt_collective {
    const char *name; /* "__shfl_sync()", for messages */
    void (*combine)(const struct simt_lanes *lanes);
    int flags;
};
/* What simt_exchange() and simt_meet() mean by their numbers. */
struct simt_value { /* the operand of an exchange; its result has 8 bytes */
    uint64_t value;
    int lane;
};
extern const struct simt_collective collective_exchanges[SIMT_EXCHANGED];
/* collectives[number] of so many: what a kernel has numbered otherwise is a fault. */
const struct simt_collective *collective_numbered(const struct simt_collective *collectives, unsigned count, unsigned number,
                                                  const void *pc);
/* By combine(), which must return after it: the launch fails with "FILE:LINE: NAME: lane N ..." and this text. */
void simt_refuse_lane(const struct simt_lanes *lanes, unsigned lane, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* pc: where in the kernel. Operand and result are this side's: no pointer of a kernel's. */
void collective_meet(const struct simt_collective *collective, unsigned mask, const void *operand, void *result,
                     const char *file, int line, const void *pc);
/* A (16, 16), or (16, 32) of 8-bit numbers, as products read it, from the lower 16 or 8 bits of each number. */
struct mma_rows {
    _Alignas(32) double value[16][32];
    _Alignas(32) int32_t exponent[16][32];
    bool special; /* some are infinite or NaN */
};
void mma_read_rows(enum simt_wgmma_types types, uint32_t A[16][32], struct mma_rows *rows);
/* C (16, 8) = A B, or with `add` C += A B: B as A, by its columns; C[lane] has four elements, in the order of mma.sync. */
void mma_warp(enum simt_wgmma_types types, const struct mma_rows *A, uint32_t B[8][32], bool add, float *const C[WARP_SIZE]);

/* Waiting until a condition holds: cp.async groups, mbarriers. The caller has set the thread's last_pc. */
struct simt_condition {
    const char *name;                                      /* "__pipeline_wait_prior()", for messages */
    int (*holds)(void *data);                              /* also called while the thread waits, from outside of it */
    void (*describe)(void *data, char *text, size_t room); /* what is missing, in words; may be NULL */
};
void simt_wait_until(const struct simt_condition *condition, void *data, const char *file, int line);
void collectives_start_block(struct worker *worker);
/* All threads have returned: is what they began over? */
void collectives_end_block(struct worker *worker);
/* The thread has returned from the kernel: lanes of its warp may now have all that they wait for. */
void collectives_thread_done(struct worker *worker, struct thread *thread);
/* Called by that one: the thread counts no more at the barrier of its cluster. */
void cluster_start(struct worker *worker); /* all its blocks have */
void cluster_thread_done(struct worker *worker, const struct thread *thread);
/* No lane of the warp that begins with thread `first` can go on: if some ask which lanes are active, those at one line go on, and
 * the answer is true. */
bool collectives_answer_active_mask(struct worker *worker, unsigned first);
void async_copies_forget(struct worker *worker); /* that threads of an earlier block left under way */
/* The running thread's copies that are in no group yet arrive with this phase of the mbarrier; all such of the block do. */
void async_copies_bind(const void *mbarrier, unsigned phase);
void async_copies_arrive(struct worker *worker, const void *mbarrier, unsigned phase);
/* Can the thread, which is in state AT_CONDITION, go on? */
bool condition_holds(struct thread *thread);
/* No thread can go on and some are not done: say who waits where, and for whom, and what of other blocks. True: it is what a card
 * tolerates, and the threads at the barrier may go on. */
bool explain_deadlock(struct worker *const blocks[], unsigned count, const char *elsewhere);

/* ---- semaphore.c: blocks that wait for other blocks ---- */
uint64_t semaphore_changes(void);
bool semaphore_is_waited_for(const struct worker *worker);                     /* by a thread of its block */
bool semaphore_lets_go_on(const struct worker *worker);                        /* one such thread */
void semaphore_sleep(uint64_t changes_seen);                                   /* until there are others, or for a while */
void semaphore_describe(const struct worker *worker, char *text, size_t room); /* who waits */
/* A block of a cooperative launch has ended: no other block may wait for it. */
void grid_block_done(struct worker *worker);

/* The running thread comes to where it waits for others, if only for a moment. Lanes that wait together go on together. */
static inline void come_to(const char *what, const char *file, int line, const void *pc) {
    simt_self->place = place_in_kernel(what, file, line);
    simt_self->last_pc = pc;
    if (simt_worker->meter.on) simt_furthest = 0; /* nobody else asks */
}

static inline bool same_place(const struct place *a, const struct place *b) {
    return a->line == b->line && a->what == b->what && (a->file == b->file || __builtin_strcmp(a->file, b->file) == 0);
}
