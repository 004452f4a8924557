/* What the files of planted faults share. A fault and its twin are one template: with CORRECT it has what it needs. FAULT()
 * makes their tests, faults/NAME and twins/NAME; FAULT_OF_ORDER() orders/NAME and twins/NAME; PATTERN() that of a correct kernel which looks suspicious, patterns/NAME.
 *
 * All read `in` and write `out`, two arrays of ELEMENTS ints on the device; `out` starts as zeros.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include "captured.h"

#include <criterion/criterion.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ELEMENTS = 1000 };
#define FAULT_OF_HOST ((cudaError_t)-1)
#define SIGNAL_OF_HOST ((cudaError_t)-2) /* the program ends by a signal, after a message */

struct fault {
    const char *name;  /* of the kernel */
    const char *file;  /* in which the lines of the kernel to be named end in "// here" */
    cudaError_t error; /* that the faulty kernel must give; FAULT_OF_HOST: the program ends at the fault, status 3 */
    const char *says;  /* words of the report; "this|that": which of them, and of the marked lines, depends on the order of warps */
    /* Launch the faulty kernel, or its twin; neither waits. */
    void (*launch)(const int *in, int *out);
    void (*launch_twin)(const int *in, int *out);
    int (*expected)(const int *in, int i); /* what the twin leaves in out[i] */
};

/* The inputs, fresh for each launch: a failed kernel leaves nothing behind. */
struct arrays {
    int host_in[ELEMENTS];
    int *in, *out;
};

void must_be_found(const struct fault *fault);
void must_be_found_in_some_order(const struct fault *fault, int in_turn);
void must_hold(const struct fault *fault);
void make_arrays(struct arrays *arrays);
const char *report(void);
void launch_fault(const struct fault *fault);
void report_says(const char *words);
void report_does_not_say(const char *words);

#ifdef __cplusplus
}

/* ---- for the files of kernels ---- */

enum { T = 128 }; /* threads of a block, where not said otherwise */

__device__ static inline int global_thread() { return (int)(blockIdx.x * blockDim.x + threadIdx.x); }
static inline int count_of(const int *in, int bin, int count) {
    int found = 0;
    for (int i = 0; i < count; i++) found += (in[i] & 7) == bin;
    return found;
}

static inline int sum_of(const int *in, int count) {
    int sum = 0;
    for (int i = 0; i < count; i++) sum += in[i];
    return sum;
}

__device__ static inline int warp_sum(int value) {
    for (int bit = 16; bit > 0; bit /= 2) value += __shfl_xor_sync(0xffffffffu, value, bit);
    return value;
}

static inline int *new_ints(int count) {
    int *memory = nullptr;
    cudaMalloc(&memory, (size_t)count * sizeof(int));
    return memory;
}

/* What element i < count must be; beyond, out keeps its zeros. */
#define FIRST(count, expression)                                                                                       \
    [](const int *in, int i) {                                                                                         \
        (void)in;                                                                                                      \
        return i < (count) ? (expression) : 0;                                                                         \
    }

/* fault_runner.c finds them all in this section of the program. */
#define LISTED(name) __attribute__((used, section("faults"))) static const struct fault *const listed_##name = &fault_##name;

#define FAULT(name, error, says, expected, ...)                                                                        \
    template <bool CORRECT> static void launch_##name(const int *in, int *out) { __VA_ARGS__; }                        \
    static const struct fault fault_##name = {#name, __FILE__, error, says, launch_##name<false>, launch_##name<true>, expected}; \
    LISTED(name)                                                                                                       \
    Test(faults, name) { must_be_found(&fault_##name); }                                                               \
    Test(twins, name) { must_hold(&fault_##name); }
/* One that shows only in some orders of the warps: with IN_TURN also when each takes its turn. */
#define FAULT_OF_ORDER(name, in_turn, error, says, expected, ...)                                                      \
    template <bool CORRECT> static void launch_##name(const int *in, int *out) { __VA_ARGS__; }                        \
    static const struct fault fault_##name = {#name, __FILE__, error, says, launch_##name<false>, launch_##name<true>, expected}; \
    Test(orders, name) { must_be_found_in_some_order(&fault_##name, in_turn); }                                        \
    Test(twins, name) { must_hold(&fault_##name); }
#define PATTERN(name, expected, ...)                                                                                   \
    static void launch_##name(const int *in, int *out) { __VA_ARGS__; }                                                \
    static const struct fault fault_##name = {#name, __FILE__, cudaSuccess, "", launch_##name, launch_##name, expected}; \
    LISTED(name)                                                                                                       \
    Test(patterns, name) { must_hold(&fault_##name); }

#endif

#endif
