/* libattention_steps.so: every step of the ladder behind plain C functions, for programs that bring their own device
 * memory (tests/pytorch/ does). Needs no header of this project to call: attention_fields() tells the layout of the one
 * struct that it takes.
 *
 * Functions that return int return a cudaError_t where nothing else is said: 0 is success, attention_error_name() names
 * the others. They enqueue work on a stream and do not wait for it, so an error inside a kernel is reported by a later
 * call. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum attention_pass_kind { ATTENTION_FORWARD, ATTENTION_BACKWARD, ATTENTION_BACKWARD_DETERMINISTIC };

/* One call. All tensors are contiguous and row-major in the memory of the current device and begin at a multiple of 16
 * bytes, as memory of cudaMalloc does. A pass uses those that it needs; the others may be NULL. */
struct attention_call {
    size_t bytes; /* sizeof(struct attention_call): a caller with another layout is refused */
    int step;     /* its place in the ladder, 0 to attention_step_count() - 1 */
    int pass;     /* an attention_pass_kind */
    int dtype;    /* 0 fp32, 1 fp16, 2 bf16: of all tensors but L, which is fp32 */
    int batch, heads, N_q, N_kv, d;
    int heads_kv;          /* heads of K and V, which divide `heads`; 0: as many. Shapes below say heads_kv for this number */
    int causal;            /* 0 or 1: query i attends to key j where j <= i + N_kv - N_q */
    float scale;           /* what scores are multiplied by, usually 1 / sqrt(d) */
    const void *Q, *K, *V; /* (batch, heads, N_q, d), (batch, heads_kv, N_kv, d) twice */
    void *O, *L;           /* (batch, heads, N_q, d), (batch, heads, N_q): the logsumexp of each row of scores */
    const void *dO;        /* (batch, heads, N_q, d) */
    void *dQ, *dK, *dV;    /* shapes of Q, K, V */
    void *workspace;       /* attention_workspace_bytes(), contents undefined; calls that may run at the same time need
                                one each */
    void *stream;          /* a cudaStream_t; NULL is the default one */
    /* Variants, as in struct problem of attention.h; all zero for the plain problem. */
    int windowed, left, right; /* 0 or 1; both at most N_q + N_kv */
    float softcap;
    int alibi; /* 0 none, 1 one formula, 2 the released code's slopes */
    float dropout;
    size_t dropout_seed;
    int rotary;         /* 0 none, 1 interleaved, 2 halved */
    const void *starts; /* (sequences + 1) ints on the device: packed sequences */
    int sequences, longest;
    const void *lengths, *pages; /* (batch) and (batch, ceil(N_kv / page_size)) ints on the device; K and V are then pages,
                                     (page_count, heads_kv, page_size, d) */
    int page_size, page_count;
};

/* The members of struct attention_call, for callers without this header; the one after the last has no name. */
struct attention_field {
    const char *name;
    const char *type; /* "size_t", "int", "float" or "pointer" */
    size_t offset;
};
const struct attention_field *attention_fields(void);
size_t attention_call_bytes(void); /* sizeof(struct attention_call) */

int attention_step_count(void);

/* "01_naive", and what the step is about in a few words. NULL where there is no such step. */
const char *attention_step_name(int step);
const char *attention_step_idea(int step);

/* The step that is called `name`, or whose number is (both "01_naive" and "01" do); -1 when there is none. */
int attention_step_find(const char *name);

/* 1 when the step has such a pass, else 0. */
int attention_step_has(int step, int pass);

/* The data types that the step takes, as a sum of 1 << dtype; 0 where there is no such step. */
unsigned attention_step_dtypes(int step);

/* What the step takes beyond the plain problem, as a sum: 1 window, 2 softcap, 4 ALiBi, 8 dropout, 16 rotary embedding, 32 packed
 * sequences, 64 pages, 128 fewer heads of K and V than of Q; 0 where there is no such step. */
unsigned attention_step_variants(int step);

/* Why this call cannot be done, as a sentence for its user; NULL when it can. Tensors are not looked at, nor are
 * the numbers in starts, lengths and pages: a wrong number makes the kernel access memory outside of a tensor. The text lasts
 * until the next call of this library in the same thread. */
const char *attention_refuses(const struct attention_call *call);

/* Bytes of device memory that the call needs beyond its tensors; 0 when none, or when it is refused. */
size_t attention_workspace_bytes(const struct attention_call *call);

/* Run the pass. Nothing is launched, and returned are
 *     cudaErrorInvalidValue        `bytes` is not this library's, or a pointer that is needed is NULL
 *     cudaErrorMisalignedAddress   a pointer is not a multiple of 16 bytes
 *     cudaErrorNotSupported        attention_refuses() says why
 * else the first error of the launches. */
int attention_run(const struct attention_call *call);

/* "cudaErrorInvalidValue", and the same as a sentence. */
const char *attention_error_name(int error);
const char *attention_error_text(int error);

/* The CUDA runtime that the library uses, as 1000 * major + 10 * minor; 0 when it cannot say. */
int attention_cuda_version(void);

/* How many devices there are, into *count. Returns a cudaError_t: without a driver or a card this is not 0. */
int attention_device_count(int *count);

#ifdef __cplusplus
}
#endif
