/* Two workers of the simulated device that access one word at the same moment: the one that comes second finds all that the
 * first has noted, wherever the first is at that time. shadow.c is compiled with pauses here (paused_shadow.c): block 0 stops
 * at a place within its access until block 1 has made its own, or, where a lock keeps block 1 from it, for a while. The
 * kernels call functions of the host, as only the simulated device allows: compile_kernels.sh leaves this folder out. */
#include "captured.h"

#include <criterion/criterion.h>
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

extern "C" { // of paused_shadow.c
void arm_pause(const char *place, bool stop); /* once; stop: the kernel does not go on */
bool paused(void);                            /* an access came to the place */
void pause_at(const char *place);
void wait_for_the_pause(void);
void access_is_done(void);
}

static void must_be_a_race(const char *place, void (*kernel)(int *words)) {
    int *words = NULL;
    setenv("SIMT_THREADS", "2", 1);
    arm_pause(place, false);
    cr_assert_eq(cudaMalloc(&words, 2 * sizeof *words), cudaSuccess);
    cr_assert_eq(cudaMemset(words, 0, 2 * sizeof *words), cudaSuccess);
    kernel<<<2, 1>>>(words);
    cr_assert_eq(cudaDeviceSynchronize(), cudaErrorLaunchFailure, "the race is missed");
    const char *report = simt_last_report(), *line = report;
    int lines = 0;
    expect_reports();
    while ((line = strstr(line, "test_interleavings.cu:")) != NULL) line++, lines++;
    cr_assert(paused(), "no access came to %s", place);
    cr_assert_not_null(strstr(report, "race on"), "%s", report);
    cr_assert_eq(lines, 3, "%d lines are named, not two accesses and the allocation:\n%s", lines, report);
}

TestSuite(interleavings, .init = capture_stderr, .timeout = 30);

__global__ void byte_written_word_read(int *words) {
    if (blockIdx.x == 0) {
        reinterpret_cast<char *>(words)[0] = 1;
    } else {
        wait_for_the_pause();
        int word = words[0];
        access_is_done();
        words[1] = word;
    }
}

Test(interleavings, word_read_while_it_is_split) { must_be_a_race("word_copied", byte_written_word_read); }

__global__ void word_read_word_written(int *words) {
    if (blockIdx.x == 0) {
        int word = words[0];
        words[1] = word;
    } else {
        wait_for_the_pause();
        words[0] = 2;
        access_is_done();
    }
}

Test(interleavings, word_written_while_a_reader_is_judged) {
    must_be_a_race("reader_judged", word_read_word_written);
}
Test(interleavings, word_written_while_a_reader_is_noted) {
    must_be_a_race("reader_stamped", word_read_word_written);
}

__global__ void word_read(int *words) { words[1] = words[0]; }

Test(interleavings, kernel_stopped_within_an_access) {
    int *words = NULL;
    setenv("SIMT_WATCHDOG_SECONDS", "1", 1);
    arm_pause("reader_stamped", true);
    for (int launch = 0; launch < 2; launch++) {
        cr_assert_eq(cudaMalloc(&words, 2 * sizeof *words), cudaSuccess);
        cr_assert_eq(cudaMemset(words, 0, 2 * sizeof *words), cudaSuccess);
        word_read<<<1, 1>>>(words);
        cr_assert_eq(cudaDeviceSynchronize(), launch == 0 ? cudaErrorLaunchTimeout : cudaSuccess, "launch %d", launch);
        cr_assert_eq(cudaDeviceReset(), cudaSuccess);
    }
}

/* The watchdog counts what the processor gave to the kernel: a busy machine stops no kernel. */
Test(interleavings, kernel_without_a_processor_for_a_while) {
    int *words = NULL;
    setenv("SIMT_WATCHDOG_SECONDS", "0.1", 1);
    arm_pause("reader_stamped", false);
    cr_assert_eq(cudaMalloc(&words, 2 * sizeof *words), cudaSuccess);
    cr_assert_eq(cudaMemset(words, 0, 2 * sizeof *words), cudaSuccess);
    word_read<<<1, 1>>>(words);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
}
