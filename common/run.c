#include "run.h"

#include "reference.h"
#include "simulated.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 1024, GUARD_VALUE = 0xa5 };

size_t query_rows(const struct problem *problem) {
    return (size_t)problem->batch * (size_t)problem->heads * (size_t)problem->N_q;
}

size_t query_elements(const struct problem *problem) { return query_rows(problem) * (size_t)problem->d; }

size_t key_rows(const struct problem *problem) {
    return (size_t)problem->batch * (size_t)problem->heads * (size_t)problem->N_kv;
}

size_t key_elements(const struct problem *problem) { return key_rows(problem) * (size_t)problem->d; }

double unmasked_pairs(const struct problem *problem) {
    double heads = (double)problem->batch * problem->heads;
    if (!problem->causal) return heads * problem->N_q * problem->N_kv;
    /* Query i sees i + N_kv - N_q + 1 keys, at least 0: docs/math.md, "The causal mask". */
    double rows = problem->N_q < problem->N_kv ? problem->N_q : problem->N_kv;
    double longest = problem->N_kv;
    return heads * (rows * longest - rows * (rows - 1.0) / 2.0);
}

double tensor_bytes(const struct problem *problem, bool backward) {
    double matrices = backward ? 4.0 : 2.0; /* Q, O and K, V; with dO, dQ and dK, dV */
    return 4.0 * (matrices * (double)(query_elements(problem) + key_elements(problem)) + (double)query_rows(problem));
}

const char *attention_limits(const struct problem *problem) {
    static char text[160];
    double batch_heads = (double)problem->batch * problem->heads;
    if (problem->d > MAX_HEAD_DIM) {
        snprintf(text, sizeof text, "head dimension %d is not supported: the largest is %d", problem->d, MAX_HEAD_DIM);
        return text;
    }
    if (batch_heads > MAX_BATCH_HEADS) {
        snprintf(text, sizeof text, "batch x heads = %.0f is not supported: the largest is %d", batch_heads,
                 MAX_BATCH_HEADS);
        return text;
    }
    return NULL;
}

bool device_is_simulated(void) {
    struct cudaDeviceProp properties;
    return cudaGetDeviceProperties(&properties, 0) == cudaSuccess && strcmp(properties.name, "sim") == 0;
}

static cudaError_t allocate(struct run *run, const char *name, size_t bytes, bool read_only, void **pointer) {
    size_t guard = run->simulated ? 0 : GUARD_BYTES;
    size_t rounded = (bytes + 15) / 16 * 16; /* a step may read its workspace 16 bytes at a time */
    if (run->simulated) rounded = bytes;
    struct guarded_buffer *buffer = &run->buffers[run->buffer_count];
    void *base = NULL;
    cudaError_t error = cudaMalloc(&base, rounded + 2 * guard);
    if (error != cudaSuccess) return error;
    *buffer = (struct guarded_buffer){name, base, rounded};
    run->buffer_count++;
    *pointer = buffer->base + guard;
    if (simt_name_memory != NULL) simt_name_memory(base, name, read_only);
    if (guard == 0) return cudaSuccess;
    error = cudaMemset(base, GUARD_VALUE, guard);
    if (error != cudaSuccess) return error;
    return cudaMemset(buffer->base + guard + rounded, GUARD_VALUE, guard);
}

static double *allocate_doubles(size_t elements) {
    double *values = malloc(elements * sizeof *values);
    if (values == NULL) {
        fprintf(stderr, "no host memory for %zu values\n", elements);
        abort();
    }
    return values;
}

static float *allocate_host(size_t elements) {
    float *values = malloc(elements * sizeof *values);
    if (values == NULL) {
        fprintf(stderr, "no host memory for %zu values\n", elements);
        abort();
    }
    return values;
}

static cudaError_t make_input(struct run *run, const char *name, size_t elements, int N, enum input_kind kind,
                              enum input_tensor tensor, uint64_t seed, float **host, const float **device) {
    size_t bytes = elements * sizeof(float);
    *host = allocate_host(elements);
    fill_input(*host, elements / (size_t)run->problem.d, N, run->problem.d, kind, tensor, seed);
    void *pointer = NULL;
    cudaError_t error = allocate(run, name, bytes, true, &pointer);
    if (error != cudaSuccess) return error;
    *device = pointer;
    return cudaSuccess;
}

static cudaError_t make_output(struct run *run, const char *name, size_t elements, float **device) {
    void *pointer = NULL;
    cudaError_t error = allocate(run, name, elements * sizeof(float), false, &pointer);
    *device = pointer;
    return error;
}

