#include "result.h"

#include "fnv.h"
#include "../simt/include/simulated.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_time(cJSON *line, double flops, const struct timing *timing) {
    const char *const names[] = {"ms_median", "ms_p25", "ms_p75", "tflops"};
    const double values[] = {timing->median, timing->p25, timing->p75, flops / timing->median * 1e-9};
    for (int i = 0; i < 4; i++) {
        if (timing->median > 0.0)
            cJSON_AddNumberToObject(line, names[i], values[i]);
        else
            cJSON_AddNullToObject(line, names[i]);
    }
}

static void add_outputs(cJSON *line, const struct run *run, const struct options *options, const struct result *result) {
    cJSON *relative = NULL, *largest = NULL, *bound = NULL, *bits = cJSON_AddObjectToObject(line, "bits");
    if (options->check) {
        relative = cJSON_AddObjectToObject(line, "err_rel");
        largest = cJSON_AddObjectToObject(line, "err_max");
        bound = cJSON_AddObjectToObject(line, "bound_rel");
    }
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        if (!is_output(tensor) || (is_backward(tensor) && !options->passes.backward)) continue;
        const char *name = tensor_table[tensor].json_name;
        const struct check *check = &result->verdict.checks[tensor];
        char text[17]; /* two runs whose results agree to the last bit have the same */
        size_t bytes = tensor_elements(&run->problem, tensor) * sizeof *run->host[tensor];
        snprintf(text, sizeof text, "%016" PRIx64, fnv_add(FNV_START, run->host[tensor], bytes));
        cJSON_AddStringToObject(bits, name, text);
        if (!options->check) continue;
        cJSON_AddNumberToObject(relative, name, check->err_rel);
        cJSON_AddNumberToObject(largest, name, check->err_max);
        cJSON_AddNumberToObject(bound, name, check->bound_rel);
    }
    if (options->check) {
        cJSON_AddNumberToObject(line, "checked_rows", (double)result->verdict.checked_queries);
        if (options->passes.backward) cJSON_AddNumberToObject(line, "checked_keys", (double)result->verdict.checked_keys);
        cJSON_AddBoolToObject(line, "ok", result->ok);
    } else {
        cJSON_AddNullToObject(line, "ok");
    }
}

static void add_toolkit(cJSON *line) {
    int runtime = 0;
    if (cudaRuntimeGetVersion(&runtime) != cudaSuccess || runtime == 0) return;
    char text[32];
    snprintf(text, sizeof text, "%d.%d", runtime / 1000, runtime % 1000 / 10);
    cJSON_AddStringToObject(line, "toolkit", text);
}

/* A field for each variant that the problem has. */
static void add_variants(cJSON *line, const struct problem *p) {
    if (p->windowed) cJSON_AddItemToObject(line, "window", cJSON_CreateIntArray((const int[]){p->left, p->right}, 2));
    if (p->softcap > 0.0f) cJSON_AddNumberToObject(line, "softcap", (double)p->softcap);
    if (p->alibi == ONE_FORMULA) cJSON_AddTrueToObject(line, "alibi");
    if (p->alibi == RELEASED_RULE) cJSON_AddStringToObject(line, "alibi", "released");
    if (p->dropout > 0.0f) cJSON_AddNumberToObject(line, "dropout", (double)p->dropout);
    if (p->rotary != NOT_ROTARY) cJSON_AddStringToObject(line, "rotary", p->rotary == HALVED ? "halved" : "interleaved");
    if (p->starts != NULL) cJSON_AddItemToObject(line, "starts", cJSON_CreateIntArray(p->starts, p->sequences + 1));
    if (p->lengths != NULL) cJSON_AddItemToObject(line, "lengths", cJSON_CreateIntArray(p->lengths, p->batch));
    if (p->page_size > 0) cJSON_AddNumberToObject(line, "page_size", p->page_size);
}

static cJSON *begin_line(const struct step *step, const char *kernel) {
    cJSON *line = cJSON_CreateObject();
    cJSON_AddStringToObject(line, "step", step->name);
    cJSON_AddStringToObject(line, "idea", step->idea);
    if (step->beside != NULL) cJSON_AddStringToObject(line, "beside", step->beside);
    cJSON_AddStringToObject(line, "kernel", kernel);
    return line;
}

static char *end_line(cJSON *line) {
    char *text = cJSON_PrintUnformatted(line);
    cJSON_Delete(line);
    return text;
}

