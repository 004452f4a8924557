/* A fault: what happened, in which kernel, block and thread. The first one ends the run. */
#include "report.h"

#include "simulated.h"

#include <pthread.h>
#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cudaError_t sticky = cudaSuccess;
static char report[4096];
static _Atomic unsigned faults;

unsigned simt_fault_count(void) { return faults; }
cudaError_t simt_sticky_error(void) { return sticky; }
const char *simt_last_report(void) { return report; }

void simt_clear_error(void) {
    sticky = cudaSuccess;
    report[0] = '\0';
}

#define NAME_OF(each, number, text)                                                                                            \
    if (error == each) return #each;
const char *cudaGetErrorName(cudaError_t error) {
    SIMT_ERRORS(NAME_OF)
    return "unrecognized error code";
}

#define TEXT_OF(each, number, text)                                                                                            \
    if (error == each) return text;
const char *cudaGetErrorString(cudaError_t error) {
    SIMT_ERRORS(TEXT_OF)
    return "unrecognized error code";
}

double simt_setting(const char *name, double low, double high, double usual) {
    const char *text = getenv(name);
    if (text == NULL) return usual;
    char *end;
    double value = strtod(text, &end);
    bool whole = low < 1 || (value >= low && value <= high && value == (double)(long long)value);
    if (end != text && *end == '\0' && whole && value >= low && value <= high) return value;
    fprintf(stderr, "simulated device: %s is \"%.100s\": it must be %g to %g\n", name, text, low, high);
    exit(2);
}

bool simt_is_set_to(const char *other, const char *usual, const char *name) {
    const char *text = getenv(name);
    if (text == NULL || strcmp(text, usual) == 0) return false;
    if (strcmp(text, other) == 0) return true;
    fprintf(stderr, "simulated device: %s is \"%.100s\": it must be %s or %s\n", name, text, other, usual);
    exit(2);
}

void *resize_or_die(void *memory, size_t bytes) {
    memory = memory != NULL ? realloc(memory, bytes) : calloc(1, bytes);
    if (memory != NULL) return memory;
    fputs("simulated device: out of memory\n", stderr);
    abort();
}

void append_text(char *text, size_t room, const char *format, ...) { APPEND_ARGUMENTS(text, room, format); }

void *grow_or_die(void *list, unsigned count, unsigned *room, size_t element_bytes) {
    if (count < *room) return list;
    *room = 2 * *room + 16;
    return resize_or_die(list, *room * element_bytes);
}

void simt_print(FILE *to, const char *text) {
    struct winsize terminal = {0};
    const char *columns = getenv("COLUMNS");
    if (isatty(fileno(to)) && (columns == NULL || (terminal.ws_col = (unsigned short)atoi(columns)) == 0))
        ioctl(fileno(to), TIOCGWINSZ, &terminal);
    if (terminal.ws_col == 0) fputs(text, to), text = "";
    for (size_t column = 0, blanks, word; *text != '\0'; column += blanks + word, text += blanks + word) {
        if (*text == '\n') fputc(*text++, to), column = 0;
        blanks = strspn(text, " "), word = strcspn(text + blanks, " \n");
        if (column > 0 && column + blanks + word > terminal.ws_col) fputs("\n    ", to), text += blanks, blanks = 0, column = 4;
        fprintf(to, "%.*s", (int)(blanks + word), text);
    }
}

static void __attribute__((format(printf, 1, 2))) tell(const char *format, ...) {
    char text[3200] = "simulated device: ";
    APPEND_ARGUMENTS(text, sizeof text, format);
    simt_print(stderr, text);
}

void simt_report(cudaError_t error, const char *text) {
    snprintf(report, sizeof report, "simulated device: %s\n    %s\n", cudaGetErrorName(error), text);
    simt_print(stderr, report);
}

void simt_fail_at(const struct thread *thread, const void *pc, cudaError_t error, const char *format, ...) {
    struct worker *worker = simt_self != NULL ? simt_self->home : simt_worker;
    const struct uint3 block = thread != NULL ? thread->home->block_index : worker->block_index;
    struct launch *launch = worker->launch;
    char text[3000] = "", kernel[200];
    atomic_store(&worker->watchdog.block_started_ns, 0); /* the watchdog leaves the explanation alone */
    if (pc != NULL) append_text(text, sizeof text, "%s: ", source_line(pc));
    APPEND_ARGUMENTS(text, sizeof text, format);
    kernel_name(launch, kernel, sizeof kernel);
    pthread_mutex_lock(&lock);
    if (!atomic_load(&launch->failed)) { /* the first failure of a launch is the one told */
        snprintf(report, sizeof report, "simulated device: %s in kernel %s, block (%u,%u,%u)", cudaGetErrorName(error), kernel,
                 XYZ(block));
        if (thread != NULL) append_text(report, sizeof report, ", thread (%u,%u,%u)", XYZ(thread->index));
        append_text(report, sizeof report, "\n    %s\n", text);
        simt_print(stderr, report);
        sticky = error;
        faults++;
        atomic_store(&launch->failed, true);
    }
    pthread_mutex_unlock(&lock);

    simt_worker = worker;
    fiber_abandon(worker); /* never resumed: launch->failed is set */
}

