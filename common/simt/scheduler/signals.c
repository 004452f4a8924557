/* Signals: a kernel's bad access that no hook foresaw, a division by zero, and the watchdog's knock. */
#include "scheduler.h"

#include "device_memory.h"
#include "hooks.h"
#include "report.h"

#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

static const void *signal_pc(const ucontext_t *context) {
#if defined(__x86_64__)
    return (const void *)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void *)context->uc_mcontext.pc;
#endif
}

/* Where the host stands, in the program's own code: "FILE:LINE" of pc, or of the call that led there, and of its caller. */
static void host_line(const void *pc, char *text, size_t room) {
    enum { FRAMES = 64 };
    void *frames[FRAMES];
    int count = backtrace(frames, FRAMES), known = 0, next = 0;
    while (next + 1 < count && frames[next] != pc) next++;
    frames[next] = (char *)pc + 1; /* as if it were a call's */
    text[0] = '\0';
    for (; next < count && known < 2; next++) {
        char *line = source_line(frames[next]);
        if (source_line_is_known(line)) append_text(text, room, "%s%s", known++ > 0 ? ", called from " : "", line);
        free(line);
    }
    if (known == 0) append_text(text, room, "an unknown line");
}

static _Noreturn void end_at_fault(void) {
    fflush(NULL);
    _exit(3);
}

/* The host read or wrote what a device pointer points to: name the place, and end with the exit status of a fault. */
static void refuse_host_access(uintptr_t address, const void *pc, const char *verb) {
    char line[300];
    host_line(pc, line, sizeof line);
    fflush(stdout);
    fprintf(stderr,
            "simulated device: the host %s device memory at %s: %s. A pointer from cudaMalloc() is for kernels only: copy "
            "with cudaMemcpy(). If this line belongs to a kernel, it was called without <<<grid, block>>>\n",
            verb, line, describe_address(address).text);
    end_at_fault();
}

/* What only a kernel can use has no value on the host, so that this is where a kernel that is called as a function ends. */
static void explain_host_signal(int number, const void *pc) {
    if (simt_fault_count() > 0) end_at_fault(); /* of which the device has told: this is what follows */
    char line[300];
    host_line(pc, line, sizeof line);
    if (number == SIGSEGV && is_runtime_code((const char *)pc + 1)) {
        fprintf(stderr, "simulated device: %s: device code runs on the host: was a kernel called without <<<grid, block>>>?\n",
                line);
        end_at_fault();
    }
    fprintf(stderr, "simulated device: %s: %s on the host\n", line,
            number == SIGFPE   ? "integer division by zero"
            : number == SIGILL ? "a function ends without the return that its type needs"
                               : "access to memory that is not there");
}

/* A fault or the watchdog's signal in a kernel: leave the fiber for scheduler_run_block(), which explains. Elsewhere the signal
 * has its ordinary effect. */
static void on_signal(int number, siginfo_t *info, void *data) {
    const ucontext_t *context = data;
    struct worker *worker = simt_worker;
    if (worker == NULL && number == SIGSEGV && memory_place((uintptr_t)info->si_addr, 1).allocation != NULL) {
#if defined(__x86_64__)
        const char *verb = (context->uc_mcontext.gregs[REG_ERR] & 2) != 0 ? "writes" : "reads";
#else
        const char *verb = "accesses";
#endif
        refuse_host_access((uintptr_t)info->si_addr, signal_pc(context), verb);
    }
    if (worker == NULL && number != SIGUSR2) explain_host_signal(number, signal_pc(context));
    if (worker == NULL || !worker->on_fiber) {
        if (number != SIGUSR2) signal(number, SIG_DFL);
        return;
    }
    worker->signal->number = number;
    worker->signal->address = number == SIGSEGV || number == SIGBUS ? (uintptr_t)info->si_addr : 0;
    worker->signal->pc = signal_pc(context);
    worker->on_fiber = false; /* no second signal may interrupt the explanation */
    siglongjmp(worker->signal->escape, 1);
}

void scheduler_catch_signals(void) {
    static bool caught;
    if (caught) return;
    caught = true;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigemptyset(&action.sa_mask);
    int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGUSR2};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaction(numbers[i], &action, NULL);
}

void scheduler_explain_signal(struct worker *worker) {
    const void *place = (const char *)worker->signal->pc + 1;
    uintptr_t address = worker->signal->address;
    /* Stopped inside the runtime: the place is the kernel's last call into it. */
    enum { HOOK_BYTES = 64 }; /* of code, more than the hook of basic blocks has */
    bool in_block_hook = (uintptr_t)worker->signal->pc - (uintptr_t)__sanitizer_cov_trace_pc < HOOK_BYTES;
    const void *asked = in_block_hook ? (const void *)simt_last_block : simt_self->last_pc;
    char *line = source_line(place);
    if (strstr(line, ".cu:") == NULL && asked != NULL) place = asked;
    free(line);
    if (worker->signal->number == SIGUSR2)
        simt_fail(place, cudaErrorLaunchTimeout,
                  "a thread was still running here when the watchdog stopped it: an endless loop? (no thread had "
                  "come to a barrier, a shuffle or its end for SIMT_WATCHDOG_SECONDS, 10 where that is not set, or a block "
                  "had taken 6 times as long)");
    else if (worker->signal->number == SIGFPE)
        simt_fail(place, cudaErrorLaunchFailure, "integer division by zero");
    else if (worker->signal->number == SIGILL)
        simt_fail(place, cudaErrorIllegalInstruction,
                  "behind this line a function ends without the return that its type needs");
    else if (simt_self->stack - address <= (uintptr_t)sysconf(_SC_PAGESIZE))
        simt_fail(place, cudaErrorLaunchFailure,
                  "the thread's local memory (%d bytes) is full: local arrays too large, or endless recursion", STACK_BYTES);
    else
        simt_fail(place, cudaErrorIllegalAddress, "access to address %#lx, which is no device memory", (unsigned long)address);
}
