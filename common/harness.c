#include "harness.h"

#include "options.h"
#include "reference.h"
#include "run.h"
#include "simulated.h"

#include <cjson/cJSON.h>
#include <errno.h>
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

static void refuse_unsupported(const struct step *step, const struct problem *problem) {
    const char *reason = attention_limits(problem);
    if (reason == NULL && step->refuses != NULL) reason = step->refuses(problem);
    if (reason != NULL) usage_error(step->name, "%s", reason);
}

static void refuse_too_large(const struct step *step, const struct problem *problem) {
    size_t free_bytes = 0, total_bytes = 0;
    double workspace = step->workspace_bytes != NULL ? (double)step->workspace_bytes(problem) : 0.0;
    double needed = tensor_bytes(problem) + workspace;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) return; /* told by the first allocation */
    /* Where device memory is the host's own, the host's copies come out of it too. */
    if (device_is_simulated()) needed += tensor_bytes(problem);
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

static cudaError_t time_once(struct run *run, const struct step *step, const struct flush *flush, cudaEvent_t start,
                             cudaEvent_t stop, float *milliseconds) {
    cudaError_t error = cudaMemsetAsync(flush->buffer, 0, flush->bytes, NULL);
    if (error == cudaSuccess) error = cudaEventRecord(start, NULL);
    if (error == cudaSuccess) error = step->forward(&run->problem, &run->device, run->workspace, NULL);
    if (error == cudaSuccess) error = cudaEventRecord(stop, NULL);
    if (error == cudaSuccess) error = cudaEventSynchronize(stop);
    if (error == cudaSuccess) error = cudaEventElapsedTime(milliseconds, start, stop);
    return error;
}

