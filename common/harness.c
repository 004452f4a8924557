#include "harness.h"

#include "options.h"
#include "run.h"
#include "simulated.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EXIT_OK = 0, EXIT_WRONG = 1, EXIT_DEVICE = 3 };

/* Multiply-adds that the reference may spend on one check: about two seconds on two cores. */
static const double check_budget = 2e9;

struct timing {
    double median, p25, p75; /* milliseconds */
};

/* Readable lines go to standard output, or to standard error when that carries the JSON. */
static FILE *report;

static int device_failed(const struct step *step, const char *doing, cudaError_t error) {
    fprintf(stderr, "%s: %s: %s (%s)\n", step->name, doing, cudaGetErrorName(error), cudaGetErrorString(error));
    return EXIT_DEVICE;
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- before anything runs: sizes ------------------------------------------------------------------------------------ */

static void refuse_unsupported(const struct step *step, const struct step *forward, const struct problem *problem) {
    const char *reason = attention_limits(problem);
    if (reason == NULL && step->refuses != NULL) reason = step->refuses(problem);
    if (reason == NULL && forward->refuses != NULL) reason = forward->refuses(problem);
    if (reason != NULL) usage_error(step->name, "%s", reason);
}

static void refuse_too_large(const struct step *step, const struct problem *problem) {
    size_t free_bytes = 0, total_bytes = 0;
    double workspace = step->workspace_bytes != NULL ? (double)step->workspace_bytes(problem) : 0.0;
    double tensors = tensor_bytes(problem, step->backward != NULL), needed = tensors + workspace;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) return; /* told by the first allocation */
    /* Where device memory is the host's own, the host's copies come out of it too. */
    if (device_is_simulated()) needed += tensors;
    if (needed > (double)total_bytes)
        usage_error(step->name,
                    "this problem needs %.1f GB of device memory (%.1f of it workspace), the device has %.1f",
                    needed / 1e9, workspace / 1e9, (double)total_bytes / 1e9);
}

static void refuse_on_card(const struct step *step, const struct options *options) {
    if (simt_meter_start == NULL && options->meter)
        usage_error(step->name, "--meter works on the simulated device only: on a card, use Nsight Compute");
    if (simt_shuffle_blocks == NULL && options->shuffle_seed != 0)
        usage_error(step->name, "--shuffle-seed works on the simulated device only");
}

/* Open the JSON file before the run, so that a name that cannot be written costs nothing. */
static FILE *open_json(const struct step *step, const char *name) {
    if (name == NULL) return NULL;
    if (strcmp(name, "-") == 0) return stdout;
    FILE *file = fopen(name, "a");
    if (file == NULL) usage_error(step->name, "--json: cannot write %s: %s", name, strerror(errno));
    return file;
}

/* ---- time ------------------------------------------------------------------------------------------------------------- */

static int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double quantile(const float *sorted, int count, double q) {
    double position = q * (count - 1);
    int below = (int)position;
    int above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (position - below) * (double)(sorted[above] - sorted[below]);
}

/* Overwrite a buffer twice the size of the L2 cache, so that each timed run finds its inputs in device memory. */
struct flush {
    void *buffer;
    size_t bytes;
};

static cudaError_t make_flush(struct flush *flush) {
    int l2_bytes = 0;
    cudaError_t error = cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, 0);
    if (error != cudaSuccess) return error;
    flush->bytes = 2 * (size_t)l2_bytes;
    return cudaMalloc(&flush->buffer, flush->bytes);
}

/* What is timed: one pass, or a forward and a backward pass one after the other. NULL is no pass. */
struct passes {
    attention_pass *forward, *backward;
};

