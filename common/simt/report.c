/* Errors in words: what happened, in which kernel, block and thread, at which source line. */
#define _GNU_SOURCE
#include "simt.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cudaError_t sticky = cudaSuccess;
static char report[4096];

cudaError_t simt_sticky_error(void) { return sticky; }
const char *simt_last_report(void) { return report; }

void simt_clear_error(void) {
    sticky = cudaSuccess;
    report[0] = '\0';
}

void simt_set_error(cudaError_t error, const char *text) {
    sticky = error;
    if (text != NULL) snprintf(report, sizeof report, "%s", text);
}

char *source_line(const void *pc) {
    Dl_info module;
    char *line = NULL;
    if (pc == NULL || dladdr(pc, &module) == 0 || module.dli_fname == NULL) return strdup("an unknown line");
    char exe[4096] = "/proc/self/exe";
    if (strchr(module.dli_fname, '/') != NULL) snprintf(exe, sizeof exe, "%s", module.dli_fname);
    /* A return address belongs to the call before it. The base is 0 for programs that are not position-independent. */
    uintptr_t address = (uintptr_t)pc - 1 - (uintptr_t)module.dli_fbase;
    char command[4400];
    snprintf(command, sizeof command, "addr2line -i -e '%s' 0x%lx 2>/dev/null", exe, (unsigned long)address);
    FILE *output = popen(command, "r");
    if (output == NULL) return strdup("an unknown line");
    char text[1024];
    while (fgets(text, sizeof text, output) != NULL) {
        text[strcspn(text, " \n")] = '\0'; /* drops "(discriminator 2)" too */
        bool ours = strstr(text, "simt_device.h") != NULL || strstr(text, "/include/c++/") != NULL;
        if (line == NULL && !ours && text[0] != '?') line = strdup(text);
    }
    pclose(output);
    if (line == NULL) return strdup("an unknown line");
    return line;
}

void simt_fail(cudaError_t error, const char *format, ...) {
    struct worker *worker = simt_worker;
    struct launch *launch = worker->launch;
    char text[3000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);

    pthread_mutex_lock(&lock);
    if (!atomic_load(&launch->failed)) { /* the first failure of a launch is the one told */
        int length = snprintf(report, sizeof report, "simulated device: %s in kernel %s, block (%u,%u,%u)",
                              cudaGetErrorName(error), launch->name, worker->block_index.x, worker->block_index.y,
                              worker->block_index.z);
        if (simt_self != NULL)
            length += snprintf(report + length, sizeof report - (size_t)length, ", thread (%u,%u,%u)",
                               simt_self->index.x, simt_self->index.y, simt_self->index.z);
        snprintf(report + length, sizeof report - (size_t)length, "\n    %s\n", text);
        fputs(report, stderr);
        sticky = error;
        atomic_store(&launch->failed, true);
    }
    pthread_mutex_unlock(&lock);

    if (simt_self != NULL) jump_fcontext(worker->scheduler, NULL); /* never resumed: launch->failed is set */
}
