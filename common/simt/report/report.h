/* Errors in words, and places of the program as source lines. Knows the machine: which block and thread runs. */
#pragma once

#include "cuda_runtime.h"
#include "machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* End the running kernel with `error`, a fault of `thread`, NULL: of the block as a whole. The text is kept and printed, the block
 * is abandoned. The text begins with the source line of `pc`, unless that is NULL. Called from a fiber it does not return; called
 * from the scheduler it does. */
void simt_fail_at(const struct thread *thread, const void *pc, cudaError_t error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#define simt_fail(...) simt_fail_at(simt_self, __VA_ARGS__) /* of the running thread */

/* The environment's number `name`, `usual` where it is not set; a whole one where `low` is 1 or more. What is no number from
 * `low` to `high` ends the program: one line, and exit status 2. */
double simt_setting(const char *name, double low, double high, double usual);
/* Whether an environment variable is `other`, and not `usual` or absent; anything else ends the program with exit status 2. */
bool simt_is_set_to(const char *other, const char *usual, const char *name);

/* realloc(), or zeros where `memory` is NULL; the program ends where there is no memory. */
void *resize_or_die(void *memory, size_t bytes);
/* The list of `count` elements, with room for one more. APPEND(list, count, room) = VALUE; makes that and stores it. */
void *grow_or_die(void *list, unsigned count, unsigned *room, size_t element_bytes);
#define APPEND(list, count, room) *((list) = grow_or_die((list), (count), &(room), sizeof *(list)), &(list)[(count)++])

/* Write behind the text, as far as there is room: what follows, or in a function with arguments behind `format` these. */
void append_text(char *text, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define APPEND_ARGUMENTS(text, room, format)                                                                                   \
    do {                                                                                                                       \
        va_list arguments_;                                                                                                    \
        va_start(arguments_, format);                                                                                          \
        vsnprintf((text) + strlen(text), (room)-strlen(text), format, arguments_);                                             \
        va_end(arguments_);                                                                                                    \
    } while (0)

/* Print the text and keep it for simt_last_report(): an error that is no fault of a kernel. */
void simt_report(cudaError_t error, const char *text);

/* A fault of an operation that no kernel's thread does. */
void simt_fail_outside(cudaError_t error, const char *text);

/* What a card tolerates is a fault (strict, the default), or is told and lets the kernel go on: the caller chooses. Each place,
 * `key`, is told once and counted: simt_warned() counts it and says whether it has been told. simt_warn() names the block that
 * runs: on a worker only. */
extern bool simt_strict;
/* After simt_run_in_step(): neither races inside of a block nor unwritten values are looked for, and every basic
 * block, and every access that may be part of a race, lets the other threads come as far. */
extern bool simt_in_step;
bool simt_warned(const void *key);
void simt_warn(const void *key, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Of the host's code: a fault is counted, and the program goes on. */
void simt_warn_of_host(const void *key, const char *format, ...) __attribute__((format(printf, 2, 3)));
void simt_list_warnings(void); /* to standard error; nothing when there are none */

unsigned simt_fault_count(void); /* faults found since the program began */
cudaError_t simt_sticky_error(void);
void simt_clear_error(void);

/* "steps/01_naive/naive.cu:42" of a code address; the text is the caller's to free. Lines of the simulator's own headers
 * are passed over in favour of the kernel's line that they were inlined into. Behind a line of another header stands
 * the one that calls it, "common/device/device.cuh:35, called at steps/05_fa2_fwd/fa2_fwd.cu:65", and behind a header's that one
 * of the kernel, unless it is to stand alone. */
char *source_line(const void *pc);
char *source_line_alone(const void *pc);
char *source_line_of_kernel(const void *pc);          /* the innermost in a .cu: it may call what a header has */
char *calling_line(void);                             /* of the host's own code that called the device's */
char *line_of_frames(void *const *frames, int count); /* the same, of what backtrace() gave; NULL may end them */
bool source_line_is_known(const char *line);          /* not of code without line numbers, nor of the simulated device */
bool is_runtime_code(const void *pc);                 /* of the simulated device itself */

/* Does the statement in a line that source_line() names update an element, as += does? UPDATE: `text` says what to use instead. */
enum update { UPDATE_UNKNOWN, UPDATE, NO_UPDATE };
enum update source_update(const char *line, char *text, size_t room);

/* "fa2_forward<64>" of a kernel's code, into text; its name in the source where that cannot be found. */
void kernel_name(const struct launch *launch, char *text, size_t room);
