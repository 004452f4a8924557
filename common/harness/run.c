#include "run.h"

#include "border.h"
#include "reference.h"
#include "simulated.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 1024, GUARD_VALUE = 0xa5, WORKSPACE = TENSOR_COUNT, TABLE_BUFFER, BUFFERS = TABLE_BUFFER + TABLES };

bool device_is_simulated(void) {
    struct cudaDeviceProp properties;
    return cudaGetDeviceProperties(&properties, 0) == cudaSuccess && strcmp(properties.name, "sim") == 0;
}

/* ---- buffers ---------------------------------------------------------------------------------------------------------- */

/* Where struct tensors keeps the pointer to a tensor. */
static void **device_pointer(struct run *run, enum tensor tensor) {
    return (void **)(void *)((char *)&run->device + tensor_table[tensor].offset);
}

/* In the messages of the simulated device. The workspace has no type of its own. */
static void name_buffer(const struct run *run, int index, bool read_only) {
    size_t bytes = index >= WORKSPACE ? sizeof(float) : element_bytes(&run->problem, (enum tensor)index);
    if (simt_name_memory != NULL) simt_name_memory(run->buffers[index].base, run->buffers[index].name, bytes, read_only);
}

static cudaError_t allocate(struct run *run, int index, const char *name, size_t bytes, bool read_only, void **pointer) {
    size_t guard = run->simulated ? 0 : GUARD_BYTES;
    size_t rounded = run->simulated ? bytes : (bytes + 15) / 16 * 16; /* a step may read its workspace 16 bytes at a time */
    void *base = NULL;
    cudaError_t error = cudaMalloc(&base, rounded + 2 * guard);
    if (error != cudaSuccess) return error;
    run->buffers[index] = (struct guarded_buffer){name, base, rounded};
    *pointer = (unsigned char *)base + guard;
    name_buffer(run, index, read_only);
    if (guard == 0) return cudaSuccess;
    error = cudaMemset(base, GUARD_VALUE, guard);
    if (error != cudaSuccess) return error;
    return cudaMemset((unsigned char *)base + guard + rounded, GUARD_VALUE, guard);
}

/* K and V of a cache in pages lie on the device as pages. */
static bool is_paged(const struct problem *problem, enum tensor tensor) {
    return problem->pages != NULL && (tensor == TENSOR_K || tensor == TENSOR_V);
}
static size_t device_elements(const struct problem *problem, enum tensor tensor) {
    if (!is_paged(problem, tensor)) return tensor_elements(problem, tensor);
    return (size_t)problem->page_count * (size_t)kv_heads(problem) * (size_t)problem->page_size * (size_t)problem->d;
}

/* The tables of a problem: where it keeps the pointer to each, how many numbers they have, what they are called. */
static const int **table_pointer(struct problem *problem, enum table table) {
    return table == TABLE_STARTS ? &problem->starts : table == TABLE_LENGTHS ? &problem->lengths : &problem->pages;
}
static size_t table_numbers(const struct problem *problem, enum table table) {
    if (table == TABLE_STARTS) return (size_t)problem->sequences + 1;
    return (size_t)problem->batch * (table == TABLE_LENGTHS ? 1 : (size_t)pages_per_sequence(problem));
}
static const char *const table_names[TABLES] = {"starts", "lengths", "pages"};

struct problem device_problem(const struct run *run) {
    struct problem problem = run->problem;
    for (enum table table = 0; table < TABLES; table++) *table_pointer(&problem, table) = run->tables[table];
    return problem;
}

/* What stands in the tables on the device, which a kernel believes: on a card an index past a tensor may read what another wrote. The
 * simulated device finds the access itself. */
static cudaError_t check_tables(struct run *run) {
    struct problem problem = run->problem;
    int *copies[TABLES] = {NULL};
    cudaError_t error = cudaSuccess;
    for (enum table table = 0; table < TABLES && error == cudaSuccess; table++) {
        if (run->tables[table] == NULL) continue;
        size_t numbers = table_numbers(&problem, table);
        copies[table] = host_memory(numbers, sizeof(int));
        error = cudaMemcpy(copies[table], run->tables[table], numbers * sizeof(int), cudaMemcpyDeviceToHost);
        *table_pointer(&problem, table) = copies[table];
    }
    const char *reason = error == cudaSuccess ? tables_refuse(&problem) : NULL;
    if (reason != NULL) fprintf(stderr, "%s\n", reason);
    for (enum table table = 0; table < TABLES; table++) free(copies[table]);
    return reason != NULL ? cudaErrorInvalidValue : error;
}