static cudaError_t time_once(struct run *run, struct passes passes, const struct flush *flush, cudaEvent_t start,
                             cudaEvent_t stop, float *milliseconds) {
    cudaError_t error = cudaMemsetAsync(flush->buffer, 0, flush->bytes, NULL);
    if (error == cudaSuccess) error = cudaEventRecord(start, NULL);
    if (error == cudaSuccess && passes.forward != NULL)
        error = passes.forward(&run->problem, &run->device, run->workspace, NULL);
    if (error == cudaSuccess && passes.backward != NULL)
        error = passes.backward(&run->problem, &run->device, run->workspace, NULL);
    if (error == cudaSuccess) error = cudaEventRecord(stop, NULL);
    if (error == cudaSuccess) error = cudaEventSynchronize(stop);
    if (error == cudaSuccess) error = cudaEventElapsedTime(milliseconds, start, stop);
    return error;
}

static cudaError_t time_passes(struct run *run, struct passes passes, const struct options *options,
                               struct timing *timing) {
    struct flush flush = {0};
    cudaEvent_t start = NULL, stop = NULL;
    float *samples = malloc((size_t)options->repeat * sizeof *samples);
    if (samples == NULL) abort();
    cudaError_t error = make_flush(&flush);
    if (error == cudaSuccess) error = cudaEventCreate(&start);
    if (error == cudaSuccess) error = cudaEventCreate(&stop);
    for (int i = -options->warmup; i < options->repeat && error == cudaSuccess; i++)
        error = time_once(run, passes, &flush, start, stop, &samples[i < 0 ? 0 : i]);
    if (error == cudaSuccess) {
        qsort(samples, (size_t)options->repeat, sizeof *samples, compare_floats);
        *timing = (struct timing){quantile(samples, options->repeat, 0.5), quantile(samples, options->repeat, 0.25),
                                  quantile(samples, options->repeat, 0.75)};
    }
    if (start != NULL) cudaEventDestroy(start);
    if (stop != NULL) cudaEventDestroy(stop);
    cudaFree(flush.buffer);
    free(samples);
    return error;
}

/* Two products forward, five backward, each a multiply-add for every unmasked pair and column. */
static double flops(const struct problem *problem, bool forward, bool backward) {
    return ((forward ? 4.0 : 0.0) + (backward ? 10.0 : 0.0)) * unmasked_pairs(problem) * problem->d;
}

/* ---- readable report -------------------------------------------------------------------------------------------------- */

static void print_corner(const char *name, const float *values, int rows, int columns) {
    fprintf(report, "%s, first head\n", name);
    for (int i = 0; i < rows && i < 3; i++) {
        for (int j = 0; j < columns && j < 3; j++) fprintf(report, "  %10.6f", (double)values[i * columns + j]);
        fputc('\n', report);
    }
}

/* On the host. */
struct outputs {
    float *O, *L, *dQ, *dK, *dV; /* the gradients are NULL when no backward pass is asked for */
};

static void print_corners(const struct run *run, const struct outputs *out) {
    const struct problem *problem = &run->problem;
    const struct {
        const char *name;
        const float *values;
        int rows, columns;
    } matrices[] = {{"Q", run->Q, problem->N_q, problem->d},
                    {"K", run->K, problem->N_kv, problem->d},
                    {"V", run->V, problem->N_kv, problem->d},
                    {"O", out->O, problem->N_q, problem->d},
                    {"L", out->L, problem->N_q, 1},
                    {"dO", run->dO, problem->N_q, problem->d},
                    {"dQ", out->dQ, problem->N_q, problem->d},
                    {"dK", out->dK, problem->N_kv, problem->d},
                    {"dV", out->dV, problem->N_kv, problem->d}};
    int count = out->dQ != NULL ? 9 : 5;
    for (int i = 0; i < count; i++)
        print_corner(matrices[i].name, matrices[i].values, matrices[i].rows, matrices[i].columns);
}

static void print_check(const char *name, const struct check *check) {
    fprintf(report, "  %-3s error %.1e of its norm (bound %.1e), at most %.1e (bound %.1e)  %s\n", name, check->err_rel,
            check->bound_rel, check->err_max, check->bound_max, check->ok ? "ok" : "WRONG");
}

