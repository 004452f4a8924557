/* Every planted fault of fault_kernels.cu is found and named with its lines; its correct twin is not accused and
 * computes what it should, and so do kernels that only look suspicious: each with the blocks in 20 different orders.
 * test_step.c does the same with the steps of the ladder. Faults are looked for on the simulated device only; the correct kernels must hold on a
 * card too. */
#include "fault_kernels.h"

#include "captured.h"
#include "processor.h"
#include "run.h"
#include "simulated.h"

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
TestSuite(twins, .init = need_device, .timeout = 60);
TestSuite(patterns, .init = need_device, .timeout = 60);
TestSuite(ladder, .init = need_device, .timeout = 300);

static void shuffle_blocks(unsigned seed) {
    if (simt_shuffle_blocks != NULL) simt_shuffle_blocks(seed);
}

static const char *report(void) { return simt_last_report != NULL ? simt_last_report() : "(no report)"; }

/* Small numbers without a pattern that a wrong index would repeat. */
static int scrambled(int i) { return (int)((unsigned)i * 2654435761u >> 22) - 512; }

/* The inputs, fresh for each launch: a failed kernel leaves nothing behind. */
struct arrays {
    int host_in[ELEMENTS];
    int *in, *out;
};

static void make_arrays(struct arrays *arrays) {
    for (int i = 0; i < ELEMENTS; i++) arrays->host_in[i] = scrambled(i);
    cr_assert_eq(cudaDeviceReset(), cudaSuccess);
    cr_assert_eq(cudaMalloc((void **)&arrays->in, sizeof arrays->host_in), cudaSuccess);
    cr_assert_eq(cudaMalloc((void **)&arrays->out, sizeof arrays->host_in), cudaSuccess);
    cr_assert_eq(cudaMemcpy(arrays->in, arrays->host_in, sizeof arrays->host_in, cudaMemcpyHostToDevice), cudaSuccess);
    cr_assert_eq(cudaMemset(arrays->out, 0, sizeof arrays->host_in), cudaSuccess);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static const char *source = "fault_kernels.cu"; /* in tests/: where the kernels of this test are */

/* The numbers of the lines marked "// here" between the kernel's first line and its closing brace. */
static int marked_lines(const char *kernel, int *lines, int room) {
    char text[400], head[120], path[4096];
    snprintf(path, sizeof path, "%s/%s", FAULT_SOURCES, source);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "cannot read %s", path);
    snprintf(head, sizeof head, " void %s(", kernel);
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

/* "tests/fault_kernels.cu:LINE", with no digit after it. */
static bool names_line(const char *text, int line) {
    char wanted[60];
    size_t length = (size_t)snprintf(wanted, sizeof wanted, "tests/%s:%d", source, line);
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
        cr_assert(names_line(text, lines[i]), "%s: line %d is not named:\n%s", fault->name, lines[i], text);
}

static void must_be_found(const struct fault *fault) {
    int lines[4];
    int line_count = marked_lines(fault->name, lines, 4);
    cr_assert_gt(line_count, 0, "no line of %s is marked", fault->name);
    if (fault->error == FAULT_OF_HOST || fault->error == SIGNAL_OF_HOST) {
        host_must_be_stopped(fault, lines, line_count);
        return;
    }
    for (unsigned seed = 1; seed <= ORDERS; seed++) {
        struct arrays arrays;
        make_arrays(&arrays);
        shuffle_blocks(seed);
        fault->launch(arrays.in, arrays.out);
        cudaError_t error = cudaDeviceSynchronize();
        cr_assert_eq(error, fault->error, "%s, seed %u: %s instead of %s\n%s", fault->name, seed,
                     cudaGetErrorName(error), cudaGetErrorName(fault->error), report());
        expect_reports();
        cr_assert_not_null(strstr(report(), fault->name), "%s, seed %u: the kernel is not named\n%s", fault->name, seed,
                           report());
        cr_assert_not_null(strstr(report(), fault->says), "%s, seed %u: no \"%s\" in the report:\n%s", fault->name,
                           seed, fault->says, report());
        for (int i = 0; i < line_count; i++)
            cr_assert(names_line(report(), lines[i]), "%s, seed %u: line %d is not named:\n%s", fault->name, seed,
                      lines[i], report());
    }
}

static void must_hold(const struct fault *fault) {
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

/* ---- past a fault -------------------------------------------------------------------------------------------------- */

/* In step, a barrier that is missing does no harm; a race between blocks stays a fault. */
Test(faults, run_past_in_step) {
    static const struct fault *const past[] = {
        &fault_store_then_read_static,  &fault_store_then_read_dynamic,      &fault_read_then_overwrite_static,
        &fault_tile_reused_in_loop_static, &fault_transpose_without_barrier, &fault_tree_reduction_without_barrier,
        &fault_stencil_without_barrier, &fault_half_warp_without_syncwarp};
    simt_run_in_step();
    for (size_t k = 0; k < sizeof past / sizeof *past; k++) {
        struct arrays arrays;
        int got[ELEMENTS];
        make_arrays(&arrays);
        past[k]->launch(arrays.in, arrays.out);
        cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess, "%s\n%s", past[k]->name, report());
        cr_assert_eq(cudaMemcpy(got, arrays.out, sizeof got, cudaMemcpyDeviceToHost), cudaSuccess);
        for (int i = 0; i < ELEMENTS; i++)
            cr_assert_eq(got[i], past[k]->expected(arrays.host_in, i), "%s: element %d", past[k]->name, i);
    }
    struct arrays arrays;
    make_arrays(&arrays);
    fault_blocks_write_read.launch(arrays.in, arrays.out);
    cr_assert_eq(cudaDeviceSynchronize(), fault_blocks_write_read.error);
}

/* ---- what messages say ------------------------------------------------------------------------------------------- */

TestSuite(messages, .init = expect_faults, .timeout = 60);

static void launch_fault(const struct fault *fault) {
    struct arrays arrays;
    make_arrays(&arrays);
    fault->launch(arrays.in, arrays.out);
    cr_assert_eq(cudaDeviceSynchronize(), fault->error);
}

static void report_says(const char *words) {
    expect_reports();
    cr_assert_not_null(strstr(report(), words), "no \"%s\" in\n%s", words, report());
}

static void report_does_not_say(const char *words) {
    cr_assert_null(strstr(report(), words), "\"%s\" in\n%s", words, report());
}

Test(messages, launch_with_too_many_threads) {
    struct arrays arrays;
    make_arrays(&arrays);
    launch_copy_then_double(2048, arrays.in, arrays.out);
    cr_assert_eq(cudaGetLastError(), cudaErrorInvalidConfiguration);
    report_says("launch of copy_ints: 2048 threads per block, at most 1024");
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess, "the second kernel is accused:\n%s", report());
    /* Who goes on although the error was there is not accused of what the first kernel did not write. */
    launch_copy_then_double(2048, arrays.in, arrays.out);
    cudaGetLastError();
    launch_copy_then_double(128, arrays.in, arrays.out);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess, "%s", report());
}

