#include "output.h"
#include "result.h"
#include "../simt/include/simulated.h"
#include "status.h"
#include "variants.h"

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Multiply-adds that the reference may spend on one check: about two seconds on two cores. */
static const double check_budget = 2e9;

/* Readable lines go to standard output, or to standard error when that carries the JSON. */
static FILE *report;

static int device_failed(const char *doing, cudaError_t error) {
    warnx("%s: %s (%s)", doing, cudaGetErrorName(error), cudaGetErrorString(error));
    return EXIT_FAILED;
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- before anything runs --------------------------------------------------------------------------------------------- */

static void refuse_too_large(const struct step *step, const struct problem *problem) {
    size_t free_bytes = 0, total_bytes = 0;
    double workspace = (double)workspace_bytes_of(step, problem);
    double tensors = tensor_bytes(problem, (struct passes){.backward = step->backward != NULL});
    double needed = tensors + workspace;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) return; /* told by the first allocation */
    /* Where device memory is the host's own, the host's copies come out of it too. */
    if (device_is_simulated()) needed += tensors;
    if (needed > (double)total_bytes)
        errx(EXIT_USAGE, "this problem needs %.1f GB of device memory (%.1f of it workspace), the device has %.1f",
             needed / 1e9, workspace / 1e9, (double)total_bytes / 1e9);
}

static void refuse_on_card(const struct options *options) {
    const char *option = simt_meter_start == NULL && options->meter                  ? "meter"
                         : simt_trace_start == NULL && options->trace != NULL        ? "trace"
                         : simt_shuffle_blocks == NULL && options->shuffle_seed != 0 ? "shuffle-seed"
                                                                                     : NULL;
    if (option != NULL) errx(EXIT_USAGE, "--%s works on the simulated device only: on a card, use Nsight Compute", option);
    if (options->trace_blocks != NULL && (options->trace == NULL || !simt_trace_start(NULL, options->trace_blocks)))
        errx(EXIT_USAGE, "--trace-blocks %s: it must be a list of at most 64 blocks, as in 0,3, beside --trace",
             options->trace_blocks);
}

/* The simulated device has as many as a program needs, unless its user says how many. */
static cudaError_t find_devices(int needed) {
    char text[16];
    int count = 0;
    snprintf(text, sizeof text, "%d", needed);
    if (needed > 1) setenv("SIMT_DEVICES", text, 0);
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count < needed) errx(EXIT_USAGE, "--devices %d: this machine has %d", needed, count);
    return error;
}

static void refuse_older_card(const struct step *step) {
    struct cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) return;
    int capability = 10 * properties.major + properties.minor;
    if (capability < step->compute_capability)
        errx(EXIT_USAGE, "this step needs compute capability %d.%d, this card has %d.%d", step->compute_capability / 10,
             step->compute_capability % 10, properties.major, properties.minor);
}

/* One line is added to the file. */
static FILE *open_json(const struct options *options) {
    if (options->json == NULL) return NULL;
    FILE *file = strcmp(options->json, "-") == 0 ? stdout : fopen(options->json, "a");
    if (file == NULL) err(EXIT_USAGE, "--json: cannot write %s", options->json);
    return file;
}

static int not_written(const char *option, const char *name) {
    warn("--%s: writing to %s failed", option, name);
    return EXIT_FAILED;
}

/* ---- readable report -------------------------------------------------------------------------------------------------- */

static void print_heading(const struct step *step, const struct options *options, const struct run *run) {
    struct cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) properties.name[0] = '\0';
    const struct problem *p = &run->problem;
    struct passes passes = options->passes;
    char grouped[40] = "", several[40] = "";
    if (kv_heads(p) < p->heads) snprintf(grouped, sizeof grouped, " on %d of K and V", kv_heads(p));
    if (p->devices > 1) snprintf(several, sizeof several, ", %d devices", p->devices);
    fprintf(report, "%s %s%s on %s%s: batch %d, heads %d%s, %d queries, %d keys, d %d%s%s, %s\n", step->name,
            !passes.backward ? "forward"
            : passes.forward ? "forward and backward"
                             : "backward",
            passes.deterministic ? ", deterministic," : "", run->simulated ? "the simulated device" : properties.name, several,
            p->batch, p->heads, grouped, p->N_q, p->N_kv, p->d, p->causal ? ", causal" : "", variants_text(p),
            dtype_names[p->dtype]);
    if (step->forward == NULL) fprintf(report, "  O and L by the harness\n");
}

static bool is_there(const struct options *options, enum tensor tensor) {
    return !is_backward(tensor) || options->passes.backward;
}

static void print_corners(const struct run *run, const struct options *options) {
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        if (!is_there(options, tensor)) continue;
        int rows = tensor_table[tensor].per_key ? run->problem.N_kv : run->problem.N_q;
        int columns = (int)tensor_columns(&run->problem, tensor);
        fprintf(report, "%s, first head\n", tensor_table[tensor].name);
        for (int i = 0; i < rows && i < 3; i++) {
            for (int j = 0; j < columns && j < 3; j++) fprintf(report, "  %10.6f", (double)run->host[tensor][i * columns + j]);
            fputc('\n', report);
        }
    }
}

/* ---- the program ------------------------------------------------------------------------------------------------------ */

