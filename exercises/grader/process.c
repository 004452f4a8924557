#include "process.h"

#include "status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void limit(int resource, unsigned long most) { setrlimit((__rlimit_resource_t)resource, &(struct rlimit){most, most}); }

static _Noreturn void become(const char *const argv[], struct limits limits, int results, int output, pid_t parent) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    signal(SIGPIPE, SIG_DFL);
    int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    int kept = 3;
    if (results >= 0 && results != 3) dup2(results, 3);
    if (results >= 0) fcntl(3, F_SETFD, 0), kept = 4;
    closefrom(kept);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, (unsigned long)limits.cpu_seconds);
    limit(RLIMIT_FSIZE, 256u << 20);
    if (limits.address_bytes > 0) limit(RLIMIT_AS, limits.address_bytes);
    if (limits.enter != NULL) limits.enter(argv, limits.with);
    char *const *variables = (char *const *)(uintptr_t)limits.environment;
    execvpe(argv[0], (char *const *)(uintptr_t)argv, variables != NULL ? variables : environ);
    fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* A control, no character at all, or one that ends lines or turns the direction of what follows. */
static bool is_control(wchar_t c) {
    return (c < ' ' && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c > 0x10ffff;
}

char *clean(char *text) {
    setlocale(LC_CTYPE, "C.UTF-8"); /* of mbtowc() */
    for (char *at = text; *at != '\0';) {
        wchar_t c;
        int length = mbtowc(&c, at, MB_LEN_MAX);
        if (length < 0 || is_control(c)) *at = '?', length = 1;
        at += length;
    }
    return text;
}

char *clean_name(const char *name) {
    char *text = clean(strdup(name));
    for (char *at = text; (at = strpbrk(at, "\"\\\n\t")) != NULL;) *at = '?';
    return text;
}

/* Read until the program closes its end, a limit is met or time is over. */
static void collect(int from, struct limits limits, struct outcome *outcome) {
    double deadline = seconds_now() + limits.seconds;
    size_t length = 0;
    for (;;) {
        double left = deadline - seconds_now();
        struct pollfd ready = {.fd = from, .events = POLLIN};
        int polled = left <= 0 ? 0 : poll(&ready, 1, (int)(left * 1000) + 1);
        if (polled < 0 && errno == EINTR) continue;
        outcome->timed_out = polled <= 0;
        if (polled <= 0) break;
        ssize_t got = read(from, outcome->output + length, limits.output_bytes + 1 - length);
        if (got <= 0) break;
        length += (size_t)got;
        outcome->too_long = length > limits.output_bytes;
        if (outcome->too_long) break;
    }
    outcome->output[length < limits.output_bytes ? length : limits.output_bytes] = '\0';
    clean(outcome->output);
}

static pid_t running; /* the group to end when this program is interrupted */
static void on_signal(int number) {
    if (running > 0) kill(-running, SIGKILL);
    leave_folder();
    _exit(128 + number);
}

struct outcome run_program(const char *const argv[], struct limits limits, int results) {
    struct outcome outcome = {.status = 127, .output = calloc(1, limits.output_bytes + 2)};
    int ends[2];
    if (outcome.output == NULL || pipe(ends) != 0) err(EXIT_FAILED, "pipe");
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    fflush(NULL);
    pid_t parent = getpid(), child = fork();
    if (child == 0) become(argv, limits, results, ends[1], parent);
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return outcome;
    }
    setpgid(child, child);
    running = child;
    watch_group(child);
    collect(ends[0], limits, &outcome);
    if (outcome.timed_out || outcome.too_long) kill(-child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    kill(-child, SIGKILL); /* what it left behind */
    running = 0;
    watch_group(0);
    close(ends[0]);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
}
