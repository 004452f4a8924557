/* libattention_steps.so: every step of the ladder behind plain C functions, for programs that bring their own device
 * memory (tests/pytorch/ does). Needs no header of this project to call: scalars, pointers and error codes only.
 *
 * A step is named by its place in the ladder, 0 to attention_step_count() - 1; attention_step_find() turns a name into
 * that. Sizes: batch, heads, N_q, N_kv >= 1 and at most 2^24, d from 1 to 128, batch * heads at most 65535; N_q queries
 * and N_kv keys in each of the batch * heads independent heads. causal is 0 or 1: query i sees key j where
 * j <= i + N_kv - N_q. scale is what scores are multiplied by, usually 1 / sqrt(d).
 *
 * All tensors are contiguous, row-major fp32 in the memory of the current device and begin at a multiple of 16 bytes, as
 * memory of cudaMalloc does:
 *
 *     Q, O, dO, dQ   (batch, heads, N_q, d)
 *     K, V, dK, dV   (batch, heads, N_kv, d)
 *     L              (batch, heads, N_q): the logsumexp of each row of scores
 *
 * Functions that return int return a cudaError_t where nothing else is said: 0 is success, attention_error_name() names
 * the others. They enqueue work on a stream (a cudaStream_t; NULL is the default one) and do not wait for it, so an error
 * inside a kernel is reported by a later call. */
#ifndef INTERFACE_H
#define INTERFACE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

int attention_step_count(void);

/* "01_naive", and what the step is about in a few words. NULL where there is no such step. */
const char *attention_step_name(int step);
const char *attention_step_idea(int step);

/* The step that is called `name`, or whose number is (both "01_naive" and "01" do); -1 when there is none. */
int attention_step_find(const char *name);

/* 1 when the step has such a pass, else 0. */
int attention_step_has_forward(int step);
int attention_step_has_backward(int step);
int attention_step_has_deterministic_backward(int step);

/* Why the step cannot do this problem, as a sentence for its user; NULL when it can. The text lasts until the next call
 * of this library. */
const char *attention_step_refuses(int step, int batch, int heads, int N_q, int N_kv, int d, int causal, float scale);

/* Bytes of device memory that a pass of this problem needs beyond its tensors; 0 when none, or when the step refuses. */
size_t attention_step_workspace_bytes(int step, int batch, int heads, int N_q, int N_kv, int d, int causal,
                                      float scale);

/* O and L of the problem. `workspace`: attention_step_workspace_bytes() bytes, contents undefined, NULL where that is 0;
 * two calls that may run at the same time need one each. Nothing is launched, and returned are
 *     cudaErrorInvalidValue        no such step, or a pointer that is needed is NULL
 *     cudaErrorMisalignedAddress   a pointer is not a multiple of 16 bytes
 *     cudaErrorNotSupported        the step has no such pass, or refuses the problem
 * else the first error of the launches. */
int attention_step_forward(int step, int batch, int heads, int N_q, int N_kv, int d, int causal, float scale,
                           const float *Q, const float *K, const float *V, float *O, float *L, void *workspace,
                           void *stream);

/* dQ, dK and dV from the forward pass's inputs and outputs and from dO; workspace and errors as above. */
int attention_step_backward(int step, int batch, int heads, int N_q, int N_kv, int d, int causal, float scale,
                            const float *Q, const float *K, const float *V, const float *O, const float *L,
                            const float *dO, float *dQ, float *dK, float *dV, void *workspace, void *stream);

/* The same with the same bits in every run, where the step has such a pass. */
int attention_step_backward_deterministic(int step, int batch, int heads, int N_q, int N_kv, int d, int causal,
                                          float scale, const float *Q, const float *K, const float *V, const float *O,
                                          const float *L, const float *dO, float *dQ, float *dK, float *dV,
                                          void *workspace, void *stream);

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

#endif