cudaError_t run_create(struct run *run, const struct step *step, const struct problem *problem, enum input_kind kind,
                       uint64_t seed) {
    *run = (struct run){.problem = *problem, .simulated = device_is_simulated()};
    size_t nq = query_elements(problem), nk = key_elements(problem);
    run->workspace_bytes = step->workspace_bytes != NULL ? step->workspace_bytes(problem) : 0;
    struct tensors *t = &run->device;
    cudaError_t error = make_input(run, "Q", nq, problem->N_q, kind, TENSOR_Q, seed, &run->Q, &t->Q);
    if (error == cudaSuccess) error = make_input(run, "K", nk, problem->N_kv, kind, TENSOR_K, seed, &run->K, &t->K);
    if (error == cudaSuccess) error = make_input(run, "V", nk, problem->N_kv, kind, TENSOR_V, seed, &run->V, &t->V);
    if (error == cudaSuccess) error = make_output(run, "O", nq, &t->O);
    if (error == cudaSuccess) error = make_output(run, "L", query_rows(problem), &t->L);
    if (step->backward != NULL) {
        if (error == cudaSuccess)
            error = make_input(run, "dO", nq, problem->N_q, kind, TENSOR_dO, seed, &run->dO, &t->dO);
        if (error == cudaSuccess) error = make_output(run, "dQ", nq, &t->dQ);
        if (error == cudaSuccess) error = make_output(run, "dK", nk, &t->dK);
        if (error == cudaSuccess) error = make_output(run, "dV", nk, &t->dV);
    }
    if (error == cudaSuccess && run->workspace_bytes > 0)
        error = allocate(run, "workspace", run->workspace_bytes, false, &run->workspace);
    if (error == cudaSuccess) error = run_upload(run);
    if (error != cudaSuccess) run_destroy(run);
    return error;
}

cudaError_t run_upload(const struct run *run) {
    size_t query_bytes = query_elements(&run->problem) * sizeof(float);
    size_t key_bytes = key_elements(&run->problem) * sizeof(float);
    cudaError_t error = cudaMemcpy((void *)run->device.Q, run->Q, query_bytes, cudaMemcpyHostToDevice);
    if (error == cudaSuccess) error = cudaMemcpy((void *)run->device.K, run->K, key_bytes, cudaMemcpyHostToDevice);
    if (error == cudaSuccess) error = cudaMemcpy((void *)run->device.V, run->V, key_bytes, cudaMemcpyHostToDevice);
    if (error == cudaSuccess && run->dO != NULL)
        error = cudaMemcpy((void *)run->device.dO, run->dO, query_bytes, cudaMemcpyHostToDevice);
    return error;
}

void run_destroy(struct run *run) {
    for (int i = 0; i < run->buffer_count; i++) cudaFree(run->buffers[i].base);
    free(run->Q);
    free(run->K);
    free(run->V);
    free(run->dO);
    *run = (struct run){0};
}

/* NaN in every float: what a kernel leaves unwritten, or reads before writing, shows. The simulated device gives fresh
 * memory that contents and knows it for unwritten, so there the buffer is exchanged for a new one. */
static cudaError_t poison(struct run *run, void **pointer, size_t bytes) {
    if (bytes == 0) return cudaSuccess;
    if (!run->simulated) return cudaMemset(*pointer, 0xff, bytes);
    for (int i = 0; i < run->buffer_count; i++) {
        struct guarded_buffer *buffer = &run->buffers[i];
        if (buffer->base != *pointer) continue;
        cudaError_t error = cudaFree(buffer->base);
        if (error == cudaSuccess) error = cudaMalloc(pointer, buffer->bytes);
        buffer->base = *pointer;
        if (error == cudaSuccess && simt_name_memory != NULL) simt_name_memory(*pointer, buffer->name, false);
        return error;
    }
    return cudaSuccess;
}

cudaError_t run_forward(struct run *run, const struct step *step) {
    if (step->workspace_bytes != NULL && step->workspace_bytes(&run->problem) > run->workspace_bytes)
        return cudaErrorInvalidValue;
    cudaError_t error = poison(run, (void **)&run->device.O, query_elements(&run->problem) * sizeof(float));
    if (error == cudaSuccess) error = poison(run, (void **)&run->device.L, query_rows(&run->problem) * sizeof(float));
    if (error == cudaSuccess) error = poison(run, &run->workspace, run->workspace_bytes);
    if (error == cudaSuccess) error = step->forward(&run->problem, &run->device, run->workspace, NULL);
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    return error;
}

