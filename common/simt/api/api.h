/* Between the files of the runtime API. calls.c and late.c know none of the others, then come host.c, waits.c, runtime.c, queries.c and
 * copies.c, launch.c. */
#pragma once

#include "cuda_runtime.h"
#include "device_memory.h"
#include "report.h"
#include "streams.h"

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
extern _Thread_local int api_device;                      /* the current one */
extern const int api_most_blocks[3], api_most_threads[3]; /* of a launch, in x, y, z */
cudaError_t api_allocate(void **pointer, size_t bytes, enum memory_kind kind);
cudaStream_t api_stream(cudaStream_t handle); /* NULL: it is none */
/* The same, for work that is to be done at once: what the stream waits for has been done. NULL also after a fault. */
cudaStream_t api_stream_for_work(cudaStream_t handle);
/* nccl.c sets them. Has all communication come about that the clock holds? With `waits`, it is waited for: NEVER has been told.
 * NULL: of what has not, nothing is left. */
enum communication { COME_ABOUT, UNDER_WAY, NEVER };
extern enum communication (*api_communication)(const struct clock *clock, bool waits);
/* Has the thread called for this stream, or (NULL) this device, in a group that has not ended? That is told. */
extern bool (*api_calls_wait_for_group)(const struct CUstream_st *stream, int device);
extern void (*api_no_more_calls)(void); /* the program ends */
/* Let other host threads call the API for a moment. */
void api_let_others(void);
void api_counts_wait(void);
cudaError_t api_wait_for_device(int device);
struct copy {
    void *to;
    size_t to_pitch;
    const void *from;
    size_t from_pitch, width, rows;
    enum cudaMemcpyKind kind;
};
cudaError_t api_copy(const struct copy *copy, cudaStream_t stream, bool waits);
/* late.c */
bool api_is_late(void);
void api_move(const struct copy *copy);
void api_move_late(const struct copy *copy, const struct operation *operation, const struct operation *other,
                   const struct clock *before);
void api_run_late(const struct clock *clock);  /* what comes before; NULL: all */
void api_run_late_before(cudaStream_t stream); /* the same, of the stream's next operation */
cudaError_t api_set(void *pointer, size_t pitch, int value, size_t width, size_t rows, cudaStream_t stream, bool waits);
/* host.c: what the host does too early, in a program that simt-nvcc makes */
extern bool host_is_watched;
void host_watch(void); /* there is something new to wait for, or less */
void host_goes_inside(cudaStream_t of,
                      const struct operation *operation);   /* a function that a stream runs begins; NULL: ends */
void host_copies_unwritten(const void *from, size_t bytes); /* tells it where it is so */
bool api_call_is_to_fail(void);                             /* counts calls, as simt_fail_call() says */
