/* Standard error of what is meant to fail: kept to be compared, and not shown among the results of tests that pass. */
#ifndef CAPTURED_H
#define CAPTURED_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif
#include "../common/simt/include/simulated.h"
extern const char *simt_last_report(void) SIMT_WEAK;
#ifdef __cplusplus
}
#endif

/* Weak: one for all files of a program. */
__attribute__((weak)) FILE *captured;
__attribute__((weak)) int shown;

/* For .init: until the process of the test ends. */
static inline void capture_stderr(void) {
    captured = tmpfile();
    cr_assert_not_null(captured);
    fflush(stderr);
    shown = dup(STDERR_FILENO);
    dup2(fileno(captured), STDERR_FILENO);
}

/* What was written since; the caller's to free. */
static inline char *captured_text(void) {
    fflush(stderr);
    size_t length = (size_t)lseek(fileno(captured), 0, SEEK_END);
    char *text = (char *)calloc(length + 1, 1);
    cr_assert_not_null(text);
    cr_assert_eq(pread(fileno(captured), text, length, 0), (ssize_t)length);
    return text;
}

/* The device has written its reports and nothing else, the last one last. */
static inline void expect_reports(void) {
    char *text = captured_text();
    const char *last = simt_last_report != NULL ? simt_last_report() : "";
    size_t length = strlen(text), tail = strlen(last);
    cr_assert(tail <= length && strcmp(text + length - tail, last) == 0, "not the last report:\n%s", text);
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1)
        cr_assert(strncmp(line, "simulated device: ", 18) == 0 || strncmp(line, "    ", 4) == 0, "not a report:\n%s", line);
    free(text);
}

/* From here on it is shown again. */
static inline void end_capture(void) {
    dup2(shown, STDERR_FILENO);
    close(shown);
    fclose(captured);
}

#endif
