/* Who runs when: blocks over CPU threads, and the fibers of a block one after the other. Knows all layers below. */
#pragma once

#include "machine.h"

#include <setjmp.h>

/* The one that ended a kernel. */
struct worker_signal {
    int number;
    uintptr_t address;
    const void *pc;
    sigjmp_buf escape; /* out of the signal handler, back to the scheduler */
    void *stack;       /* of the handler */
};

/* Run all blocks of the launch; its failure, if any, is then the sticky error. */
void simt_run(struct launch *launch);

/* Faults of the CPU in a kernel, and the watchdog's SIGUSR2, leave the fiber for worker->signal->escape. A fault of the host at a
 * device pointer ends the program. Called often, works once. */
void scheduler_catch_signals(void);
int scheduler_threads(void); /* that have been started to run blocks */

/* ---- between this layer's own files: signals.c calls no other, then come block.c, workers.c ---- */
extern _Atomic int64_t watchdog_clock_ns; /* above 0 */
void scheduler_run_block(struct worker *worker, uint64_t number);
/* No thread of its block can go on, and one waits for another block: sleep, while others run. False: nobody can go on, or none waits
 * so; `elsewhere` then says who else waits. `changes`: semaphore_changes() before the threads were looked at. */
extern bool (*scheduler_park)(struct worker *worker, uint64_t changes, char *elsewhere, size_t room);
void scheduler_explain_signal(struct worker *worker);