/* Where an element of a row lies, N rows to a head, as a reader would look for it. */
static void print_wrong_element(const struct problem *problem, const char *name, size_t N, size_t row, size_t column,
                                float got, double expected) {
    size_t head = row / N;
    fprintf(report, "      %s at (batch %zu, head %zu, row %zu, column %zu): got %g, expected %g\n", name,
            head / (size_t)problem->heads, head % (size_t)problem->heads, row % N, column, (double)got, expected);
}

/* The first mismatches of a matrix of d columns, of which the listed rows were compared. */
static void print_first_wrong(const struct problem *problem, const char *name, const struct check *check,
                              const float *values, size_t N, size_t d, const size_t *rows) {
    for (size_t i = 0; i < check->wrong && i < 3; i++) {
        size_t row = rows[check->first_wrong[i] / d], column = check->first_wrong[i] % d;
        print_wrong_element(problem, name, N, row, column, values[row * d + column], check->expected[i]);
    }
}

static void print_forward_check(const struct run *run, const struct forward_check *result, const struct outputs *out) {
    const struct problem *p = &run->problem;
    size_t N_q = (size_t)p->N_q, d = (size_t)p->d;
    print_check("O", &result->O);
    print_check("L", &result->L);
    if (result->checked_rows < query_rows(p))
        fprintf(report, "      %zu of %zu rows compared\n", result->checked_rows, query_rows(p));
    print_first_wrong(p, "O", &result->O, out->O, N_q, d, result->rows);
    print_first_wrong(p, "L", &result->L, out->L, N_q, 1, result->rows);
    if (result->not_finite < query_elements(p))
        print_wrong_element(p, "O", N_q, result->not_finite / d, result->not_finite % d, out->O[result->not_finite],
                            NAN);
}

static void print_backward_check(const struct run *run, const struct backward_check *result,
                                 const struct outputs *out) {
    const struct problem *p = &run->problem;
    size_t N_q = (size_t)p->N_q, N_kv = (size_t)p->N_kv, d = (size_t)p->d;
    print_check("dQ", &result->dQ);
    print_check("dK", &result->dK);
    print_check("dV", &result->dV);
    if (result->checked_rows < query_rows(p) || result->checked_keys < key_rows(p))
        fprintf(report, "      %zu of %zu query rows and %zu of %zu key rows compared\n", result->checked_rows,
                query_rows(p), result->checked_keys, key_rows(p));
    print_first_wrong(p, "dQ", &result->dQ, out->dQ, N_q, d, result->rows);
    print_first_wrong(p, "dK", &result->dK, out->dK, N_kv, d, result->keys);
    print_first_wrong(p, "dV", &result->dV, out->dV, N_kv, d, result->keys);
    if (!result->finite) fprintf(report, "      a gradient holds NaN or infinity\n");
}

/* ---- JSON --------------------------------------------------------------------------------------------------------------- */

/* NULL where nothing was timed. */
static void add_time(cJSON *line, double pass_flops, const struct timing *timing) {
    const char *const names[] = {"ms_median", "ms_p25", "ms_p75", "tflops"};
    for (int i = 0; i < 4; i++) {
        if (timing == NULL) {
            cJSON_AddNullToObject(line, names[i]);
            continue;
        }
        const double values[] = {timing->median, timing->p25, timing->p75, pass_flops / timing->median * 1e-9};
        cJSON_AddNumberToObject(line, names[i], values[i]);
    }
}

/* All that one run finds out. */
struct result {
    struct forward_check forward;
    struct backward_check backward;
    bool ok;
    double host_seconds;
    bool timed;
    struct timing forward_time, backward_time, time; /* the last one of all that was asked for */
};

