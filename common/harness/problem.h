/* What is known of a problem before anything runs: its tensors, its size, its work, and whether a step can do it. */
#pragma once

#include "attention.h"

/* malloc(), but the program ends where there is no memory. */
void *host_memory(size_t count, size_t size);
static inline double *host_doubles(size_t count) { return (double *)host_memory(count, sizeof(double)); }

enum { MAX_LENGTH = 16777216 }; /* queries or keys: the index arithmetic of the kernels ends somewhere beyond */

/* Every tensor of both passes, in the order of reports; tensor_table[] describes each. */
enum tensor { TENSOR_Q, TENSOR_K, TENSOR_V, TENSOR_O, TENSOR_L, TENSOR_dO, TENSOR_dQ, TENSOR_dK, TENSOR_dV, TENSOR_COUNT };
/* The backward pass also reads what the forward pass reads and writes. */
enum tensor_role { FORWARD_INPUT, FORWARD_OUTPUT, BACKWARD_INPUT, BACKWARD_OUTPUT };

struct tensor_info {
    const char *name;      /* "dQ" */
    const char *json_name; /* "dq" */
    bool per_key;          /* rows are keys: (batch, kv_heads(), N_kv, ...); else queries: (batch, heads, N_q, ...) */
    bool is_vector;        /* one number per row, as L; else d of them */
    enum tensor_role role;
    size_t offset; /* of its pointer in struct tensors */
};
extern const struct tensor_info tensor_table[TENSOR_COUNT];

static inline bool is_output(enum tensor tensor) {
    return tensor_table[tensor].role == FORWARD_OUTPUT || tensor_table[tensor].role == BACKWARD_OUTPUT;
}
static inline bool is_backward(enum tensor tensor) { return tensor_table[tensor].role >= BACKWARD_INPUT; }

/* Heads of one batch; over all heads: rows, numbers in a row, elements. */
size_t tensor_heads(const struct problem *problem, enum tensor tensor);
size_t tensor_rows(const struct problem *problem, enum tensor tensor);
size_t tensor_columns(const struct problem *problem, enum tensor tensor);
size_t tensor_elements(const struct problem *problem, enum tensor tensor);

extern const char *const dtype_names[DTYPES]; /* "fp32", "fp16", "bf16", "fp8" */
size_t element_bytes(const struct problem *problem, enum tensor tensor);

/* Whether the step takes numbers of this type, and the one that it is given where nobody names one. */
bool takes_dtype(const struct step *step, enum dtype dtype);
enum dtype usual_dtype(const struct step *step);

/* The passes that a program is asked for. */
struct passes {
    bool forward, backward, deterministic; /* deterministic: the backward pass is */
};

/* Pairs (query, key) that the mask lets through, over all heads. */
double unmasked_pairs(const struct problem *problem);

/* Floating-point operations: 4 d per unmasked pair forward (two products), 10 d backward (five). */
double pass_flops(const struct problem *problem, struct passes passes);

/* Device memory for the tensors of these passes, in bytes. */
double tensor_bytes(const struct problem *problem, struct passes passes);

/* Device memory that the step needs beyond them, in bytes. */
size_t workspace_bytes_of(const struct step *step, const struct problem *problem);

/* Why the step cannot do these passes of this problem, as a sentence for its user; NULL when it can. The one place that
 * refuses: sizes outside of the limits of all steps, and what the step itself does not do. The text lasts until the next
 * call. */
const char *step_refuses(const struct step *step, const struct problem *problem, struct passes passes);
