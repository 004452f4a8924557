/* Every planted fault of *_faults.cu is found and named with its lines; its correct twin is not accused and computes what it
 * should, and so do kernels that only look suspicious: each with the blocks, and the warps of a block, in 20 different orders. The kernels and their
 * Test()s stand in those files; here is what they share. test_step.c does the same with the steps of the ladder. Faults are
 * looked for on the simulated device only; the correct kernels must hold on a card too. */
#include "faults.h"

#include "captured.h"
#include "processor.h"
#include "run.h"
#include "../common/simt/include/simulated.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORDERS = 20 };

static void need_device(void) {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) cr_skip_test("no CUDA device");
}

static void need_simulated_device(void) {
    need_device();
    if (!device_is_simulated()) cr_skip_test("needs the simulated device");
    setenv("SIMT_WATCHDOG_SECONDS", "2", 1);
}

static void expect_faults(void) {
    need_simulated_device();
    capture_stderr();
}

TestSuite(faults, .init = expect_faults, .timeout = 60);
TestSuite(orders, .init = expect_faults, .timeout = 60);
TestSuite(twins, .init = need_device, .timeout = 60);
TestSuite(patterns, .init = need_device, .timeout = 60);

static void shuffle_blocks(unsigned seed) {
    if (simt_shuffle_blocks != NULL) simt_shuffle_blocks(seed);
}

const char *report(void) { return simt_last_report != NULL ? simt_last_report() : "(no report)"; }

/* Small numbers without a pattern that a wrong index would repeat. */
static int scrambled(int i) { return (int)((unsigned)i * 2654435761u >> 22) - 512; }

void make_arrays(struct arrays *arrays) {
    for (int i = 0; i < ELEMENTS; i++) arrays->host_in[i] = scrambled(i);
    cr_assert_eq(cudaDeviceReset(), cudaSuccess);
    cr_assert_eq(cudaMalloc((void **)&arrays->in, sizeof arrays->host_in), cudaSuccess);
    cr_assert_eq(cudaMalloc((void **)&arrays->out, sizeof arrays->host_in), cudaSuccess);
    cr_assert_eq(cudaMemcpy(arrays->in, arrays->host_in, sizeof arrays->host_in, cudaMemcpyHostToDevice), cudaSuccess);
    cr_assert_eq(cudaMemset(arrays->out, 0, sizeof arrays->host_in), cudaSuccess);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess); /* for streams that do not wait for the default one */
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* The numbers of the lines marked "// here" between the kernel's first line and its closing brace. */
static int marked_lines(const struct fault *fault, int *lines, int room) {
    char text[400], head[120];
    FILE *file = fopen(fault->file, "r");
    cr_assert_not_null(file, "cannot read %s", fault->file);
    snprintf(head, sizeof head, " void %s(", fault->name);
    int count = 0;
    bool inside = false;
    for (int number = 1; fgets(text, sizeof text, file) != NULL; number++) {
        if (strstr(text, head) != NULL) inside = true;
        if (inside && strcmp(text, "}\n") == 0) break;
        if (!inside || strstr(text, "// here\n") == NULL) continue;
        cr_assert_lt(count, room);
        lines[count++] = number;
    }
    fclose(file);
    return count;
}

/* "tests/FILE.cu:LINE", with no digit after it. */
static bool names_line(const char *text, const struct fault *fault, int line) {
    char wanted[60];
    size_t length = (size_t)snprintf(wanted, sizeof wanted, "tests%s:%d", strrchr(fault->file, '/'), line);
    const char *found = text;
    while ((found = strstr(found, wanted)) != NULL && isdigit((unsigned char)found[length])) found++;
    return found != NULL;
}

/* ---- faults, twins, patterns ------------------------------------------------------------------------------------- */

/* The fault ends the program, so it happens in a child. */
static void host_must_be_stopped(const struct fault *fault, const int *lines, int line_count) {
    int ends[2], status;
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        struct arrays arrays;
        dup2(ends[1], STDERR_FILENO);
        make_arrays(&arrays);
        fault->launch(arrays.in, arrays.out);
        _exit(0);
    }
    close(ends[1]);
    char text[2000];
    size_t length = 0;
    ssize_t got;
    while ((got = read(ends[0], text + length, sizeof text - 1 - length)) > 0) length += (size_t)got;
    text[length] = '\0';
    close(ends[0]);
    cr_assert_eq(waitpid(child, &status, 0), child);
    if (fault->error == SIGNAL_OF_HOST && !DIVISION_TRAPS) cr_skip_test("the processor gives 0");
    cr_assert(fault->error == FAULT_OF_HOST ? WIFEXITED(status) && WEXITSTATUS(status) == 3 : WIFSIGNALED(status), "%s: status %#x\n%s", fault->name, (unsigned)status, text);
    bool of_memory = strstr(fault->says, "device memory") != NULL;
    const char *says = of_memory && !SIGNAL_TELLS_WRITES ? "the host accesses device memory at" : fault->says;
    cr_assert_not_null(strstr(text, says), "%s: no \"%s\" in the report:\n%s", fault->name, says, text);
    if (of_memory)
        cr_assert_not_null(strstr(text, "cudaMemcpy()"), "%s: no advice\n%s", fault->name, text);
    for (int i = 0; i < line_count; i++)
        cr_assert(names_line(text, fault, lines[i]), "%s: line %d is not named:\n%s", fault->name, lines[i], text);
}

