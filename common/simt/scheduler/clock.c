/* The watchdog's clock: wall time, but no more of it than the processors gave to each block that runs, so that a busy
 * machine stops no kernel; for a kernel that sleeps, at least one part in so many of wall time. */
#define _GNU_SOURCE
#include "scheduler.h"

enum { SLEEPING_PART = 64 };
static _Atomic int64_t watchdog_clock = 1;
int64_t watchdog_clock_ns(void) { return atomic_load_explicit(&watchdog_clock, memory_order_relaxed); }

void advance_watchdog_clock(struct tick *last, int running) {
    struct tick now = {read_clock(CLOCK_MONOTONIC), read_clock(CLOCK_PROCESS_CPUTIME_ID)};
    int64_t wall = now.wall - last->wall, given = now.processor - last->processor;
    if (running > 1) given /= running;
    if (given < wall / SLEEPING_PART) given = wall / SLEEPING_PART;
    if (last->wall != 0) atomic_fetch_add(&watchdog_clock, given < wall ? given : wall);
    *last = now;
}
