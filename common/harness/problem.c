#include "problem.h"

#include "variants.h"

#include <stdio.h>
#include <stdlib.h>

void *host_memory(size_t count, size_t size) {
    void *values = malloc((count > 0 ? count : 1) * size);
    if (values != NULL) return values;
    fprintf(stderr, "no host memory for %zu values\n", count);
    abort();
}

const struct tensor_info tensor_table[TENSOR_COUNT] = {
    [TENSOR_Q] = {"Q", "q", false, false, FORWARD_INPUT, offsetof(struct tensors, Q)},
    [TENSOR_K] = {"K", "k", true, false, FORWARD_INPUT, offsetof(struct tensors, K)},
    [TENSOR_V] = {"V", "v", true, false, FORWARD_INPUT, offsetof(struct tensors, V)},
    [TENSOR_O] = {"O", "o", false, false, FORWARD_OUTPUT, offsetof(struct tensors, O)},
    [TENSOR_L] = {"L", "lse", false, true, FORWARD_OUTPUT, offsetof(struct tensors, L)},
    [TENSOR_dO] = {"dO", "do", false, false, BACKWARD_INPUT, offsetof(struct tensors, dO)},
    [TENSOR_dQ] = {"dQ", "dq", false, false, BACKWARD_OUTPUT, offsetof(struct tensors, dQ)},
    [TENSOR_dK] = {"dK", "dk", true, false, BACKWARD_OUTPUT, offsetof(struct tensors, dK)},
    [TENSOR_dV] = {"dV", "dv", true, false, BACKWARD_OUTPUT, offsetof(struct tensors, dV)},
};

size_t tensor_heads(const struct problem *problem, enum tensor tensor) {
    return (size_t)(tensor_table[tensor].per_key ? kv_heads(problem) : problem->heads);
}

size_t tensor_rows(const struct problem *problem, enum tensor tensor) {
    int N = tensor_table[tensor].per_key ? problem->N_kv : problem->N_q;
    return (size_t)problem->batch * tensor_heads(problem, tensor) * (size_t)N;
}

size_t tensor_columns(const struct problem *problem, enum tensor tensor) {
    return tensor_table[tensor].is_vector ? 1 : (size_t)problem->d;
}

size_t tensor_elements(const struct problem *problem, enum tensor tensor) {
    return tensor_rows(problem, tensor) * tensor_columns(problem, tensor);
}

const char *const dtype_names[DTYPES] = {"fp32", "fp16", "bf16", "fp8"};

size_t element_bytes(const struct problem *problem, enum tensor tensor) {
    if (problem->dtype == FP8 && tensor <= TENSOR_V) return problem->hadamard && tensor != TENSOR_V ? 2 : 1;
    return problem->dtype == FP32 || tensor == TENSOR_L ? 4 : 2;
}

bool takes_dtype(const struct step *step, enum dtype dtype) {
    return step->dtypes == 0 ? dtype == FP32 : (step->dtypes >> dtype & 1) != 0;
}

enum dtype usual_dtype(const struct step *step) { return takes_dtype(step, FP32) ? FP32 : takes_dtype(step, FP8) ? FP8 : BF16; }

double unmasked_pairs(const struct problem *problem) {
    int batches = problem->lengths != NULL ? problem->batch : 1; /* otherwise all are alike */
    double pairs = 0.0;
    for (int b = 0; b < batches; b++)
        for (int i = 0; i < problem->N_q; i++) pairs += (double)sight_within(problem, (size_t)b, 0, 0, i).keys;
    return pairs * problem->heads * (problem->batch / batches);
}

double pass_flops(const struct problem *problem, struct passes passes) {
    return ((passes.forward ? 4.0 : 0.0) + (passes.backward ? 10.0 : 0.0)) * unmasked_pairs(problem) * problem->d;
}

double tensor_bytes(const struct problem *problem, struct passes passes) {
    double bytes = 0.0;
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++)
        if (passes.backward || !is_backward(tensor))
            bytes += (double)(element_bytes(problem, tensor) * tensor_elements(problem, tensor));
    return bytes;
}

size_t workspace_bytes_of(const struct step *step, const struct problem *problem) {
    return step->workspace_bytes != NULL ? step->workspace_bytes(problem) : 0;
}

const char *step_refuses(const struct step *step, const struct problem *problem, struct passes passes) {
    const struct {
        const char *name;
        int value, largest;
    } sizes[] = {{"batch size", problem->batch, MAX_BATCH_HEADS},
                 {"number of heads", problem->heads, MAX_BATCH_HEADS},
                 {"number of queries", problem->N_q, MAX_LENGTH},
                 {"number of keys", problem->N_kv, MAX_LENGTH},
                 {"head dimension", problem->d, MAX_HEAD_DIM}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i].value >= 1 && sizes[i].value <= sizes[i].largest) continue;
        return refusal("%s %d is not supported: it must be from 1 to %d", sizes[i].name, sizes[i].value, sizes[i].largest);
    }
    double batch_heads = (double)problem->batch * problem->heads;
    if (batch_heads > MAX_BATCH_HEADS)
        return refusal("batch x heads = %.0f is not supported: the largest is %d", batch_heads, MAX_BATCH_HEADS);
    if (problem->heads_kv < 0 || problem->heads % kv_heads(problem) != 0)
        return refusal("%d heads of K and V are not supported: the number must divide the %d heads of Q", problem->heads_kv,
                       problem->heads);
    if (kv_heads(problem) < problem->heads && !step->grouped_heads)
        return refusal("grouped heads are not supported: this step needs as many heads of K and V as of Q, %d", problem->heads);
    const char *reason = variants_refuse(step, problem);
    if (reason != NULL) return reason;
    /* Before a backward pass anyone's forward pass will do: the harness has one. */
    if (passes.forward && !passes.backward && step->forward == NULL) return "this step has no forward pass";
    if (passes.backward && step->backward == NULL) return "this step has no backward pass";
    if (passes.deterministic && !(passes.backward && step->backward_deterministic != NULL))
        return "this step has no deterministic pass of this kind";
    if (!takes_dtype(step, problem->dtype))
        return refusal("%s is not supported: this step takes%s%s%s%s", dtype_names[problem->dtype],
                       takes_dtype(step, FP32) ? " fp32" : "", takes_dtype(step, FP16) ? " fp16" : "",
                       takes_dtype(step, BF16) ? " bf16" : "", takes_dtype(step, FP8) ? " fp8" : "");
    if (problem->dtype != FP8 && (problem->fp8 != E4M3 || problem->scales != OF_TENSOR))
        return "--fp8 and --scales are not supported without --dtype fp8";
    if (step->d_multiple > 1 && problem->d % step->d_multiple != 0)
        return refusal("head dimension %d is not supported: this step needs a multiple of %d", problem->d, step->d_multiple);
    if (problem->devices > 1 && step->most_devices <= 1)
        return refusal("%d devices are not supported: this step uses one", problem->devices);
    if (problem->devices < 0 || (problem->devices > 1 && problem->devices > step->most_devices))
        return refusal("%d devices are not supported: this step uses 1 to %d", problem->devices, step->most_devices);
    if (step->most_queries > 0 && problem->N_q > step->most_queries)
        return refusal("%d queries are not supported: this step takes at most %d, and any number of keys", problem->N_q,
                       step->most_queries);
    return step->refuses != NULL ? step->refuses(problem) : NULL;
}