cudaError_t run_create(struct run *run, const struct step *step, const struct problem *problem, enum input_kind kind,
                       uint64_t seed) {
    *run = (struct run){
        .problem = *problem, .input = kind, .backward = step->backward != NULL, .simulated = device_is_simulated()};
    cudaError_t error = cudaSuccess;
    if (problem->page_size > 0) run->own_pages = make_pages(&run->problem, seed);
    problem = &run->problem;
    for (enum table table = 0; table < TABLES && error == cudaSuccess; table++)
        if (*table_pointer(&run->problem, table) != NULL)
            error = allocate(run, TABLE_BUFFER + (int)table, table_names[table], table_numbers(problem, table) * sizeof(int),
                             true, &run->tables[table]);
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT && error == cudaSuccess; tensor++) {
        if (is_backward(tensor) && !run->backward) continue;
        size_t elements = tensor_elements(problem, tensor);
        run->host[tensor] = host_memory(elements, sizeof(float));
        if (!is_output(tensor)) fill_input(run->host[tensor], problem, tensor, kind, seed);
        error = allocate(run, (int)tensor, tensor_table[tensor].name,
                         device_elements(problem, tensor) * element_bytes(problem, tensor), !is_output(tensor),
                         device_pointer(run, tensor));
    }
    run->workspace_bytes = workspace_bytes_of(step, problem);
    if (error == cudaSuccess && run->workspace_bytes > 0)
        error = allocate(run, WORKSPACE, "workspace", run->workspace_bytes, false, &run->workspace);
    if (error == cudaSuccess) error = run_upload(run);
    if (error != cudaSuccess) run_destroy(run);
    return error;
}

/* The host keeps floats; 16-bit numbers are packed on the way to the device and unpacked on the way back. */
static cudaError_t copy_tensor(const struct run *run, enum tensor tensor, enum cudaMemcpyKind kind) {
    void *device = *device_pointer((struct run *)(uintptr_t)run, tensor);
    float *host = run->host[tensor], *pool = is_paged(&run->problem, tensor) ? in_pages(&run->problem, host) : NULL;
    size_t elements = device_elements(&run->problem, tensor), bytes = elements * element_bytes(&run->problem, tensor);
    bool to_device = kind == cudaMemcpyHostToDevice, as_it_is = element_bytes(&run->problem, tensor) == sizeof *host;
    uint16_t *packed = as_it_is ? NULL : host_memory(elements, sizeof *packed);
    if (pool != NULL) host = pool;
    for (size_t i = 0; i < elements && to_device && packed != NULL; i++) packed[i] = packed_as(host[i], run->problem.dtype);
    void *from_host = packed != NULL ? (void *)packed : host;
    cudaError_t error = cudaMemcpy(to_device ? device : from_host, to_device ? from_host : device, bytes, kind);
    for (size_t i = 0; i < elements && !to_device && packed != NULL && error == cudaSuccess; i++)
        host[i] = unpacked(packed[i], run->problem.dtype);
    free(packed), free(pool);
    return error;
}

cudaError_t run_upload(const struct run *run) {
    cudaError_t error = cudaSuccess;
    struct problem problem = run->problem;
    for (enum table table = 0; table < TABLES && error == cudaSuccess; table++)
        if (run->tables[table] != NULL)
            error = cudaMemcpy(run->tables[table], *table_pointer(&problem, table),
                               table_numbers(&problem, table) * sizeof(int), cudaMemcpyHostToDevice);
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT && error == cudaSuccess; tensor++)
        if (!is_output(tensor) && run->host[tensor] != NULL) error = copy_tensor(run, tensor, cudaMemcpyHostToDevice);
    return error;
}

void run_destroy(struct run *run) {
    for (int i = 0; i < BUFFERS; i++) cudaFree(run->buffers[i].base);
    free(run->own_pages);
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) free(run->host[tensor]);
    *run = (struct run){0};
}

/* NaN in every float: what a kernel leaves unwritten, or reads before writing, shows. The simulated device gives fresh
 * memory that contents and knows it for unwritten, so there the buffer is exchanged for a new one. */