static void add_checks(cJSON *line, const struct result *result, bool backward) {
    const struct {
        const char *name;
        const struct check *check;
    } checks[] = {{"o", &result->forward.O},
                  {"lse", &result->forward.L},
                  {"dq", &result->backward.dQ},
                  {"dk", &result->backward.dK},
                  {"dv", &result->backward.dV}};
    cJSON *relative = cJSON_AddObjectToObject(line, "err_rel"), *largest = cJSON_AddObjectToObject(line, "err_max");
    cJSON *bound = cJSON_AddObjectToObject(line, "bound_rel");
    for (int i = 0; i < (backward ? 5 : 2); i++) {
        cJSON_AddNumberToObject(relative, checks[i].name, checks[i].check->err_rel);
        cJSON_AddNumberToObject(largest, checks[i].name, checks[i].check->err_max);
        cJSON_AddNumberToObject(bound, checks[i].name, checks[i].check->bound_rel);
    }
    cJSON_AddNumberToObject(line, "checked_rows",
                            (double)(backward ? result->backward.checked_rows : result->forward.checked_rows));
    if (backward) cJSON_AddNumberToObject(line, "checked_keys", (double)result->backward.checked_keys);
    cJSON_AddBoolToObject(line, "ok", result->ok);
}

/* FNV-1a of the bytes: two runs whose results agree to the last bit have the same. */
static uint64_t fingerprint(const float *values, size_t count) {
    const unsigned char *bytes = (const unsigned char *)values;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count * sizeof *values; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

static void add_bits(cJSON *line, const struct problem *problem, const struct outputs *out, bool backward) {
    const struct {
        const char *name;
        const float *values;
        size_t count;
    } outputs[] = {{"o", out->O, query_elements(problem)},
                   {"lse", out->L, query_rows(problem)},
                   {"dq", out->dQ, query_elements(problem)},
                   {"dk", out->dK, key_elements(problem)},
                   {"dv", out->dV, key_elements(problem)}};
    cJSON *bits = cJSON_AddObjectToObject(line, "bits");
    for (int i = 0; i < (backward ? 5 : 2); i++) {
        char text[17];
        snprintf(text, sizeof text, "%016" PRIx64, fingerprint(outputs[i].values, outputs[i].count));
        cJSON_AddStringToObject(bits, outputs[i].name, text);
    }
}

static void add_versions(cJSON *line) {
    int driver = 0, runtime = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || cudaRuntimeGetVersion(&runtime) != cudaSuccess || runtime == 0)
        return;
    char text[32];
    snprintf(text, sizeof text, "%d.%d", runtime / 1000, runtime % 1000 / 10);
    cJSON_AddStringToObject(line, "toolkit", text);
}

static char *json_line(const struct step *step, const struct run *run, const struct options *options,
                       const struct result *result, const struct outputs *out) {
    const struct problem *problem = &run->problem;
    struct cudaDeviceProp properties;
    cJSON *line = cJSON_CreateObject();
    cJSON_AddStringToObject(line, "step", step->name);
    cJSON_AddStringToObject(line, "idea", step->idea);
    cJSON_AddStringToObject(line, "device",
                            cudaGetDeviceProperties(&properties, 0) == cudaSuccess ? properties.name : "unknown");
    cJSON_AddStringToObject(line, "dtype", "fp32");
    cJSON_AddStringToObject(line, "pass", !options->backward ? "fwd" : options->forward ? "both" : "bwd");
    if (options->backward) cJSON_AddBoolToObject(line, "deterministic", options->deterministic);
    cJSON_AddNumberToObject(line, "batch", problem->batch);
    cJSON_AddNumberToObject(line, "heads", problem->heads);
    cJSON_AddNumberToObject(line, "seq", problem->N_q);
    cJSON_AddNumberToObject(line, "seq_kv", problem->N_kv);
    cJSON_AddNumberToObject(line, "dim", problem->d);
    cJSON_AddBoolToObject(line, "causal", problem->causal);
    cJSON_AddNumberToObject(line, "scale", (double)problem->scale);
    cJSON_AddNumberToObject(line, "seed", (double)options->seed);
    cJSON_AddStringToObject(line, "input", input_name(options->input));
    cJSON_AddNumberToObject(line, "repeat", result->timed ? options->repeat : 0);
    add_time(line, flops(problem, options->forward, options->backward), result->timed ? &result->time : NULL);
    if (options->forward && options->backward) {
        add_time(cJSON_AddObjectToObject(line, "fwd"), flops(problem, true, false),
                 result->timed ? &result->forward_time : NULL);
        add_time(cJSON_AddObjectToObject(line, "bwd"), flops(problem, false, true),
                 result->timed ? &result->backward_time : NULL);
    }
    if (options->check)
        add_checks(line, result, options->backward);
    else
        cJSON_AddNullToObject(line, "ok");
    add_bits(line, problem, out, options->backward);
    cJSON_AddNumberToObject(line, "workspace_bytes", (double)run->workspace_bytes);
    cJSON_AddNumberToObject(line, "tensor_bytes", tensor_bytes(problem, options->backward));
    cJSON_AddNumberToObject(line, "host_seconds", result->host_seconds);
    if (options->meter) {
        char *meter = simt_meter_json();
        cJSON_AddItemToObject(line, "meter", cJSON_Parse(meter));
        free(meter);
    }
    add_versions(line);
    for (int i = 0; i < options->stamp_count; i++) {
        const char *equals = strchr(options->stamps[i], '=');
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)(equals - options->stamps[i]), options->stamps[i]);
        cJSON_AddStringToObject(line, key, equals + 1);
    }
    char *text = cJSON_PrintUnformatted(line);
    cJSON_Delete(line);
    return text;
}