Test(messages, launch_of_no_threads) {
    struct arrays arrays;
    make_arrays(&arrays);
    launch_copy_then_double(0, arrays.in, arrays.out);
    cr_assert_eq(cudaGetLastError(), cudaErrorInvalidConfiguration);
    report_says("launch of copy_ints: a block of (0,1,1) threads has none");
}

Test(messages, race_across_two_rounds) {
    launch_fault(&fault_tile_reused_in_loop_static);
    report_says("__syncthreads() in line");
    report_says("stands between the two lines, but not between the two accesses");
    report_says("round 1 of the loop");
    report_says("round 2 already");
    report_does_not_say("put a __syncthreads() between");
    report_does_not_say("is missing between");
}

Test(messages, race_within_a_round) {
    launch_fault(&fault_store_then_read_static);
    report_does_not_say("round");
    report_says("a __syncthreads() is missing between the two");
}

Test(messages, race_within_a_warp) {
    launch_fault(&fault_half_warp_without_syncwarp);
    report_says("put a __syncthreads() between the two accesses (the two threads are of one warp: a __syncwarp()");
}

/* Of several readers the last is known, and it may be the one that writes. */
Test(messages, nobody_races_with_itself) {
    static const struct fault *const faults[] = {&fault_reader_of_lanes_overwrites, &fault_reader_of_warps_overwrites};
    for (int i = 0; i < 2; i++) {
        launch_fault(faults[i]);
        const char *self = strstr(report(), "thread (");
        cr_assert_not_null(self);
        size_t length = strcspn(self, ")") + 1;
        char name[60], *second;
        snprintf(name, sizeof name, "%.*s", (int)length, self);
        second = strstr(self + length, name);
        cr_assert_null(second, "%s twice in\n%s", name, report());
    }
}

#define FAULT_TESTS(name)                                                                                              \
    Test(faults, name) { must_be_found(&fault_##name); }                                                               \
    Test(twins, name) { must_hold(&fault_##name); }
#define PATTERN_TEST(name)                                                                                             \
    Test(patterns, name) { must_hold(&fault_##name); }
FOR_EACH_FAULT(FAULT_TESTS)
FOR_EACH_PATTERN(PATTERN_TEST)

/* must_be_found() reads the marked lines of another file. */
#define FAULT_TESTS_IN(file, name)                                                                                     \
    Test(faults, name) {                                                                                               \
        source = file;                                                                                                 \
        must_be_found(&fault_##name);                                                                                  \
    }                                                                                                                  \
    Test(twins, name) { must_hold(&fault_##name); }
#define TENSOR_TESTS(name) FAULT_TESTS_IN("tensor_faults.cu", name)
#define BARRIER_TESTS(name) FAULT_TESTS_IN("barrier_faults.cu", name)
FOR_EACH_BARRIER_FAULT(BARRIER_TESTS)
FOR_EACH_TENSOR_FAULT(TENSOR_TESTS)
FOR_EACH_TENSOR_PATTERN(PATTERN_TEST)
