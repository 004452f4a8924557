/* Between the files of the runtime API. calls.c knows none of the others, then come host.c, runtime.c, queries.c and
 * copies.c, launch.c. */
#pragma once

#include "cuda_runtime.h"
#include "device_memory.h"
#include "report.h"

/* At the head of a call that uses what all host threads share: until it returns, the others wait. May be nested. */
#define ONE_HOST_THREAD int api_entered __attribute__((cleanup(api_leave), unused)) = api_enter()
int api_enter(void);
void api_leave(int *entered);
int api_try_to_enter(void);

/* Keep the error for cudaGetLastError(), and return what the call returns: an earlier kernel's failure goes first. */
cudaError_t api_remember(cudaError_t error);
extern bool api_launch_failed; /* one was refused since the last cudaDeviceReset() */
extern bool api_launch_untold; /* one was refused, and nobody has asked for the error since */
void api_forget_errors(void);  /* as cudaDeviceReset() does */
bool api_tell_ignored(void);   /* an error that was dropped, which nobody has asked for; false: none */
extern unsigned api_parts;     /* as simt_run_part() says */
bool api_is_device(int device);
extern const int api_most_blocks[3], api_most_threads[3]; /* of a launch, in x, y, z */
cudaError_t api_allocate(void **pointer, size_t bytes, enum memory_kind kind);
cudaError_t api_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
/* host.c: what the host does too early, in a program that simt-nvcc makes */
extern bool host_is_watched;
void host_launched(uint64_t order);
void host_copies_later(const void *to, size_t bytes); /* to page-locked memory */
void host_waited(void);
void host_copies_unwritten(const void *from, size_t bytes); /* tells it where it is so */
bool api_call_is_to_fail(void);                             /* counts calls, as simt_fail_call() says */
