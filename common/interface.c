#include "interface.h"

#include "run.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "step_list.h"

#define DECLARE(name) extern const struct step step_##name;
FOR_EACH_STEP(DECLARE)

#define ADDRESS(name) &step_##name,
static const struct step *const steps[] = {FOR_EACH_STEP(ADDRESS)};

enum {
    STEP_COUNT = sizeof steps / sizeof *steps,
    LONGEST = 1 << 24, /* queries or keys: index arithmetic of the kernels ends somewhere behind it */
    ALIGNMENT = 16,    /* the widest load and store of a thread */
};

static const struct step *step_at(int step) { return step >= 0 && step < STEP_COUNT ? steps[step] : NULL; }

/* ---- what there is ------------------------------------------------------------------------------------------------- */

int attention_step_count(void) { return STEP_COUNT; }

const char *attention_step_name(int step) { return step_at(step) != NULL ? step_at(step)->name : NULL; }

const char *attention_step_idea(int step) { return step_at(step) != NULL ? step_at(step)->idea : NULL; }

int attention_step_find(const char *name) {
    if (name == NULL) return -1;
    size_t length = strlen(name);
    for (int i = 0; i < STEP_COUNT; i++) {
        const char *candidate = steps[i]->name;
        bool number_fits = length == 2 && strncmp(candidate, name, length) == 0;
        if (number_fits || strcmp(candidate, name) == 0) return i;
    }
    return -1;
}

int attention_step_has_forward(int step) { return step_at(step) != NULL && step_at(step)->forward != NULL; }

int attention_step_has_backward(int step) { return step_at(step) != NULL && step_at(step)->backward != NULL; }

int attention_step_has_deterministic_backward(int step) {
    return step_at(step) != NULL && step_at(step)->backward_deterministic != NULL;
}

/* ---- which problems ------------------------------------------------------------------------------------------------ */

static struct problem make_problem(int batch, int heads, int N_q, int N_kv, int d, int causal, float scale) {
    return (struct problem){
        .batch = batch, .heads = heads, .N_q = N_q, .N_kv = N_kv, .d = d, .causal = causal != 0, .scale = scale};
}

/* A program's options check these before a problem is made; callers of this library may pass anything. */
static const char *outside_sizes(const struct problem *p) {
    static char text[120];
    const struct {
        const char *name;
        int value, largest;
    } sizes[] = {{"batch", p->batch, MAX_BATCH_HEADS},
                 {"heads", p->heads, MAX_BATCH_HEADS},
                 {"N_q", p->N_q, LONGEST},
                 {"N_kv", p->N_kv, LONGEST},
                 {"d", p->d, MAX_HEAD_DIM}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i].value >= 1 && sizes[i].value <= sizes[i].largest) continue;
        snprintf(text, sizeof text, "%s = %d is out of range (1 to %d)", sizes[i].name, sizes[i].value,
                 sizes[i].largest);
        return text;
    }
    return NULL;
}

static const char *refusal(const struct step *step, const struct problem *problem) {
    const char *reason = outside_sizes(problem);
    if (reason == NULL) reason = attention_limits(problem);
    if (reason == NULL && step->refuses != NULL) reason = step->refuses(problem);
    return reason;
}

const char *attention_step_refuses(int step, int batch, int heads, int N_q, int N_kv, int d, int causal, float scale) {
    if (step_at(step) == NULL) return "there is no such step";
    struct problem problem = make_problem(batch, heads, N_q, N_kv, d, causal, scale);
    return refusal(step_at(step), &problem);
}

static size_t workspace_of(const struct step *step, const struct problem *problem) {
    return step->workspace_bytes != NULL ? step->workspace_bytes(problem) : 0;
}

size_t attention_step_workspace_bytes(int step, int batch, int heads, int N_q, int N_kv, int d, int causal,
                                      float scale) {
    struct problem problem = make_problem(batch, heads, N_q, N_kv, d, causal, scale);
    if (step_at(step) == NULL || refusal(step_at(step), &problem) != NULL) return 0;
    return workspace_of(step_at(step), &problem);
}

