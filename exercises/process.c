#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void limit(int resource, rlim_t most) { setrlimit((__rlimit_resource_t)resource, &(struct rlimit){most, most}); }

static _Noreturn void become(const char *const argv[], struct limits limits, int results, int output) {
    setpgid(0, 0);
    int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    int kept = 3;
    if (results >= 0 && results != 3) dup2(results, 3);
    if (results >= 0) fcntl(3, F_SETFD, 0), kept = 4;
    for (int fd = kept; fd < 256; fd++) close(fd);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, (rlim_t)limits.cpu_seconds);
    limit(RLIMIT_FSIZE, 256u << 20);
    if (limits.address_bytes > 0) limit(RLIMIT_AS, limits.address_bytes);
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
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
}

static pid_t running; /* the group to end when this program is interrupted */
static void on_signal(int number) {
    if (running > 0) kill(-running, SIGKILL);
    _exit(128 + number);
}

struct outcome run_program(const char *const argv[], struct limits limits, int results) {
    struct outcome outcome = {.status = 127, .output = calloc(1, limits.output_bytes + 2)};
    int ends[2];
    if (outcome.output == NULL || pipe(ends) != 0) {
        perror("pipe");
        exit(3);
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) become(argv, limits, results, ends[1]);
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return outcome;
    }
    setpgid(child, child);
    running = child;
    collect(ends[0], limits, &outcome);
    if (outcome.timed_out || outcome.too_long) kill(-child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    kill(-child, SIGKILL); /* what it left behind */
    running = 0;
    close(ends[0]);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
}
