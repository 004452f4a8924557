/* What a program made by simt-nvcc has and a test of the book has not: settings from the environment, and an exit status
 * that tells of faults. Linked only where the linker is told to look for simt_standalone. */
#include "api.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

const int simt_standalone = 1;

enum { EXIT_FAULT = 3 };

static const char *meter; /* SIMT_METER, NULL: off */

static void print_meter(void) {
    simt_meter_stop();
    size_t length = strlen(meter);
    if (length < 5 || strcmp(meter + length - 5, ".json") != 0) {
        simt_meter_print(stderr, strcmp(meter, "source") == 0);
        return;
    }
    char *json = simt_meter_json();
    FILE *file = fopen(meter, "w");
    if (file == NULL || json == NULL || fprintf(file, "%s\n", json) < 0 || fclose(file) != 0) {
        perror(meter);
        _exit(EXIT_FAULT);
    }
    free(json);
}

static FILE *trace; /* SIMT_TRACE, or NULL */

static void finish_trace(void) {
    simt_trace_stop();
    if (trace != NULL && fclose(trace) == 0) return;
    perror(getenv("SIMT_TRACE"));
    _exit(EXIT_FAULT);
}

static void start_trace(const char *name, const char *blocks) {
    if (name != NULL && *name == '\0') name = NULL;
    if (blocks != NULL && (name == NULL || !simt_trace_start(NULL, blocks))) {
        fprintf(stderr, "simulated device: SIMT_TRACE_BLOCKS=%s: it must be at most 64 blocks, as 0,3, beside SIMT_TRACE\n",
                blocks);
        exit(2);
    }
    if (name == NULL) return;
    trace = fopen(name, "w");
    if (trace != NULL) {
        simt_trace_start(trace, blocks);
        return;
    }
    fprintf(stderr, "simulated device: SIMT_TRACE=%s cannot be written: %s\n", name, strerror(errno));
    exit(2);
}

/* The last thing before the program ends: whatever status it chose, a fault is told. */
static void at_exit(void) {
    if (api_no_more_calls != NULL) api_no_more_calls();
    if (meter != NULL) print_meter();
    if (trace != NULL) finish_trace();
    simt_list_warnings();
    bool ignored = api_tell_ignored();
    if (simt_fault_count() == 0 && !api_launch_untold && !(ignored && simt_strict)) return;
    fflush(NULL);
    _exit(EXIT_FAULT);
}

/* An assert() of the program's own that an error of the device made fail. */
static void on_abort(int number) {
    if (trace != NULL) finish_trace();
    if (simt_fault_count() > 0) _exit(EXIT_FAULT);
    signal(number, SIG_DFL);
    raise(number);
}

static unsigned number_from(const char *name) {
    const char *text = getenv(name);
    if (text == NULL || *text == '\0') return 0;
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*end == '\0' && *text != '-' && value <= 0xffffffffu) return (unsigned)value;
    fprintf(stderr, "simulated device: %s=%s is no whole number\n", name, text);
    exit(2);
}

static __attribute__((constructor)) void start(void) {
    atexit(at_exit);
    signal(SIGABRT, on_abort);
    int devices;
    cudaGetDeviceCount(&devices); /* a wrong SIMT_DEVICES ends the program */
    api_is_late();                /* so does a wrong SIMT_STREAMS */
    simt_shuffle_blocks(number_from("SIMT_SHUFFLE_SEED"));
    host_is_watched = true;
    memory_poison = 0x7b;
    simt_strict = number_from("SIMT_STRICT") != 0;
    meter = getenv("SIMT_METER");
    if (meter != NULL && (*meter == '\0' || strcmp(meter, "0") == 0)) meter = NULL;
    unsigned every = number_from("SIMT_METER_BLOCKS");
    if (meter != NULL) simt_meter_start(every > 0 ? every : 1);
    start_trace(getenv("SIMT_TRACE"), getenv("SIMT_TRACE_BLOCKS"));
}