/* ---- the passes ---------------------------------------------------------------------------------------------------- */

static cudaError_t check_pointers(const void *const *pointers, int count) {
    for (int i = 0; i < count; i++) {
        if (pointers[i] == NULL) return cudaErrorInvalidValue;
        if ((uintptr_t)pointers[i] % ALIGNMENT != 0) return cudaErrorMisalignedAddress;
    }
    return cudaSuccess;
}

static cudaError_t run_pass(const struct step *step, attention_pass *pass, const struct problem *problem,
                            const struct tensors *tensors, void *workspace, void *stream) {
    if (pass == NULL || refusal(step, problem) != NULL) return cudaErrorNotSupported;
    const void *const needed[] = {workspace};
    cudaError_t error = workspace_of(step, problem) > 0 ? check_pointers(needed, 1) : cudaSuccess;
    return error != cudaSuccess ? error : pass(problem, tensors, workspace, stream);
}

int attention_step_forward(int step, int batch, int heads, int N_q, int N_kv, int d, int causal, float scale,
                           const float *Q, const float *K, const float *V, float *O, float *L, void *workspace,
                           void *stream) {
    const void *const needed[] = {Q, K, V, O, L};
    if (step_at(step) == NULL) return cudaErrorInvalidValue;
    cudaError_t error = check_pointers(needed, 5);
    if (error != cudaSuccess) return (int)error;
    struct problem problem = make_problem(batch, heads, N_q, N_kv, d, causal, scale);
    struct tensors tensors = {.Q = Q, .K = K, .V = V, .O = O, .L = L};
    return (int)run_pass(step_at(step), step_at(step)->forward, &problem, &tensors, workspace, stream);
}

static int run_backward_pass(int step, attention_pass *pass, const struct problem *problem,
                             const struct tensors *tensors, void *workspace, void *stream) {
    const void *const needed[] = {tensors->Q,  tensors->K,  tensors->V,  tensors->O, tensors->L,
                                  tensors->dO, tensors->dQ, tensors->dK, tensors->dV};
    cudaError_t error = check_pointers(needed, 9);
    return error != cudaSuccess ? (int)error : (int)run_pass(step_at(step), pass, problem, tensors, workspace, stream);
}

/* struct tensors serves both passes, so O and L are not const in it; a backward pass only reads them. */
#define BACKWARD(name, member)                                                                                         \
    int name(int step, int batch, int heads, int N_q, int N_kv, int d, int causal, float scale, const float *Q,        \
             const float *K, const float *V, const float *O, const float *L, const float *dO, float *dQ, float *dK,    \
             float *dV, void *workspace, void *stream) {                                                               \
        if (step_at(step) == NULL) return cudaErrorInvalidValue;                                                       \
        struct problem problem = make_problem(batch, heads, N_q, N_kv, d, causal, scale);                              \
        struct tensors tensors = {.Q = Q,                                                                              \
                                  .K = K,                                                                              \
                                  .V = V,                                                                              \
                                  .O = (float *)(uintptr_t)O,                                                          \
                                  .L = (float *)(uintptr_t)L,                                                          \
                                  .dO = dO,                                                                            \
                                  .dQ = dQ,                                                                            \
                                  .dK = dK,                                                                            \
                                  .dV = dV};                                                                           \
        return run_backward_pass(step, step_at(step)->member, &problem, &tensors, workspace, stream);                  \
    }
BACKWARD(attention_step_backward, backward)
BACKWARD(attention_step_backward_deterministic, backward_deterministic)

/* ---- errors and versions ------------------------------------------------------------------------------------------- */

const char *attention_error_name(int error) { return cudaGetErrorName((cudaError_t)error); }

const char *attention_error_text(int error) { return cudaGetErrorString((cudaError_t)error); }

int attention_cuda_version(void) {
    int version = 0;
    return cudaRuntimeGetVersion(&version) == cudaSuccess ? version : 0;
}

int attention_device_count(int *count) {
    *count = 0;
    return (int)cudaGetDeviceCount(count);
}
