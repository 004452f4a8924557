/* Signals: a kernel's bad access that no hook foresaw, a division by zero, and the watchdog's knock. */
#define _GNU_SOURCE
#include "scheduler.h"

#include "cuda_runtime.h"
#include "hooks.h"
#include "report.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/* A fault or the watchdog's signal in a kernel: leave the fiber for scheduler_run_block(), which explains. Elsewhere the signal
 * has its ordinary effect. */
static void on_signal(int number, siginfo_t *info, void *data) {
    const ucontext_t *context = data;
    struct worker *worker = simt_worker;
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