static cudaError_t time_forward(struct run *run, const struct step *step, const struct options *options,
                                struct timing *timing) {
    struct flush flush = {0};
    cudaEvent_t start = NULL, stop = NULL;
    float *samples = malloc((size_t)options->repeat * sizeof *samples);
    if (samples == NULL) abort();
    cudaError_t error = make_flush(&flush);
    if (error == cudaSuccess) error = cudaEventCreate(&start);
    if (error == cudaSuccess) error = cudaEventCreate(&stop);
    for (int i = -options->warmup; i < options->repeat && error == cudaSuccess; i++)
        error = time_once(run, step, &flush, start, stop, &samples[i < 0 ? 0 : i]);
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

static double forward_flops(const struct problem *problem) { return 4.0 * unmasked_pairs(problem) * problem->d; }

/* ---- readable report -------------------------------------------------------------------------------------------------- */

static void print_corner(const char *name, const float *values, int rows, int columns) {
    fprintf(report, "%s, first head\n", name);
    for (int i = 0; i < rows && i < 3; i++) {
        for (int j = 0; j < columns && j < 3; j++) fprintf(report, "  %10.6f", (double)values[i * columns + j]);
        fputc('\n', report);
    }
}

static void print_corners(const struct run *run, const float *O, const float *L) {
    const struct problem *problem = &run->problem;
    print_corner("Q", run->Q, problem->N_q, problem->d);
    print_corner("K", run->K, problem->N_kv, problem->d);
    print_corner("V", run->V, problem->N_kv, problem->d);
    print_corner("O", O, problem->N_q, problem->d);
    print_corner("L", L, problem->N_q, 1);
}

static void print_check(const char *name, const struct check *check) {
    fprintf(report, "  %-3s error %.1e of its norm (bound %.1e), at most %.1e (bound %.1e)  %s\n", name, check->err_rel,
            check->bound_rel, check->err_max, check->bound_max, check->ok ? "ok" : "WRONG");
}

/* Where an element of row r lies, as a reader would look for it. */
static void print_wrong_element(const struct problem *problem, const char *name, size_t row, size_t column, float got,
                                double expected) {
    size_t N_q = (size_t)problem->N_q, head = row / N_q;
    fprintf(report, "      %s at (batch %zu, head %zu, row %zu, column %zu): got %g, expected %g\n", name,
            head / (size_t)problem->heads, head % (size_t)problem->heads, row % N_q, column, (double)got, expected);
}

/* The expected values are not kept, so the few rows that are shown are computed once more. */
static void print_first_wrong(const struct run *run, const struct forward_check *result, const float *O,
                              const float *L) {
    size_t d = (size_t)run->problem.d;
    double O_ref[MAX_HEAD_DIM], L_ref;
    for (size_t i = 0; i < result->O.wrong && i < 3; i++) {
        size_t row = result->rows[result->O.first_wrong[i] / d], column = result->O.first_wrong[i] % d;
        (void)reference_forward_rows(&run->problem, run->Q, run->K, run->V, &row, 1, O_ref, &L_ref);
        print_wrong_element(&run->problem, "O", row, column, O[row * d + column], O_ref[column]);
    }
    for (size_t i = 0; i < result->L.wrong && i < 3; i++) {
        size_t row = result->rows[result->L.first_wrong[i]];
        (void)reference_forward_rows(&run->problem, run->Q, run->K, run->V, &row, 1, O_ref, &L_ref);
        print_wrong_element(&run->problem, "L", row, 0, L[row], L_ref);
    }
    if (result->not_finite < query_elements(&run->problem))
        print_wrong_element(&run->problem, "O", result->not_finite / d, result->not_finite % d, O[result->not_finite],
                            NAN);
}

/* ---- JSON --------------------------------------------------------------------------------------------------------------- */

static void add_time(cJSON *line, const struct problem *problem, const struct timing *timing) {
    cJSON_AddItemToObject(line, "ms_median", timing != NULL ? cJSON_CreateNumber(timing->median) : cJSON_CreateNull());
    cJSON_AddItemToObject(line, "ms_p25", timing != NULL ? cJSON_CreateNumber(timing->p25) : cJSON_CreateNull());
    cJSON_AddItemToObject(line, "ms_p75", timing != NULL ? cJSON_CreateNumber(timing->p75) : cJSON_CreateNull());
    cJSON_AddItemToObject(line, "tflops",
                          timing != NULL ? cJSON_CreateNumber(forward_flops(problem) / timing->median * 1e-9)
                                         : cJSON_CreateNull());
}

static void add_check(cJSON *line, const struct forward_check *result) {
    cJSON *relative = cJSON_AddObjectToObject(line, "err_rel"), *largest = cJSON_AddObjectToObject(line, "err_max");
    cJSON *bound = cJSON_AddObjectToObject(line, "bound_rel");
    cJSON_AddNumberToObject(relative, "o", result->O.err_rel);
    cJSON_AddNumberToObject(relative, "lse", result->L.err_rel);
    cJSON_AddNumberToObject(largest, "o", result->O.err_max);
    cJSON_AddNumberToObject(largest, "lse", result->L.err_max);
    cJSON_AddNumberToObject(bound, "o", result->O.bound_rel);
    cJSON_AddNumberToObject(bound, "lse", result->L.bound_rel);
    cJSON_AddNumberToObject(line, "checked_rows", (double)result->checked_rows);
    cJSON_AddBoolToObject(line, "ok", result->ok);
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
                       const struct forward_check *result, const struct timing *timing, double host_seconds) {
    const struct problem *problem = &run->problem;
    struct cudaDeviceProp properties;
    cJSON *line = cJSON_CreateObject();
    cJSON_AddStringToObject(line, "step", step->name);
    cJSON_AddStringToObject(line, "idea", step->idea);
    cJSON_AddStringToObject(line, "device",
                            cudaGetDeviceProperties(&properties, 0) == cudaSuccess ? properties.name : "unknown");
    cJSON_AddStringToObject(line, "dtype", "fp32");
    cJSON_AddStringToObject(line, "pass", "fwd");
    cJSON_AddNumberToObject(line, "batch", problem->batch);
    cJSON_AddNumberToObject(line, "heads", problem->heads);
    cJSON_AddNumberToObject(line, "seq", problem->N_q);
    cJSON_AddNumberToObject(line, "seq_kv", problem->N_kv);
    cJSON_AddNumberToObject(line, "dim", problem->d);
    cJSON_AddBoolToObject(line, "causal", problem->causal);
    cJSON_AddNumberToObject(line, "scale", (double)problem->scale);
    cJSON_AddNumberToObject(line, "seed", (double)options->seed);
    cJSON_AddStringToObject(line, "input", input_name(options->input));
    cJSON_AddNumberToObject(line, "repeat", timing != NULL ? options->repeat : 0);
    add_time(line, problem, timing);
    if (result != NULL)
        add_check(line, result);
    else
        cJSON_AddNullToObject(line, "ok");
    cJSON_AddNumberToObject(line, "workspace_bytes", (double)run->workspace_bytes);
    cJSON_AddNumberToObject(line, "tensor_bytes", tensor_bytes(problem));
    cJSON_AddNumberToObject(line, "host_seconds", host_seconds);
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

static int run_and_report(const struct step *step, const struct options *options, struct run *run, FILE *json, float *O,
                          float *L) {
    double started = seconds_now();
    if (options->meter) simt_meter_start((unsigned)options->meter_every);
    if (options->shuffle_seed != 0) simt_shuffle_blocks(options->shuffle_seed);
    cudaError_t error = run_forward(run, step);
    if (options->meter) simt_meter_stop();
    double host_seconds = seconds_now() - started;
    if (error == cudaSuccess) error = fetch_forward(run, O, L);
    if (error != cudaSuccess) return device_failed(step, "forward", error);
    const char *broken = NULL;
    error = find_broken_guard(run, &broken);
    if (error != cudaSuccess) return device_failed(step, "reading the guard bands", error);

    struct cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) properties.name[0] = '\0';
    const struct problem *p = &run->problem;
    fprintf(report, "%s forward on %s: batch %d, heads %d, %d queries, %d keys, d %d%s\n", step->name,
            run->simulated ? "the simulated device" : properties.name, p->batch, p->heads, p->N_q, p->N_kv, p->d,
            p->causal ? ", causal" : "");
    if (options->print) print_corners(run, O, L);
    if (options->meter) {
        fflush(report);
        simt_meter_print(report, options->meter_source);
    }

    int status = EXIT_OK;
    struct forward_check result = {0};
    if (options->check) {
        result = check_forward(run, O, L, check_budget);
        print_check("O", &result.O);
        print_check("L", &result.L);
        if (result.checked_rows < query_rows(p))
            fprintf(report, "      %zu of %zu rows compared\n", result.checked_rows, query_rows(p));
        if (!result.ok) print_first_wrong(run, &result, O, L);
        if (broken != NULL) {
            fprintf(report, "      the kernel wrote outside of %s: the guard band beside it has changed\n", broken);
            result.ok = false;
        }
        if (!result.ok) status = EXIT_WRONG;
    }

    struct timing timing;
    bool timed = options->time && !run->simulated;
    if (timed) {
        error = time_forward(run, step, options, &timing);
        if (error != cudaSuccess) {
            free_forward_check(&result);
            return device_failed(step, "timing", error);
        }
        fprintf(report, "  time %.4f ms, median of %d (quartiles %.4f and %.4f); %.3f TFLOP/s\n", timing.median,
                options->repeat, timing.p25, timing.p75, forward_flops(p) / timing.median * 1e-9);
    }
    if (json != NULL) {
        char *text =
            json_line(step, run, options, options->check ? &result : NULL, timed ? &timing : NULL, host_seconds);
        if (text == NULL || !write_json(json, text)) {
            fprintf(stderr, "%s: --json: writing to %s failed\n", step->name, options->json);
            status = EXIT_DEVICE;
        }
        free(text);
    }
    free_forward_check(&result);
    return status;
}

int harness_main(const struct step *step, int argc, char **argv) {
    struct options options = parse_options(argc, argv, step);
    report = options.json != NULL && strcmp(options.json, "-") == 0 ? stderr : stdout;
    refuse_unsupported(step, &options.problem);
    int devices = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess) return device_failed(step, "looking for a device", error);
    refuse_too_large(step, &options.problem);
    refuse_on_card(step, &options);
    FILE *json = open_json(step, options.json);

    struct run run;
    error = run_create(&run, step, &options.problem, options.input, options.seed);
    if (error != cudaSuccess) return device_failed(step, "making the inputs", error);
    float *O = malloc(query_elements(&run.problem) * sizeof *O), *L = malloc(query_rows(&run.problem) * sizeof *L);
    if (O == NULL || L == NULL) abort();
    int status = run_and_report(step, &options, &run, json, O, L);
    free(O);
    free(L);
    run_destroy(&run);
    if (json != NULL && json != stdout) fclose(json);
    return status;
}
