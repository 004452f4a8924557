/* Every access of a kernel to memory is judged here. Knows memory, its shadow and the meter. */
#pragma once

#include "shadow.h"

/* Judge one access of the running thread; pc is the return address of the call that stands for it. `marked` accesses,
 * atomic or volatile, do not race with one another. */
void simt_check_access(const void *pointer, size_t bytes, enum access_kind kind, bool marked, const void *pc);
/* The same of one that is no request of a warp: the meter does not see it. */
void simt_check_uncounted(const void *pointer, size_t bytes, enum access_kind kind, bool marked, const void *pc);

/* A fence of the running thread, or the one in an operation that orders; pc: where it stands. */
void hooks_fence(enum simt_scope scope, enum simt_ordering of, const void *pc);

/* Add `count` floats, each by an atomic addition; judged before. */
void atomic_add_floats(float *address, const float *operand, size_t count);

/* Confined code: the thread's registers that an instruction writes must lie in frames of its own functions, or the launch fails.
 * `own`: of the runtime's function that has been called, by __builtin_frame_address(0). */
void confined_registers(const void *registers, size_t bytes, const void *own);
/* A launch by it: of a function of its own, with arguments in its own frames, or the program ends. */
void confined_launch(uintptr_t run, const void *arguments, size_t bytes, const void *own);

void __sanitizer_cov_trace_pc(void);

/* Plain accesses of the host's code in a kernel file, or NULL: api/host.c looks at them now and then. */
extern void (*host_access)(const void *pointer, size_t bytes, enum access_kind kind, const void *pc);