void simt_fail_outside(cudaError_t error, const char *text) {
    pthread_mutex_lock(&lock);
    simt_report(error, text);
    sticky = error;
    faults++;
    pthread_mutex_unlock(&lock);
}

/* assert() calls it: the C library's function ends the program and knows no block or thread. */
void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function) {
    if (simt_self != NULL)
        simt_fail(NULL, cudaErrorAssert, "%s:%u: assertion failed in %s: %s", file, line, function, assertion);
    fprintf(stderr, "%s: %s:%u: %s: Assertion `%s' failed.\n", program_invocation_short_name, file, line, function, assertion);
    abort();
}

void simt_trap(void) {
    simt_fail(__builtin_return_address(0), cudaErrorIllegalInstruction, "__trap(): the kernel stops itself here");
}

/* ---- warnings -------------------------------------------------------------------------------------------------------- */

bool simt_strict = true, simt_in_step;

void simt_run_in_step(void) { simt_in_step = true; }

static struct warning {
    const void *key;
    unsigned long count;
    char *text;
} * warnings;
static unsigned warning_count, warning_room;

static struct warning *find_warning(const void *key) {
    unsigned i = 0;
    while (i < warning_count && warnings[i].key != key) i++;
    return i < warning_count ? &warnings[i] : NULL;
}

bool simt_warned(const void *key) {
    pthread_mutex_lock(&lock);
    struct warning *found = find_warning(key);
    if (found != NULL) found->count++;
    pthread_mutex_unlock(&lock);
    return found != NULL;
}

/* Of a warning, what happened: the explanation follows. */
static size_t what_length(const char *text) {
    const char *explanation = strstr(text, "; ");
    return explanation != NULL ? (size_t)(explanation - text) : strlen(text);
}

static void keep_warning(const void *key, const char *text) {
    pthread_mutex_lock(&lock);
    if (find_warning(key) == NULL) { /* else another CPU thread has told it just now */
        size_t length = what_length(text);
        unsigned same = 0; /* a warning that had the same explanation */
        while (same < warning_count && strcmp(warnings[same].text + what_length(warnings[same].text), text + length) != 0)
            same++;
        bool is_told = same < warning_count && text[length] != '\0';
        tell("warning %.*s%s\n", (int)(is_told ? length : strlen(text)), text, is_told ? "; as above" : "");
        APPEND(warnings, warning_count, warning_room) = (struct warning){key, 1, strdup(text)};
    }
    pthread_mutex_unlock(&lock);
}

void simt_warn(const void *key, const char *format, ...) {
    char text[3000], kernel[200];
    kernel_name(simt_worker->launch, kernel, sizeof kernel);
    snprintf(text, sizeof text, "in kernel %s, block (%u,%u,%u): ", kernel, XYZ(simt_worker->block_index));
    APPEND_ARGUMENTS(text, sizeof text, format);
    keep_warning(key, text);
}

void simt_warn_of_host(const void *key, const char *format, ...) {
    if (!simt_strict && simt_warned(key)) return;
    char text[3000] = "";
    APPEND_ARGUMENTS(text, sizeof text, format);
    if (!simt_strict)
        keep_warning(key, text);
    else if (faults++ == 0)
        tell("%s\n", text);
}

void simt_list_warnings(void) {
    if (warning_count > 0)
        tell("%u place%s a rule of CUDA; %s (SIMT_STRICT=1 makes it an error):\n", warning_count,
             warning_count == 1 ? " breaks" : "s break", "a card may give the right result by luck");
    for (unsigned i = 0; i < warning_count; i++) {
        char text[3200];
        snprintf(text, sizeof text, "    %lu time%s %.*s\n", warnings[i].count, warnings[i].count == 1 ? "" : "s",
                 (int)what_length(warnings[i].text), warnings[i].text);
        simt_print(stderr, text);
    }
}
