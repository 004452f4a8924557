/* What the calls of the runtime API share: a lock that admits one host thread at a time, the last error, and the number of
 * calls. It calls no other file of the API. */
#include "api.h"

#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t host_threads = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static _Thread_local unsigned depth; /* how often this thread has locked it */

/* A kernel that calls the API must not wait for the host thread that launched it. */
int api_enter(void) { return simt_self == NULL && pthread_mutex_lock(&host_threads) == 0 && ++depth > 0; }
int api_try_to_enter(void) { return pthread_mutex_trylock(&host_threads) == 0 && ++depth > 0; }
void api_leave(int *entered) {
    if (!*entered) return;
    depth--;
    pthread_mutex_unlock(&host_threads);
}

void api_let_others(void) {
    unsigned times = depth;
    for (unsigned i = 0; i < times; i++) pthread_mutex_unlock(&host_threads);
    usleep(1000);
    for (unsigned i = 0; i < times; i++) pthread_mutex_lock(&host_threads);
}

/* The error of the host thread's last call that failed without harm, as cudaGetLastError() tells it. */
static _Thread_local cudaError_t last_error;

cudaError_t api_remember(cudaError_t error) {
    if (simt_sticky_error() != cudaSuccess) return simt_sticky_error();
    if (error != cudaSuccess) last_error = error;
    return error;
}

/* The last call whose result the program dropped although it was an error. */
static struct {
    cudaError_t error;
    const char *call, *file;
    int line;
} ignored;

bool api_tell_ignored(void) {
    if (ignored.error == cudaSuccess) return false;
    fprintf(stderr, "simulated device: %s:%d: %s() failed with %s, and the program does not check it\n", ignored.file,
            ignored.line, ignored.call, cudaGetErrorName(ignored.error));
    ignored.error = cudaSuccess;
    return true;
}

void simt_ignored_error(int error, const char *call, const char *file, int line) {
    ONE_HOST_THREAD;
    if (error == cudaSuccess || (cudaError_t)error == simt_sticky_error()) return; /* the latter is told already */
    call = TEXT_OF_KERNEL(call);
    if (strcmp(call, "cudaGetLastError") == 0 || strcmp(call, "cudaPeekAtLastError") == 0) return;
    api_tell_ignored();
    ignored.error = (cudaError_t)error;
    ignored.call = call, ignored.file = TEXT_OF_KERNEL(file), ignored.line = line;
}

cudaError_t cudaPeekAtLastError(void) { return simt_sticky_error() != cudaSuccess ? simt_sticky_error() : last_error; }

bool api_launch_failed, api_launch_untold;

void api_forget_errors(void) {
    simt_clear_error();
    api_launch_failed = api_launch_untold = false;
    last_error = cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    cudaError_t error = cudaPeekAtLastError();
    last_error = cudaSuccess;
    api_launch_untold = false;
    ignored.error = cudaSuccess;
    return error;
}

/* ---- counts of calls, and the one that a test wants to fail ---------------------------------------------------------- */

static unsigned calls_to_failure;

unsigned simt_fail_call(unsigned number) {
    unsigned before = calls_to_failure;
    calls_to_failure = number;
    return before;
}

static unsigned long calls;

unsigned long simt_calls(void) { return calls; }

bool api_call_is_to_fail(void) {
    calls++;
    return calls_to_failure > 0 && --calls_to_failure == 0;
}

static unsigned long default_stream_uses;

void simt_note_stream(const void *stream) {
    if (stream == NULL || stream == (const void *)cudaStreamLegacy) default_stream_uses++;
}

unsigned long simt_default_stream_uses(void) { return default_stream_uses; }
