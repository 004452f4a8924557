/* Who holds the lock of a sector of global memory may read and change the cells of its words. */
#pragma once

#include "machine.h"

#include <sched.h>

enum { LOCKED_SECTOR = 32, SECTOR_LOCKS = 256 };
extern struct sector_lock {
    /* A worker's number, from 1; 0: none. One cache line per lock: two workers seldom need the same lock. */
    _Alignas(64) _Atomic int holder;
} sector_locks[SECTOR_LOCKS];

static inline void lock_sector(struct worker *worker, uintptr_t address) {
    worker->shadow.sector_lock =
        &sector_locks[address / LOCKED_SECTOR % SECTOR_LOCKS].holder; /* first: a signal may come here */
    int none = 0;
    while (!atomic_compare_exchange_weak_explicit(worker->shadow.sector_lock, &none, worker->number + 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
        if (none != 0) sched_yield();
        none = 0;
    }
}

/* Also where a fault or a signal ends the fiber, which then does not return to the one that locked. */
static inline void unlock_sector(struct worker *worker) {
    _Atomic int *lock = worker->shadow.sector_lock;
    if (lock != NULL && atomic_load_explicit(lock, memory_order_relaxed) == worker->number + 1)
        atomic_store_explicit(lock, 0, memory_order_release);
    worker->shadow.sector_lock = NULL;
}