/* One write, so that lines of several programs do not mix and an interrupted one leaves no half line. */
static bool write_json(FILE *file, const char *text) {
    setvbuf(file, NULL, _IOFBF, strlen(text) + 2);
    return fprintf(file, "%s\n", text) > 0 && fflush(file) == 0;
}

/* ---- the program -------------------------------------------------------------------------------------------------------- */

static void print_heading(const struct step *step, const struct step *forward, const struct options *options,
                          const struct run *run) {
    struct cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) properties.name[0] = '\0';
    const struct problem *p = &run->problem;
    fprintf(report, "%s %s%s on %s: batch %d, heads %d, %d queries, %d keys, d %d%s\n", step->name,
            !options->backward ? "forward"
            : options->forward ? "forward and backward"
                               : "backward",
            options->deterministic ? ", deterministic," : "", run->simulated ? "the simulated device" : properties.name,
            p->batch, p->heads, p->N_q, p->N_kv, p->d, p->causal ? ", causal" : "");
    if (forward != step) fprintf(report, "  O and L by %s\n", forward->name);
}

static void print_time(const char *name, const struct timing *timing, int repeat, double pass_flops) {
    fprintf(report, "  %s %.4f ms, median of %d (quartiles %.4f and %.4f); %.3f TFLOP/s\n", name, timing->median,
            repeat, timing->p25, timing->p75, pass_flops / timing->median * 1e-9);
}

static cudaError_t time_and_print(struct run *run, const struct step *step, const struct step *forward,
                                  const struct options *options, struct result *result) {
    const struct problem *p = &run->problem;
    attention_pass *backward = options->deterministic ? step->backward_deterministic : step->backward;
    cudaError_t error = cudaSuccess;
    if (options->forward && options->backward) {
        error = time_passes(run, (struct passes){forward->forward, NULL}, options, &result->forward_time);
        if (error == cudaSuccess)
            error = time_passes(run, (struct passes){NULL, backward}, options, &result->backward_time);
        if (error != cudaSuccess) return error;
        print_time("forward ", &result->forward_time, options->repeat, flops(p, true, false));
        print_time("backward", &result->backward_time, options->repeat, flops(p, false, true));
    }
    struct passes asked_for = {options->forward ? forward->forward : NULL, options->backward ? backward : NULL};
    error = time_passes(run, asked_for, options, &result->time);
    if (error == cudaSuccess)
        print_time("time", &result->time, options->repeat, flops(p, options->forward, options->backward));
    return error;
}