static cudaError_t time_and_print(struct run *run, const struct step *step, const struct options *options,
                                  struct result *result) {
    struct passes all = options->passes, forward = all, backward = all;
    forward.backward = backward.forward = false;
    const struct {
        const char *name;
        struct passes passes;
        struct timing *timing;
    } runs[] = {{"forward ", forward, &result->forward_time},
                {"backward", backward, &result->backward_time},
                {"time", all, &result->time}};
    for (int i = all.forward && all.backward ? 0 : 2; i < 3; i++) {
        cudaError_t error = time_passes(run, step, runs[i].passes, options->warmup, options->repeat, runs[i].timing);
        if (error != cudaSuccess) return error;
        const struct timing *timing = runs[i].timing;
        fprintf(report, "  %s %.4f ms, median of %d (quartiles %.4f and %.4f); %.3f TFLOP/s\n", runs[i].name, timing->median,
                options->repeat, timing->p25, timing->p75, pass_flops(&run->problem, runs[i].passes) / timing->median * 1e-9);
    }
    return cudaSuccess;
}

/* Run each pass once. Meter, trace and clock cover only the passes that the options name. */
static cudaError_t run_passes(struct run *run, const struct step *step, const struct options *options, FILE *trace,
                              double *seconds) {
    struct passes passes = options->passes;
    double started = 0.0;
    cudaError_t error = cudaSuccess;
    if (options->shuffle_seed != 0) simt_shuffle_blocks((unsigned)options->shuffle_seed);
    for (int pass = 0; pass <= passes.backward && error == cudaSuccess; pass++) {
        if (pass == !passes.forward) { /* the first that they name */
            if (options->meter) simt_meter_start((unsigned)options->meter_every);
            if (trace != NULL) simt_trace_start(trace, options->trace_blocks);
            started = seconds_now();
        }
        error = pass == 0 ? run_forward(run, step) : run_backward(run, step, passes.deterministic);
    }
    *seconds = seconds_now() - started;
    if (options->meter) simt_meter_stop();
    if (trace != NULL) simt_trace_stop();
    return error;
}

/* Runs, checks and times a step, and prints what comes of it. EXIT_FAILED: the device failed, and `result` is incomplete. */
static int try_step(const struct step *step, const struct options *options, struct run *run, FILE *trace,
                    struct result *result) {
    cudaError_t error = run_passes(run, step, options, trace, &result->host_seconds);
    if (error != cudaSuccess) return device_failed(options->passes.backward ? "backward" : "forward", error);
    const char *broken_guard = NULL;
    error = find_broken_guard(run, &broken_guard);
    if (error != cudaSuccess) return device_failed("reading the guard bands", error);

    print_heading(step, options, run);
    if (options->print) print_corners(run, options);
    if (options->meter) {
        fflush(report);
        simt_meter_print(report, options->meter_source);
    }
    result->ok = true;
    if (options->check) {
        result->verdict = check_run(run, options->passes.backward, check_budget);
        result->ok = result->verdict.ok && broken_guard == NULL;
        print_verdict(report, run, options->passes.backward, &result->verdict);
        if (broken_guard != NULL)
            fprintf(report, "      the kernel wrote outside of %s: the guard band beside it has changed\n", broken_guard);
    }
    if (options->time && !run->simulated) {
        error = time_and_print(run, step, options, result);
        if (error != cudaSuccess) return device_failed("timing", error);
    }
    return result->ok ? EXIT_OK : EXIT_WRONG;
}

/* One write, so that lines of several programs do not mix and an interrupted one leaves no half line. */
static bool write_and_free(FILE *file, char *text) {
    if (text == NULL) return false;
    setvbuf(file, NULL, _IOFBF, strlen(text) + 2);
    bool written = fprintf(file, "%s\n", text) > 0 && fflush(file) == 0;
    free(text);
    return written;
}

int harness_main(const struct step *step, const char *program, const char *kernel, int argc, char **argv) {
    program_invocation_short_name = (char *)program; /* what each message of err.h begins with */
    if (strcmp(step->name, program) != 0)
        errx(EXIT_USAGE, "the struct step of this program says .name = \"%s\"; it must be \"%s\"", step->name, program);
    struct options options = parse_options(argc, argv, step);
    if (options.describe)
        return write_and_free(stdout, describe_step(step, kernel)) ? EXIT_OK : not_written("describe", "standard output");
    report = options.json != NULL && strcmp(options.json, "-") == 0 ? stderr : stdout;
    const char *reason = step_refuses(step, &options.problem, options.passes);
    if (reason != NULL) errx(EXIT_USAGE, "%s", reason);
    cudaError_t error = find_devices(options.problem.devices);
    if (error != cudaSuccess) return device_failed("looking for a device", error);
    refuse_older_card(step);
    refuse_too_large(step, &options.problem);
    refuse_on_card(&options);
    signal(SIGPIPE, SIG_IGN);         /* a closed pipe is a write that fails */
    FILE *json = open_json(&options); /* before the run, so that a name that cannot be written costs nothing */
    struct output trace = {NULL};
    if (options.trace != NULL && !output_open(&trace, options.trace))
        err(EXIT_USAGE, "--trace: cannot write %s", options.trace);

    struct run run;
    struct result result = {.ok = false};
    error = run_create(&run, step, &options.problem, options.input, options.seed);
    int status =
        error != cudaSuccess ? device_failed("making the inputs", error) : try_step(step, &options, &run, trace.file, &result);
    if (json != NULL && status != EXIT_FAILED && !write_and_free(json, json_line(step, kernel, &run, &options, &result)))
        status = not_written("json", options.json);
    free_verdict(&result.verdict);
    if (error == cudaSuccess) run_destroy(&run);
    if (trace.file != NULL && !output_close(&trace)) status = not_written("trace", options.trace);
    if (json != NULL && json != stdout) fclose(json);
    return status;
}
