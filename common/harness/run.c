#include "run.h"

#include "border.h"
#include "../simt/include/simulated.h"
#include "variants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GUARD_BYTES = 1024,
    GUARD_VALUE = 0xa5,
    WORKSPACE = TENSOR_COUNT,
    TABLE_BUFFER,
    SCALES = TABLE_BUFFER + TABLES,
    BUFFERS = SCALES + 3
};

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

/* Of Q, K or V. */
static const float **scales_pointer(struct tensors *tensors, enum tensor tensor) {
    return tensor == TENSOR_Q ? &tensors->Q_scales : tensor == TENSOR_K ? &tensors->K_scales : &tensors->V_scales;
}
static const char *const scales_names[] = {"Q's scales", "K's scales", "V's scales"};

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
    run->problem.hadamard = step->hadamard;
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
        if (element_bytes(problem, tensor) == 1 && error == cudaSuccess)
            error = allocate(run, SCALES + (int)tensor, scales_names[tensor], scale_count(problem, tensor) * sizeof(float),
                             true, (void **)(uintptr_t)scales_pointer(&run->device, tensor));
    }
    run->workspace_bytes = workspace_bytes_of(step, problem);
    if (error == cudaSuccess && run->workspace_bytes > 0)
        error = allocate(run, WORKSPACE, "workspace", run->workspace_bytes, false, &run->workspace);
    if (error == cudaSuccess) error = run_upload(run);
    if (error != cudaSuccess) run_destroy(run);
    return error;
}

static cudaError_t upload_fp8(const struct run *run, enum tensor tensor, void *device) {
    size_t elements = tensor_elements(&run->problem, tensor), count = scale_count(&run->problem, tensor);
    struct tensors on_device = run->device;
    uint8_t *bits = host_memory(elements, sizeof *bits);
    float *scales = host_memory(count, sizeof *scales);
    quantise(&run->problem, tensor, run->host[tensor], bits, scales);
    cudaError_t error = cudaMemcpy(device, bits, elements, cudaMemcpyHostToDevice);
    if (error == cudaSuccess)
        error = cudaMemcpy((void *)(uintptr_t)*scales_pointer(&on_device, tensor), scales, count * sizeof *scales,
                           cudaMemcpyHostToDevice);
    free(bits), free(scales);
    return error;
}

/* The host keeps floats; 16-bit numbers are packed on the way to the device and unpacked on the way back. */
static cudaError_t copy_tensor(const struct run *run, enum tensor tensor, enum cudaMemcpyKind kind) {
    void *device = *device_pointer((struct run *)(uintptr_t)run, tensor);
    if (element_bytes(&run->problem, tensor) == 1) return upload_fp8(run, tensor, device);
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

cudaError_t spread_run(struct run *run, const struct step *step, void **memory) {
    struct problem problem = device_problem(run);
    *memory = run->workspace;
    return problem.devices > 1 ? step->distribute(&problem, &run->device, memory) : cudaSuccess;
}

cudaError_t gather_run(struct run *run, const struct step *step, void *memory, cudaError_t error) {
    struct problem problem = device_problem(run);
    if (problem.devices <= 1 || memory == run->workspace) return error;
    cudaError_t gathered = step->collect(&problem, &run->device, memory);
    return error != cudaSuccess ? error : gathered;
}

/* Run a pass whose outputs have this role, on poisoned outputs, and fetch them. */
static cudaError_t run_pass(struct run *run, const struct step *step, attention_pass *pass, enum tensor_role role) {
    cudaError_t error = poison(run, WORKSPACE, &run->workspace);
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT && error == cudaSuccess; tensor++)
        if (tensor_table[tensor].role == role) error = poison(run, (int)tensor, device_pointer(run, tensor));
    struct problem problem = device_problem(run);
    if (error == cudaSuccess && !run->simulated) error = check_tables(run);
    void *memory = run->workspace;
    if (pass == harness_forward.forward) problem.devices = 1;
    bool spread = problem.devices > 1;
    if (spread && error == cudaSuccess) error = spread_run(run, step, &memory);
    if (error == cudaSuccess) error = pass(&problem, &run->device, memory, NULL);
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    if (spread) error = gather_run(run, step, memory, error);
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
        run->host[TENSOR_Q + i] = turned[i] = as_seen(&run->problem, TENSOR_Q + (enum tensor)i, plain[i]);
    if (turned[0] != NULL) error = run_upload(run);
    if (error == cudaSuccess) error = run_pass(run, step, forward_pass(step), FORWARD_OUTPUT);
    run->host[TENSOR_Q] = plain[0], run->host[TENSOR_K] = plain[1];
    if (turned[0] != NULL && error == cudaSuccess) error = run_upload(run);
    free(turned[0]), free(turned[1]);
    return error;
}

cudaError_t run_backward(struct run *run, const struct step *step, bool deterministic) {
    name_buffer(run, TENSOR_O, true), name_buffer(run, TENSOR_L, true); /* inputs from here on */
    return run_pass(run, step, deterministic ? step->backward_deterministic : step->backward, BACKWARD_OUTPUT);
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