/* The passes once each, metered as asked for, their results on the host. Seconds count what is metered. */
static cudaError_t run_once(struct run *run, const struct step *step, const struct step *forward,
                            const struct options *options, struct outputs *out, double *seconds) {
    if (options->shuffle_seed != 0) simt_shuffle_blocks(options->shuffle_seed);
    if (options->meter && options->forward) simt_meter_start((unsigned)options->meter_every);
    double started = seconds_now();
    cudaError_t error = run_forward(run, forward);
    if (error == cudaSuccess && options->backward) {
        if (!options->forward) {
            if (options->meter) simt_meter_start((unsigned)options->meter_every);
            started = seconds_now();
        }
        error = run_backward(run, step, options->deterministic);
    }
    if (options->meter) simt_meter_stop();
    *seconds = seconds_now() - started;
    if (error == cudaSuccess) error = fetch_forward(run, out->O, out->L);
    if (error == cudaSuccess && options->backward) error = fetch_backward(run, out->dQ, out->dK, out->dV);
    return error;
}

static int run_and_report(const struct step *step, const struct step *forward, const struct options *options,
                          struct run *run, FILE *json, struct outputs *out) {
    struct result result = {.ok = true};
    cudaError_t error = run_once(run, step, forward, options, out, &result.host_seconds);
    if (error != cudaSuccess) return device_failed(step, options->backward ? "backward" : "forward", error);
    const char *broken = NULL;
    error = find_broken_guard(run, &broken);
    if (error != cudaSuccess) return device_failed(step, "reading the guard bands", error);

    print_heading(step, forward, options, run);
    if (options->print) print_corners(run, out);
    if (options->meter) {
        fflush(report);
        simt_meter_print(report, options->meter_source);
    }
    if (options->check) {
        result.forward = check_forward(run, out->O, out->L, check_budget);
        print_forward_check(run, &result.forward, out);
        result.ok = result.forward.ok;
        if (options->backward) {
            result.backward = check_backward(run, out->O, out->L, out->dQ, out->dK, out->dV, check_budget);
            print_backward_check(run, &result.backward, out);
            result.ok = result.ok && result.backward.ok;
        }
        if (broken != NULL) {
            fprintf(report, "      the kernel wrote outside of %s: the guard band beside it has changed\n", broken);
            result.ok = false;
        }
    }
    int status = result.ok ? EXIT_OK : EXIT_WRONG;
    result.timed = options->time && !run->simulated;
    if (result.timed) {
        error = time_and_print(run, step, forward, options, &result);
        if (error != cudaSuccess) status = device_failed(step, "timing", error);
    }
    if (json != NULL && error == cudaSuccess) {
        char *text = json_line(step, run, options, &result, out);
        if (text == NULL || !write_json(json, text)) {
            fprintf(stderr, "%s: --json: writing to %s failed\n", step->name, options->json);
            status = EXIT_DEVICE;
        }
        free(text);
    }
    free_forward_check(&result.forward);
    free_backward_check(&result.backward);
    return status;
}

static float *allocate_output(size_t elements) {
    float *values = malloc(elements * sizeof *values);
    if (values == NULL) abort();
    return values;
}

int harness_main(const struct step *step, const struct step *forward, int argc, char **argv) {
    struct options options = parse_options(argc, argv, step);
    report = options.json != NULL && strcmp(options.json, "-") == 0 ? stderr : stdout;
    if (step->forward != NULL) forward = step;
    refuse_unsupported(step, forward, &options.problem);
    int devices = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess) return device_failed(step, "looking for a device", error);
    refuse_too_large(step, &options.problem);
    refuse_on_card(step, &options);
    FILE *json = open_json(step, options.json);

    struct run run;
    error = run_create(&run, step, &options.problem, options.input, options.seed);
    if (error != cudaSuccess) return device_failed(step, "making the inputs", error);
    struct outputs out = {.O = allocate_output(query_elements(&run.problem)),
                          .L = allocate_output(query_rows(&run.problem))};
    if (options.backward) {
        out.dQ = allocate_output(query_elements(&run.problem));
        out.dK = allocate_output(key_elements(&run.problem));
        out.dV = allocate_output(key_elements(&run.problem));
    }
    int status = run_and_report(step, forward, &options, &run, json, &out);
    float *outputs[] = {out.O, out.L, out.dQ, out.dK, out.dV};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) free(outputs[i]);
    run_destroy(&run);
    if (json != NULL && json != stdout) fclose(json);
    return status;
}
