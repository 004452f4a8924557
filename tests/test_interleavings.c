/* Two workers of the simulated device that access one word at the same moment: the one that comes second finds all that the
 * first has noted, wherever the first is at that time. shadow.c is compiled with pauses here: block 0 stops at a place
 * within its access until block 1 has made its own, or, where a lock keeps block 1 from it, for PAUSE_MS. */
#include "captured.h"

#include <criterion/criterion.h>
#include <cuda_runtime.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAUSE_MS = 300, ARRIVAL_MS = 5000 };

void launch_byte_written_word_read(int *words);
void launch_word_read_word_written(int *words);
void launch_word_read(int *words);

static const char *armed; /* the place; once */
static _Atomic bool pausing, done;
static bool stopped_there; /* the kernel does not go on */

static void wait_for(_Atomic bool *flag, int milliseconds) {
    for (int i = 0; i < milliseconds && !atomic_load(flag); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void pause_at(const char *place);
void pause_at(const char *place) {
    if (strcmp(place, armed) != 0 || atomic_exchange(&pausing, true)) return;
    if (stopped_there)
        raise(SIGUSR2); /* as the watchdog does */
    else
        wait_for(&done, PAUSE_MS);
}
void wait_for_the_pause(void);
void wait_for_the_pause(void) { wait_for(&pausing, ARRIVAL_MS); }
void access_is_done(void);
void access_is_done(void) { atomic_store(&done, true); }

static void must_be_a_race(const char *place, void (*launch)(int *words)) {
    int *words = NULL;
    setenv("SIMT_THREADS", "2", 1);
    armed = place;
    cr_assert_eq(cudaMalloc((void **)&words, 2 * sizeof *words), cudaSuccess);
    cr_assert_eq(cudaMemset(words, 0, 2 * sizeof *words), cudaSuccess);
    launch(words);
    cr_assert_eq(cudaDeviceSynchronize(), cudaErrorLaunchFailure, "the race is missed");
    const char *report = simt_last_report(), *line = report;
    int lines = 0;
    expect_reports();
    while ((line = strstr(line, "interleaved_kernels.cu:")) != NULL) line++, lines++;
    cr_assert(atomic_load(&pausing), "no access came to %s", place);
    cr_assert_not_null(strstr(report, "race on"), "%s", report);
    cr_assert_eq(lines, 2, "%d lines are named:\n%s", lines, report);
}

TestSuite(interleavings, .init = capture_stderr, .timeout = 30);
Test(interleavings, word_read_while_it_is_split) { must_be_a_race("word_copied", launch_byte_written_word_read); }
Test(interleavings, word_written_while_a_reader_is_judged) {
    must_be_a_race("reader_judged", launch_word_read_word_written);
}
Test(interleavings, word_written_while_a_reader_is_noted) {
    must_be_a_race("reader_stamped", launch_word_read_word_written);
}

Test(interleavings, kernel_stopped_within_an_access) {
    int *words = NULL;
    setenv("SIMT_WATCHDOG_SECONDS", "1", 1);
    armed = "reader_stamped", stopped_there = true;
    for (int launch = 0; launch < 2; launch++) {
        cr_assert_eq(cudaMalloc((void **)&words, 2 * sizeof *words), cudaSuccess);
        cr_assert_eq(cudaMemset(words, 0, 2 * sizeof *words), cudaSuccess);
        launch_word_read(words);
        cr_assert_eq(cudaDeviceSynchronize(), launch == 0 ? cudaErrorLaunchTimeout : cudaSuccess, "launch %d", launch);
        cr_assert_eq(cudaDeviceReset(), cudaSuccess);
    }
}

/* The watchdog counts what the processor gave to the kernel: a busy machine stops no kernel. */
Test(interleavings, kernel_without_a_processor_for_a_while) {
    int *words = NULL;
    setenv("SIMT_WATCHDOG_SECONDS", "0.1", 1);
    armed = "reader_stamped";
    cr_assert_eq(cudaMalloc((void **)&words, 2 * sizeof *words), cudaSuccess);
    cr_assert_eq(cudaMemset(words, 0, 2 * sizeof *words), cudaSuccess);
    launch_word_read(words);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
}
