/* shadow.c with calls in the places where another worker could meet a cell that is not whole. It takes the place of the
 * file of libsimt.a. What pauses is here, as kernels call it: instrumented, it would be accused of reading the host's memory. */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

enum { PAUSE_MS = 300, ARRIVAL_MS = 5000 };

static const char *armed; /* the place; once */
static _Atomic bool pausing, done;
static bool stopped_there; /* the kernel does not go on */

void arm_pause(const char *place, bool stop) { armed = place, stopped_there = stop; }
bool paused(void) { return atomic_load(&pausing); }

static void wait_for(_Atomic bool *flag, int milliseconds) {
    for (int i = 0; i < milliseconds && !atomic_load(flag); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void pause_at(const char *place) {
    if (strcmp(place, armed) != 0 || atomic_exchange(&pausing, true)) return;
    if (stopped_there)
        raise(SIGUSR2); /* as the watchdog does */
    else
        wait_for(&done, PAUSE_MS);
}
void wait_for_the_pause(void) { wait_for(&pausing, ARRIVAL_MS); }
void access_is_done(void) { atomic_store(&done, true); }

#define SIMT_PAUSE(place) pause_at(#place)
#include "shadow.c"