static cudaError_t poison(struct run *run, int index, void **pointer) {
    struct guarded_buffer *buffer = &run->buffers[index];
    if (buffer->bytes == 0) return cudaSuccess;
    if (!run->simulated) return cudaMemset(*pointer, 0xff, buffer->bytes);
    cudaError_t error = cudaFree(buffer->base);
    if (error == cudaSuccess) error = cudaMalloc(pointer, buffer->bytes);
    buffer->base = *pointer;
    if (error == cudaSuccess) name_buffer(run, index, false);
    return error;
}

/* ---- passes ----------------------------------------------------------------------------------------------------------- */

extern const struct step harness_forward;

attention_pass *forward_pass(const struct step *step) {
    return step->forward != NULL ? step->forward : harness_forward.forward;
}

/* Run a pass whose outputs have this role, on poisoned outputs, and fetch them. */
static cudaError_t run_pass(struct run *run, attention_pass *pass, enum tensor_role role) {
    cudaError_t error = poison(run, WORKSPACE, &run->workspace);
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT && error == cudaSuccess; tensor++)
        if (tensor_table[tensor].role == role) error = poison(run, (int)tensor, device_pointer(run, tensor));
    struct problem problem = device_problem(run);
    if (error == cudaSuccess && !run->simulated) error = check_tables(run);
    if (error == cudaSuccess) error = pass(&problem, &run->device, run->workspace, NULL);
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT && error == cudaSuccess; tensor++)
        if (tensor_table[tensor].role == role) error = copy_tensor(run, tensor, cudaMemcpyDeviceToHost);
    return error;
}

/* The harness's own forward pass knows no rotary embedding: Q and K are exchanged for rotated ones while it runs. */
cudaError_t run_forward(struct run *run, const struct step *step) {
    float *const plain[2] = {run->host[TENSOR_Q], run->host[TENSOR_K]};
    float *turned[2] = {NULL, NULL};
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < 2 && step->forward == NULL && run->problem.rotary != NOT_ROTARY; i++)
        run->host[TENSOR_Q + i] = turned[i] = rotated(&run->problem, TENSOR_Q + (enum tensor)i, plain[i]);
    if (turned[0] != NULL) error = run_upload(run);
    if (error == cudaSuccess) error = run_pass(run, forward_pass(step), FORWARD_OUTPUT);
    run->host[TENSOR_Q] = plain[0], run->host[TENSOR_K] = plain[1];
    if (turned[0] != NULL && error == cudaSuccess) error = run_upload(run);
    free(turned[0]), free(turned[1]);
    return error;
}

cudaError_t run_backward(struct run *run, const struct step *step, bool deterministic) {
    name_buffer(run, TENSOR_O, true), name_buffer(run, TENSOR_L, true); /* inputs from here on */
    return run_pass(run, deterministic ? step->backward_deterministic : step->backward, BACKWARD_OUTPUT);
}

/* Each byte is as the one before it. */
static bool all_guard(const unsigned char *band) {
    return band[0] == GUARD_VALUE && memcmp(band, band + 1, GUARD_BYTES - 1) == 0;
}

cudaError_t find_broken_guard(const struct run *run, const char **name) {
    *name = NULL;
    for (int i = 0; i < BUFFERS && !run->simulated; i++) {
        const struct guarded_buffer *buffer = &run->buffers[i];
        if (buffer->base == NULL) continue;
        unsigned char before[GUARD_BYTES], after[GUARD_BYTES];
        cudaError_t error = cudaMemcpy(before, buffer->base, GUARD_BYTES, cudaMemcpyDeviceToHost);
        if (error == cudaSuccess)
            error = cudaMemcpy(after, buffer->base + GUARD_BYTES + buffer->bytes, GUARD_BYTES, cudaMemcpyDeviceToHost);
        if (error != cudaSuccess) return error;
        if (!all_guard(before) || !all_guard(after)) *name = buffer->name;
    }
    return cudaSuccess;
}

/* ---- against the reference -------------------------------------------------------------------------------------------- */