char *describe_step(const struct step *step, const char *kernel) {
    cJSON *line = begin_line(step, kernel);
    cJSON *passes = cJSON_AddArrayToObject(line, "passes");
    if (step->forward != NULL) cJSON_AddItemToArray(passes, cJSON_CreateString("fwd"));
    if (step->backward != NULL) cJSON_AddItemToArray(passes, cJSON_CreateString("bwd"));
    cJSON_AddBoolToObject(line, "deterministic", step->backward_deterministic != NULL);
    cJSON *dtypes = cJSON_AddArrayToObject(line, "dtypes");
    for (enum dtype dtype = 0; dtype < DTYPES; dtype++)
        if (takes_dtype(step, dtype)) cJSON_AddItemToArray(dtypes, cJSON_CreateString(dtype_names[dtype]));
    cJSON_AddNumberToObject(line, "d_multiple", step->d_multiple > 1 ? step->d_multiple : 1);
    cJSON_AddBoolToObject(line, "grouped_heads", step->grouped_heads);
    cJSON_AddNumberToObject(line, "most_queries", step->most_queries); /* 0: any number */
    cJSON_AddNumberToObject(line, "compute_capability", step->compute_capability);
    if (step->most_devices > 1) cJSON_AddNumberToObject(line, "most_devices", step->most_devices);
    cJSON *variants = step->variants != 0 ? cJSON_AddArrayToObject(line, "variants") : NULL;
    static const char *const names[] = {"window", "softcap", "alibi", "dropout", "rotary", "lengths", "page-size"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((step->variants >> i & 1u) != 0) cJSON_AddItemToArray(variants, cJSON_CreateString(names[i]));
    return end_line(line);
}

char *json_line(const struct step *step, const char *kernel, const struct run *run, const struct options *options,
                const struct result *result) {
    const struct problem *problem = &run->problem;
    struct passes passes = options->passes;
    struct cudaDeviceProp properties;
    cJSON *line = begin_line(step, kernel);
    cJSON_AddStringToObject(line, "device",
                            cudaGetDeviceProperties(&properties, 0) == cudaSuccess ? properties.name : "unknown");
    cJSON_AddStringToObject(line, "dtype", dtype_names[problem->dtype]);
    if (problem->dtype == FP8) {
        cJSON_AddStringToObject(line, "fp8", problem->fp8 == E4M3 ? "e4m3" : "e5m2");
        cJSON_AddStringToObject(line, "scales",
                                problem->scales == OF_TENSOR ? "tensor"
                                : problem->scales == OF_HEAD ? "head"
                                                             : "block");
        if (options->check) cJSON_AddNumberToObject(line, "total_err_rel", result->verdict.total_error);
    }
    cJSON_AddStringToObject(line, "pass", !passes.backward ? "fwd" : passes.forward ? "both" : "bwd");
    if (passes.backward) cJSON_AddBoolToObject(line, "deterministic", passes.deterministic);
    cJSON_AddNumberToObject(line, "batch", problem->batch);
    cJSON_AddNumberToObject(line, "heads", problem->heads);
    cJSON_AddNumberToObject(line, "heads_kv", kv_heads(problem));
    cJSON_AddNumberToObject(line, "seq", problem->N_q);
    cJSON_AddNumberToObject(line, "seq_kv", problem->N_kv);
    cJSON_AddNumberToObject(line, "dim", problem->d);
    cJSON_AddBoolToObject(line, "causal", problem->causal);
    if (problem->devices > 1) cJSON_AddNumberToObject(line, "devices", problem->devices);
    add_variants(line, problem);
    cJSON_AddNumberToObject(line, "scale", (double)problem->scale);
    cJSON_AddNumberToObject(line, "seed", (double)options->seed);
    cJSON_AddStringToObject(line, "input", input_names[options->input]);
    cJSON_AddNumberToObject(line, "repeat", result->time.median > 0.0 ? options->repeat : 0);
    add_time(line, pass_flops(problem, passes), &result->time);
    if (passes.forward && passes.backward) {
        struct passes forward = {.forward = true}, backward = {.backward = true};
        add_time(cJSON_AddObjectToObject(line, "fwd"), pass_flops(problem, forward), &result->forward_time);
        add_time(cJSON_AddObjectToObject(line, "bwd"), pass_flops(problem, backward), &result->backward_time);
    }
    add_outputs(line, run, options, result);
    cJSON_AddNumberToObject(line, "flops", pass_flops(problem, passes));
    cJSON_AddNumberToObject(line, "tensor_bytes", tensor_bytes(problem, passes));
    cJSON_AddNumberToObject(line, "workspace_bytes", (double)run->workspace_bytes);
    cJSON_AddNumberToObject(line, "host_seconds", result->host_seconds);
    if (options->meter) {
        cJSON_AddNumberToObject(line, "calls", (double)simt_calls());
        char *meter = simt_meter_json();
        cJSON_AddItemToObject(line, "meter", cJSON_Parse(meter));
        free(meter);
    }
    add_toolkit(line);
    for (int i = 0; i < options->stamp_count; i++) {
        const char *equals = strchr(options->stamps[i], '=');
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)(equals - options->stamps[i]), options->stamps[i]);
        cJSON_AddStringToObject(line, key, equals + 1);
    }
    return end_line(line);
}