cudaError_t run_backward(struct run *run, const struct step *step, bool deterministic) {
    const struct problem *problem = &run->problem;
    struct tensors *t = &run->device;
    if (simt_name_memory != NULL) { /* from here on nobody may write these */
        simt_name_memory(t->O, "O", true);
        simt_name_memory(t->L, "L", true);
    }
    cudaError_t error = poison(run, (void **)&t->dQ, query_elements(problem) * sizeof(float));
    if (error == cudaSuccess) error = poison(run, (void **)&t->dK, key_elements(problem) * sizeof(float));
    if (error == cudaSuccess) error = poison(run, (void **)&t->dV, key_elements(problem) * sizeof(float));
    if (error == cudaSuccess) error = poison(run, &run->workspace, run->workspace_bytes);
    attention_pass *pass = deterministic ? step->backward_deterministic : step->backward;
    if (error == cudaSuccess) error = pass(problem, t, run->workspace, NULL);
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    return error;
}

cudaError_t fetch_backward(const struct run *run, float *dQ, float *dK, float *dV) {
    size_t query_bytes = query_elements(&run->problem) * sizeof *dQ;
    size_t key_bytes = key_elements(&run->problem) * sizeof *dK;
    cudaError_t error = cudaMemcpy(dQ, run->device.dQ, query_bytes, cudaMemcpyDeviceToHost);
    if (error == cudaSuccess) error = cudaMemcpy(dK, run->device.dK, key_bytes, cudaMemcpyDeviceToHost);
    if (error == cudaSuccess) error = cudaMemcpy(dV, run->device.dV, key_bytes, cudaMemcpyDeviceToHost);
    return error;
}

cudaError_t fetch_forward(const struct run *run, float *O, float *L) {
    size_t rows = query_rows(&run->problem), elements = query_elements(&run->problem);
    cudaError_t error = cudaMemcpy(O, run->device.O, elements * sizeof *O, cudaMemcpyDeviceToHost);
    if (error != cudaSuccess) return error;
    return cudaMemcpy(L, run->device.L, rows * sizeof *L, cudaMemcpyDeviceToHost);
}

static bool all_guard(const unsigned char *band) {
    for (int i = 0; i < GUARD_BYTES; i++)
        if (band[i] != GUARD_VALUE) return false;
    return true;
}

cudaError_t find_broken_guard(const struct run *run, const char **name) {
    *name = NULL;
    if (run->simulated) return cudaSuccess;
    for (int i = 0; i < run->buffer_count; i++) {
        const struct guarded_buffer *buffer = &run->buffers[i];
        unsigned char before[GUARD_BYTES], after[GUARD_BYTES];
        cudaError_t error = cudaMemcpy(before, buffer->base, GUARD_BYTES, cudaMemcpyDeviceToHost);
        if (error == cudaSuccess)
            error = cudaMemcpy(after, buffer->base + GUARD_BYTES + buffer->bytes, GUARD_BYTES, cudaMemcpyDeviceToHost);
        if (error != cudaSuccess) return error;
        if (!all_guard(before) || !all_guard(after)) *name = buffer->name;
    }
    return cudaSuccess;
}

/* Rows spread evenly with a jitter, so that no tile position is never looked at; the last row is always among them. */
static size_t *choose_rows(size_t total, size_t count) {
    size_t *rows = malloc(count * sizeof *rows);
    if (rows == NULL) abort();
    uint64_t state = 12345;
    for (size_t i = 0; i < count; i++) {
        size_t start = (size_t)((double)total * (double)i / (double)count);
        size_t end = (size_t)((double)total * (double)(i + 1) / (double)count);
        state = state * 6364136223846793005u + 1442695040888963407u;
        rows[i] = count == total ? i : start + (size_t)(state >> 33) % (end > start ? end - start : 1);
    }
    rows[count - 1] = total - 1;
    return rows;
}

struct forward_check check_forward(const struct run *run, const float *O, const float *L, double budget) {
    const struct problem *problem = &run->problem;
    size_t total = query_rows(problem), d = (size_t)problem->d;
    double affordable = budget / (2.0 * problem->N_kv * problem->d);
    size_t count = affordable >= (double)total ? total : affordable < 16.0 ? 16 : (size_t)affordable;
    if (count > total) count = total;

    struct forward_check result = {.checked_rows = count, .rows = choose_rows(total, count)};
    double *O_ref = malloc(count * d * sizeof *O_ref), *L_ref = malloc(count * sizeof *L_ref);
    float *O_rows = allocate_host(count * d), *L_rows = allocate_host(count);
    if (O_ref == NULL || L_ref == NULL) abort();
    double term_size = reference_forward_rows(problem, run->Q, run->K, run->V, result.rows, count, O_ref, L_ref);
    for (size_t i = 0; i < count; i++) {
        memcpy(O_rows + i * d, O + result.rows[i] * d, d * sizeof *O);
        L_rows[i] = L[result.rows[i]];
    }
    double bound = rounding_bound(term_size, problem->N_kv);
    result.O = check_values(O_rows, O_ref, count * d, bound);
    result.L = check_logsumexp(L_rows, L_ref, count, bound);
    result.not_finite = first_not_finite(O, total * d, false);
    bool L_finite = first_not_finite(L, total, true) == total;
    result.ok = result.O.ok && result.L.ok && result.not_finite == total * d && L_finite;
    free(O_ref);
    free(L_ref);
    free(O_rows);
    free(L_rows);
    return result;
}