/* Rows spread evenly with a jitter, so that no tile position is never looked at; the last row is always among them. */
static size_t *choose_rows(size_t total, size_t count) {
    size_t *rows = host_memory(count, sizeof *rows);
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

static size_t affordable_rows(double budget, double cost, size_t total) {
    double count = fmax(16.0, budget / cost);
    return count >= (double)total ? total : (size_t)count;
}

/* The listed rows of a tensor, one after the other; the caller's to free. */
static float *gather_rows(const struct run *run, enum tensor tensor, const size_t *rows, size_t count) {
    size_t columns = tensor_columns(&run->problem, tensor);
    float *gathered = host_memory(count * columns, sizeof *gathered);
    for (size_t i = 0; i < count; i++)
        memcpy(gathered + i * columns, run->host[tensor] + rows[i] * columns, columns * sizeof *gathered);
    return gathered;
}

/* Which rows to compare, and whether they are all. */
static bool choose_sample(const struct problem *p, bool backward, double budget, struct verdict *verdict) {
    size_t queries = tensor_rows(p, TENSOR_Q), keys = tensor_rows(p, TENSOR_K);
    double forward_cost = 2.0 * p->N_kv * p->d;
    if (!backward) {
        verdict->checked_queries = affordable_rows(budget, forward_cost, queries);
    } else {
        /* Of a pair: S and dP, then dQ or dK and dV, each with its size; and the forward pass. */
        double row_cost = 4.0 * p->N_kv * p->d, key_cost = 6.0 * p->N_q * p->d * p->heads / kv_heads(p);
        bool all = (double)queries * (row_cost + forward_cost) + (double)keys * key_cost <= budget;
        verdict->checked_queries = all ? queries : affordable_rows(0.3 * budget, row_cost, queries);
        verdict->checked_keys = all ? keys : affordable_rows(0.5 * budget, key_cost, keys);
        verdict->keys = choose_rows(keys, verdict->checked_keys);
    }
    verdict->queries = choose_rows(queries, verdict->checked_queries);
    return verdict->checked_queries == queries && (!backward || verdict->checked_keys == keys);
}

/* How many rows O's norm comes from: all where they are alike, 1 where one is much larger than the others. The error of a weight is one
 * for all columns of its row, and under windows, ALiBi or dropout a row may have few weights: these errors average over rows only. */
static double rows_that_count(const double *O, size_t rows, size_t d) {
    double sum = 0.0, squares = 0.0;
    for (size_t row = 0; row < rows; row++) {
        double norm = 0.0;
        for (size_t c = 0; c < d; c++) norm += O[row * d + c] * O[row * d + c];
        sum += norm, squares += norm * norm;
    }
    return squares > 0.0 ? sum * sum / squares : 1.0;
}

static double check_forward(const struct run *run, struct verdict *verdict) {
    const struct problem *p = &run->problem;
    size_t count = verdict->checked_queries, elements = count * (size_t)p->d;
    double *O_ref = host_doubles(elements), *L_ref = host_doubles(count);
    float *Q = rotated(p, TENSOR_Q, run->host[TENSOR_Q]), *K = rotated(p, TENSOR_K, run->host[TENSOR_K]);
    double term_size = reference_forward_rows(p, Q, K, run->host[TENSOR_V], verdict->queries, count, O_ref, L_ref);
    free(Q), free(K);
    float *O_rows = gather_rows(run, TENSOR_O, verdict->queries, count);
    float *L_rows = gather_rows(run, TENSOR_L, verdict->queries, count);
    double bound = rounding_bound(term_size, p->N_kv);
    struct check *check = &verdict->checks[TENSOR_O];
    *check = check_values(O_rows, O_ref, elements, bound + (p->dtype != FP32 ? 2.0 * unit_roundoff(p->dtype) : 0.0));
    /* Rounding errors average out only where they differ. The other inputs repeat a few numbers, and their errors. */
    if (p->dtype != FP32 && (run->input == INPUT_RANDOM || run->input == INPUT_LARGE)) {
        check->bias = bias_of(O_rows, O_ref, elements);
        check->bound_bias = unit_roundoff(p->dtype) * (0.25 + 2.0 / sqrt((double)elements));
        if (variants_of(p) != 0)
            check->bound_bias += unit_roundoff(p->dtype) * 2.0 / sqrt(rows_that_count(O_ref, count, (size_t)p->d));
        check->ok = check->ok && check->bias <= check->bound_bias;
    }
    /* A rotated element near the middle of two numbers may be rounded to either: a product of a score moves by twice the roundoff. A
     * product of d is taken to be at most ten times their mean size. */
    if (p->rotary != NOT_ROTARY && p->dtype != FP32) bound += 20.0 * unit_roundoff(p->dtype) * term_size / p->d;
    verdict->checks[TENSOR_L] = check_logsumexp(L_rows, L_ref, count, bound);
    describe_wrong(check, p, TENSOR_O, verdict->queries, count, O_rows, O_ref);
    describe_wrong(&verdict->checks[TENSOR_L], p, TENSOR_L, verdict->queries, count, L_rows, L_ref);
    free(O_ref), free(L_ref), free(O_rows), free(L_rows);
    return term_size;
}

/* term_size: of the scores of the rows compared, from check_forward(). */
static void check_backward(const struct run *run, struct verdict *verdict, bool all, double term_size) {
    const struct problem *p = &run->problem;
    float *Q = rotated(p, TENSOR_Q, run->host[TENSOR_Q]), *K = rotated(p, TENSOR_K, run->host[TENSOR_K]);
    const float *V = run->host[TENSOR_V], *dO = run->host[TENSOR_dO];
    size_t d = (size_t)p->d, rows = tensor_rows(p, TENSOR_Q);
    double *O_ref = host_doubles(rows * d), *L_ref = host_doubles(rows), *D_ref = host_doubles(rows);
    if (all) {
        reference_forward(p, Q, K, V, O_ref, L_ref);
    } else {
        for (size_t i = 0; i < rows * d; i++) O_ref[i] = (double)run->host[TENSOR_O][i];
        for (size_t i = 0; i < rows; i++) L_ref[i] = (double)run->host[TENSOR_L][i];
    }
    reference_D(p, dO, O_ref, D_ref);
    double *ref[TENSOR_COUNT], *size[TENSOR_COUNT];
    for (enum tensor tensor = TENSOR_dQ; tensor <= TENSOR_dV; tensor++) {
        size_t count = tensor_table[tensor].per_key ? verdict->checked_keys : verdict->checked_queries;
        ref[tensor] = host_doubles(count * d), size[tensor] = host_doubles(count * d);
    }
    reference_backward_rows(p, Q, K, V, dO, L_ref, D_ref, verdict->queries, verdict->checked_queries, ref[TENSOR_dQ],
                            size[TENSOR_dQ]);
    reference_backward_keys(p, Q, K, V, dO, L_ref, D_ref, verdict->keys, verdict->checked_keys, ref[TENSOR_dK], ref[TENSOR_dV],
                            size[TENSOR_dK], size[TENSOR_dV]);
    for (enum tensor tensor = TENSOR_dQ; tensor <= TENSOR_dV; tensor++) {
        bool per_key = tensor_table[tensor].per_key;
        size_t count = per_key ? verdict->checked_keys : verdict->checked_queries;
        const size_t *numbers = per_key ? verdict->keys : verdict->queries;
        if (tensor != TENSOR_dV) {
            rotate_rows(p, tensor, numbers, count, ref[tensor], true, false);
            rotate_rows(p, tensor, numbers, count, size[tensor], true, true);
        }
        float *out = gather_rows(run, tensor, numbers, count);
        double bound = rounding_bound(term_size, per_key ? p->N_q : p->N_kv);
        if (p->dtype != FP32) bound += 3.0 * unit_roundoff(p->dtype);
        verdict->checks[tensor] = check_gradient(out, ref[tensor], size[tensor], count * d, bound);
        describe_wrong(&verdict->checks[tensor], p, tensor, numbers, count, out, ref[tensor]);
        free(out), free(ref[tensor]), free(size[tensor]);
    }
    free(Q), free(K), free(O_ref), free(L_ref), free(D_ref);
}

struct verdict check_run(const struct run *run, bool backward, double budget) {
    struct verdict verdict = {.ok = true};
    bool all = choose_sample(&run->problem, backward, budget, &verdict);
    double term_size = check_forward(run, &verdict);
    if (backward) check_backward(run, &verdict, all, term_size);
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        if (!is_output(tensor) || (is_backward(tensor) && !backward)) continue;
        size_t elements = tensor_elements(&run->problem, tensor);
        verdict.first_not_finite[tensor] = first_not_finite(run->host[tensor], elements, tensor == TENSOR_L);
        verdict.ok = verdict.ok && verdict.checks[tensor].ok && verdict.first_not_finite[tensor] == elements;
    }
    return verdict;
}

void free_verdict(struct verdict *verdict) {
    free(verdict->queries), free(verdict->keys);
    verdict->queries = verdict->keys = NULL;
}
