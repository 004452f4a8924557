#include "interface.h"

#include "problem.h"

#include <stdint.h>
#include <string.h>

#include "step_list.h"

#define DECLARE(name) extern const struct step step_##name;
FOR_EACH_STEP(DECLARE)

#define ADDRESS(name) &step_##name,
static const struct step *const steps[] = {FOR_EACH_STEP(ADDRESS)};

enum {
    STEP_COUNT = sizeof steps / sizeof *steps,
    ALIGNMENT = 16, /* the widest load and store of a thread */
};

#define TYPE(member)                                                                                                           \
    _Generic(((struct attention_call *)NULL)->member, size_t : "size_t", int : "int", float : "float", default : "pointer")
#define FIELD(member)                                                                                                          \
    { #member, TYPE(member), offsetof(struct attention_call, member) }
static const struct attention_field fields[] = {
    FIELD(bytes),     FIELD(step),       FIELD(pass),      FIELD(dtype),     FIELD(batch),   FIELD(heads),
    FIELD(N_q),       FIELD(N_kv),       FIELD(d),         FIELD(heads_kv),  FIELD(causal),  FIELD(scale),
    FIELD(Q),         FIELD(K),          FIELD(V),         FIELD(O),         FIELD(L),       FIELD(dO),
    FIELD(dQ),        FIELD(dK),         FIELD(dV),        FIELD(workspace), FIELD(stream),  FIELD(windowed),
    FIELD(left),      FIELD(right),      FIELD(softcap),   FIELD(alibi),     FIELD(dropout), FIELD(dropout_seed),
    FIELD(rotary),    FIELD(starts),     FIELD(sequences), FIELD(longest),   FIELD(lengths), FIELD(pages),
    FIELD(page_size), FIELD(page_count), {NULL, NULL, 0},
};
const struct attention_field *attention_fields(void) { return fields; }
size_t attention_call_bytes(void) { return sizeof(struct attention_call); }

/* ---- what there is ------------------------------------------------------------------------------------------------- */

static const struct step *step_at(int step) { return step >= 0 && step < STEP_COUNT ? steps[step] : NULL; }

static attention_pass *pass_of(const struct step *step, int pass) {
    switch (step != NULL ? pass : -1) {
    case ATTENTION_FORWARD: return step->forward;
    case ATTENTION_BACKWARD: return step->backward;
    case ATTENTION_BACKWARD_DETERMINISTIC: return step->backward_deterministic;
    default: return NULL;
    }
}

int attention_step_count(void) { return STEP_COUNT; }
const char *attention_step_name(int step) { return step_at(step) != NULL ? step_at(step)->name : NULL; }
const char *attention_step_idea(int step) { return step_at(step) != NULL ? step_at(step)->idea : NULL; }
int attention_step_has(int step, int pass) { return pass_of(step_at(step), pass) != NULL; }

unsigned attention_step_dtypes(int step) {
    if (step_at(step) == NULL) return 0;
    return step_at(step)->dtypes != 0 ? step_at(step)->dtypes : 1u << FP32;
}

unsigned attention_step_variants(int step) {
    return step_at(step) != NULL ? step_at(step)->variants | (step_at(step)->grouped_heads ? 128u : 0u) : 0;
}

int attention_step_find(const char *name) {
    size_t length = name != NULL ? strlen(name) : 0;
    for (int i = 0; i < STEP_COUNT && name != NULL; i++) {
        const char *candidate = steps[i]->name;
        bool number_fits = length > 0 && strncmp(candidate, name, length) == 0 && candidate[length] == '_';
        if (number_fits || strcmp(candidate, name) == 0) return i;
    }
    return -1;
}

/* ---- calls --------------------------------------------------------------------------------------------------------- */

#define SAME(member) .member = call->member
static struct problem problem_of(const struct attention_call *call) {
    struct problem problem = {
        SAME(batch),  SAME(heads),     SAME(N_q),     SAME(N_kv),    SAME(d),       SAME(heads_kv),  SAME(causal),
        SAME(scale),  SAME(windowed),  SAME(left),    SAME(right),   SAME(softcap), SAME(dropout),   SAME(dropout_seed),
        SAME(starts), SAME(sequences), SAME(longest), SAME(lengths), SAME(pages),   SAME(page_size), SAME(page_count)};
    problem.dtype = (enum dtype)call->dtype;
    problem.rotary = (enum rotary)call->rotary;
    problem.alibi = (enum alibi)call->alibi;
    return problem;
}

const char *attention_refuses(const struct attention_call *call) {
    if (call->bytes != sizeof *call) return "struct attention_call has another layout here";
    const struct step *step = step_at(call->step);
    if (step == NULL) return "there is no such step";
    if (pass_of(step, call->pass) == NULL) return "this step has no such pass";
    if (call->dtype < 0 || call->dtype >= DTYPES) return "there is no such data type";
    if (call->dtype == FP8) return "fp8 is not supported through this interface: a call has no scales";
    if (call->rotary < NOT_ROTARY || call->rotary > HALVED) return "there is no such rotary embedding";
    if (call->alibi < NO_ALIBI || call->alibi > RELEASED_RULE) return "there is no such ALiBi";
    if ((call->pages != NULL) != (call->lengths != NULL) || (call->pages != NULL && call->page_count < 1))
        return "a cache in pages needs pages, lengths and page_count";
    struct problem problem = problem_of(call);
    struct passes passes = {.forward = call->pass == ATTENTION_FORWARD,
                            .backward = call->pass != ATTENTION_FORWARD,
                            .deterministic = call->pass == ATTENTION_BACKWARD_DETERMINISTIC};
    return step_refuses(step, &problem, passes);
}

size_t attention_workspace_bytes(const struct attention_call *call) {
    struct problem problem = problem_of(call);
    return attention_refuses(call) == NULL ? workspace_bytes_of(step_at(call->step), &problem) : 0;
}

static cudaError_t check_pointer(const void *pointer) {
    if (pointer == NULL) return cudaErrorInvalidValue;
    return (uintptr_t)pointer % ALIGNMENT != 0 ? cudaErrorMisalignedAddress : cudaSuccess;
}

int attention_run(const struct attention_call *call) {
    if (call->bytes != sizeof *call) return cudaErrorInvalidValue;
    if (attention_refuses(call) != NULL) return cudaErrorNotSupported;
    const struct step *step = step_at(call->step);
    struct problem problem = problem_of(call);
    struct tensors tensors = {call->Q,  call->K,  call->V,  call->O, call->L, call->dO,
                              call->dQ, call->dK, call->dV, NULL,    NULL,    NULL};
    cudaError_t error = workspace_bytes_of(step, &problem) > 0 ? check_pointer(call->workspace) : cudaSuccess;
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT && error == cudaSuccess; tensor++) {
        if (is_backward(tensor) && call->pass == ATTENTION_FORWARD) continue;
        error = check_pointer(*(void **)(void *)((char *)&tensors + tensor_table[tensor].offset));
    }
    if (error != cudaSuccess) return (int)error;
    return (int)pass_of(step, call->pass)(&problem, &tensors, call->workspace, call->stream);
}

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