void free_forward_check(struct forward_check *check) {
    free(check->rows);
    check->rows = NULL;
}

/* The listed rows of a matrix of d columns, one after the other. */
static float *gather_rows(const float *matrix, const size_t *rows, size_t count, size_t d) {
    float *gathered = allocate_host(count * d);
    for (size_t i = 0; i < count; i++) memcpy(gathered + i * d, matrix + rows[i] * d, d * sizeof *gathered);
    return gathered;
}

static size_t affordable_rows(double budget, double cost, size_t total) {
    double count = fmax(16.0, budget / cost);
    return count >= (double)total ? total : (size_t)count;
}

struct backward_check check_backward(const struct run *run, const float *O, const float *L, const float *dQ,
                                     const float *dK, const float *dV, double budget) {
    const struct problem *p = &run->problem;
    size_t d = (size_t)p->d, rows = query_rows(p), keys = key_rows(p);
    /* Of a pair: S and dP, then dQ or dK and dV, each with its size; and the forward pass. */
    double row_cost = 4.0 * p->N_kv * p->d, key_cost = 6.0 * p->N_q * p->d, forward_cost = 2.0 * p->N_kv * p->d;
    bool all = (double)rows * (row_cost + forward_cost) + (double)keys * key_cost <= budget;
    struct backward_check result = {.checked_rows = all ? rows : affordable_rows(0.3 * budget, row_cost, rows),
                                    .checked_keys = all ? keys : affordable_rows(0.5 * budget, key_cost, keys)};
    result.rows = choose_rows(rows, result.checked_rows);
    result.keys = choose_rows(keys, result.checked_keys);
    size_t row_elements = result.checked_rows * d, key_elements = result.checked_keys * d;

    double *O_ref = allocate_doubles(rows * d), *L_ref = allocate_doubles(rows), *D_ref = allocate_doubles(rows);
    double term_size;
    if (all) {
        term_size = reference_forward(p, run->Q, run->K, run->V, O_ref, L_ref);
    } else {
        /* The size of the terms of the sampled rows' scores; their O and L are overwritten by the step's. */
        term_size = reference_forward_rows(p, run->Q, run->K, run->V, result.rows, result.checked_rows, O_ref, L_ref);
        for (size_t i = 0; i < rows * d; i++) O_ref[i] = (double)O[i];
        for (size_t i = 0; i < rows; i++) L_ref[i] = (double)L[i];
    }
    reference_D(p, run->dO, O_ref, D_ref);

    double *dQ_ref = allocate_doubles(row_elements), *dQ_size = allocate_doubles(row_elements);
    double *dK_ref = allocate_doubles(key_elements), *dK_size = allocate_doubles(key_elements);
    double *dV_ref = allocate_doubles(key_elements), *dV_size = allocate_doubles(key_elements);
    reference_backward_rows(p, run->Q, run->K, run->V, run->dO, L_ref, D_ref, result.rows, result.checked_rows, dQ_ref,
                            dQ_size);
    reference_backward_keys(p, run->Q, run->K, run->V, run->dO, L_ref, D_ref, result.keys, result.checked_keys, dK_ref,
                            dV_ref, dK_size, dV_size);
    float *dQ_rows = gather_rows(dQ, result.rows, result.checked_rows, d);
    float *dK_rows = gather_rows(dK, result.keys, result.checked_keys, d);
    float *dV_rows = gather_rows(dV, result.keys, result.checked_keys, d);
    result.dQ = check_gradient(dQ_rows, dQ_ref, dQ_size, row_elements, rounding_bound(term_size, p->N_kv));
    result.dK = check_gradient(dK_rows, dK_ref, dK_size, key_elements, rounding_bound(term_size, p->N_q));
    result.dV = check_gradient(dV_rows, dV_ref, dV_size, key_elements, rounding_bound(term_size, p->N_q));
    result.finite = first_not_finite(dQ, rows * d, false) == rows * d &&
                    first_not_finite(dK, keys * d, false) == keys * d &&
                    first_not_finite(dV, keys * d, false) == keys * d;
    result.ok = result.dQ.ok && result.dK.ok && result.dV.ok && result.finite;

    double *doubles[] = {O_ref, L_ref, D_ref, dQ_ref, dQ_size, dK_ref, dK_size, dV_ref, dV_size};
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) free(doubles[i]);
    free(dQ_rows);
    free(dK_rows);
    free(dV_rows);
    return result;
}

void free_backward_check(struct backward_check *check) {
    free(check->rows);
    free(check->keys);
    check->rows = check->keys = NULL;
}