static cudaError_t launch_in_order(const struct fault *fault, unsigned seed) {
    struct arrays arrays;
    make_arrays(&arrays);
    shuffle_blocks(seed);
    fault->launch(arrays.in, arrays.out);
    return cudaDeviceSynchronize();
}

/* `words`: alternatives with a | between them. Which of two accesses comes first depends on the order of warps. */
static bool says_one_of(const char *text, const char *words) {
    char one[200];
    for (size_t length; *words != '\0'; words += length + (words[length] == '|')) {
        length = strcspn(words, "|");
        snprintf(one, sizeof one, "%.*s", (int)length, words);
        if (strstr(text, one) != NULL) return true;
    }
    return false;
}

void must_be_found(const struct fault *fault) {
    int lines[4];
    int line_count = marked_lines(fault, lines, 4);
    cr_assert_gt(line_count, 0, "no line of %s is marked", fault->name);
    if (fault->error == FAULT_OF_HOST || fault->error == SIGNAL_OF_HOST) {
        host_must_be_stopped(fault, lines, line_count);
        return;
    }
    int found[4] = {0};
    bool has_alternatives = strchr(fault->says, '|') != NULL;
    for (unsigned seed = 1; seed <= ORDERS; seed++) {
        cudaError_t error = launch_in_order(fault, seed);
        cr_assert_eq(error, fault->error, "%s, seed %u: %s instead of %s\n%s", fault->name, seed,
                     cudaGetErrorName(error), cudaGetErrorName(fault->error), report());
        expect_reports();
        /* There the lines are those of its launches and calls. */
        if (strstr(fault->says, "between streams") == NULL && strstr(fault->file, "nccl_faults") == NULL)
            cr_assert_not_null(strstr(report(), fault->name), "%s, seed %u: the kernel is not named\n%s", fault->name, seed,
                               report());
        cr_assert(says_one_of(report(), fault->says), "%s, seed %u: no \"%s\" in the report:\n%s", fault->name, seed,
                  fault->says, report());
        int named = 0;
        for (int i = 0; i < line_count; i++) {
            bool is_named = names_line(report(), fault, lines[i]);
            found[i] += is_named, named += is_named;
            cr_assert(is_named || has_alternatives, "%s, seed %u: line %d is not named:\n%s", fault->name, seed, lines[i],
                      report());
        }
        cr_assert_gt(named, 0, "%s, seed %u: no line is named:\n%s", fault->name, seed, report());
    }
    for (int i = 0; i < line_count; i++)
        cr_assert_gt(found[i], 0, "%s: line %d is named in no order", fault->name, lines[i]);
}

/* Where each warp takes its turn, nothing is found, or with `in_turn` it is. */
void must_be_found_in_some_order(const struct fault *fault, int in_turn) {
    int found = 0;
    for (unsigned seed = 0; seed <= ORDERS; seed++) {
        cudaError_t error = launch_in_order(fault, seed);
        char first[3000];
        snprintf(first, sizeof first, "%s", report());
        if (seed == 0)
            cr_assert_eq(error, in_turn ? fault->error : cudaSuccess, "%s: without a seed: %s", fault->name, report());
        if (error == cudaSuccess) continue;
        found += seed > 0;
        cr_assert_eq(error, fault->error, "%s, seed %u: %s", fault->name, seed, report());
        cr_assert(says_one_of(first, fault->says), "%s, seed %u: no \"%s\" in the report:\n%s", fault->name, seed, fault->says,
                  first);
        launch_in_order(fault, seed);
        cr_assert_str_eq(report(), first, "%s: seed %u gives another order the second time", fault->name, seed);
    }
    cr_assert_gt(found, 0, "%s is found in none of %d orders", fault->name, ORDERS);
    cr_assert_lt(found, ORDERS, "%s is found in each order", fault->name);
}

void must_hold(const struct fault *fault) {
    for (unsigned seed = 1; seed <= ORDERS; seed++) {
        struct arrays arrays;
        int got[ELEMENTS];
        make_arrays(&arrays);
        shuffle_blocks(seed);
        fault->launch_twin(arrays.in, arrays.out);
        cudaError_t error = cudaDeviceSynchronize();
        cr_assert_eq(error, cudaSuccess, "%s, seed %u: accused of %s\n%s", fault->name, seed, cudaGetErrorName(error),
                     report());
        cr_assert_eq(cudaMemcpy(got, arrays.out, sizeof got, cudaMemcpyDeviceToHost), cudaSuccess);
        for (int i = 0; i < ELEMENTS; i++) {
            int expected = fault->expected(arrays.host_in, i);
            cr_assert_eq(got[i], expected, "%s, seed %u: element %d is %d instead of %d", fault->name, seed, i, got[i],
                         expected);
        }
    }
}

                                                                                              \

/* ---- what messages say ------------------------------------------------------------------------------------------- */

TestSuite(messages, .init = expect_faults, .timeout = 60);

void launch_fault(const struct fault *fault) {
    struct arrays arrays;
    make_arrays(&arrays);
    fault->launch(arrays.in, arrays.out);
    cr_assert_eq(cudaDeviceSynchronize(), fault->error);
}

void report_says(const char *words) {
    expect_reports();
    cr_assert_not_null(strstr(report(), words), "no \"%s\" in\n%s", words, report());
}

void report_does_not_say(const char *words) {
    cr_assert_null(strstr(report(), words), "\"%s\" in\n%s", words, report());
}
