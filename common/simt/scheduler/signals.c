/* Signals: a kernel's bad access that no hook foresaw, a division by zero, and the watchdog's knock. */
#define _GNU_SOURCE
#include "scheduler.h"

#include "cuda_runtime.h"
#include "device_memory.h"
#include "hooks.h"
#include "report.h"

#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/* The host read or wrote what a device pointer points to: name the place in the program's own code, and end with the exit
 * status of a fault. */
static void refuse_host_access(uintptr_t address, const void *pc, const char *verb) {
    enum { FRAMES = 64 };
    void *frames[FRAMES];
    int count = backtrace(frames, FRAMES), first = 0;
    while (first < count && frames[first] != pc) first++;
    char *line = source_line((const char *)pc + 1);
    for (int i = first + 1; i < count && !source_line_is_known(line); i++) {
        free(line);
        line = source_line(frames[i]);
    }
    char what[300];
    describe_address(address, what, sizeof what);
    fflush(NULL);
    fprintf(
        stderr,
        "simulated device: the host %s device memory at %s: %s. A pointer from cudaMalloc() is for kernels only: copy "
        "with cudaMemcpy()\n",
        verb, line, what);
    _exit(3);
}

/* A fault or the watchdog's signal in a kernel: leave the fiber for scheduler_run_block(), which explains. Elsewhere the signal
 * has its ordinary effect. */
static void on_signal(int number, siginfo_t *info, void *data) {
    const ucontext_t *context = data;
    struct worker *worker = simt_worker;
    if (worker == NULL && number == SIGSEGV && memory_find((uintptr_t)info->si_addr) != NULL) {
#if defined(__x86_64__)
        bool writes = (context->uc_mcontext.gregs[REG_ERR] & 2) != 0;
        refuse_host_access((uintptr_t)info->si_addr, (const void *)context->uc_mcontext.gregs[REG_RIP],
                           writes ? "writes" : "reads");
#elif defined(__aarch64__)
        refuse_host_access((uintptr_t)info->si_addr, (const void *)context->uc_mcontext.pc, "accesses");
#endif
    }
    if (worker == NULL || !worker->on_fiber) {
        if (number != SIGUSR2) signal(number, SIG_DFL);
        return;
    }
    worker->signal = number;
    worker->signal_address = number == SIGSEGV || number == SIGBUS ? (uintptr_t)info->si_addr : 0;
#if defined(__x86_64__)
    worker->signal_pc = (const void *)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    worker->signal_pc = (const void *)context->uc_mcontext.pc;
#endif
    worker->on_fiber = false; /* no second signal may interrupt the explanation */
    siglongjmp(worker->escape, 1);
}

void scheduler_catch_signals(void) {
    static bool caught;
    if (caught) return;
    caught = true;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigemptyset(&action.sa_mask);
    int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGUSR2};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaction(numbers[i], &action, NULL);
}

void scheduler_explain_signal(struct worker *worker) {
    char *line = source_line((const char *)worker->signal_pc + 1);
    uintptr_t address = worker->signal_address;
    /* Stopped inside the runtime: what the kernel asked of it last is the place. */
    enum { HOOK_BYTES = 64 }; /* of code, more than the hook of basic blocks has */
    bool in_block_hook = (uintptr_t)worker->signal_pc - (uintptr_t)__sanitizer_cov_trace_pc < HOOK_BYTES;
    const void *asked = in_block_hook ? (const void *)simt_last_block : simt_self->last_pc;
    if (strstr(line, ".cu:") == NULL && asked != NULL) {
        free(line);
        line = source_line(asked);
    }
    if (worker->signal == SIGUSR2)
        simt_fail(cudaErrorLaunchTimeout,
                  "%s: a thread was still running here when the block's time was up: an endless loop? (the watchdog's "
                  "seconds are set by SIMT_WATCHDOG_SECONDS)",
                  line);
    else if (worker->signal == SIGFPE)
        simt_fail(cudaErrorLaunchFailure, "%s: integer division by zero", line);
    else if (simt_self->stack - address <= (uintptr_t)sysconf(_SC_PAGESIZE))
        simt_fail(cudaErrorLaunchFailure,
                  "%s: the thread's local memory (%d bytes) is full: local arrays too large, or "
                  "endless recursion",
                  line, STACK_BYTES);
    else
        simt_fail(cudaErrorIllegalAddress, "%s: access to address %#lx, which is no device memory", line,
                  (unsigned long)address);
}
