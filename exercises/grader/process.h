/* Run another program under limits and keep what it says. */
#pragma once

#include <err.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct limits {
    int seconds, cpu_seconds;                                  /* on the wall clock; of each process */
    size_t address_bytes;                                      /* of address space; 0: no limit */
    size_t output_bytes;                                       /* standard output and error together; more ends the program */
    void (*enter)(const char *const argv[], const void *with); /* NULL, or what the process does last, before the program */
    const void *with;
    const char *const *environment; /* NULL: this process's own */
};

struct outcome {
    int status;     /* of exit(), or 128 + the signal that ended it */
    bool timed_out; /* the limit of time ended it */
    bool too_long;  /* the limit of output ended it */
    char *output;   /* the caller's to free; cleaned */
};

/* argv[0] is looked up in PATH. `results`: a file that the program finds open as descriptor 3; -1: none. The program gets no
 * standard input, and whatever it started is ended with it. It
 * ends when this process does. */
struct outcome run_program(const char *const argv[], struct limits limits, int results);

/* A limit of this process, which it cannot raise again. */
void limit(int resource, unsigned long most);

/* Make text fit to be shown: control characters, but for tabs and ends of lines, and what is not UTF-8 become '?'. */
char *clean(char *text);

/* A copy of a file's name, on one line, without quotation marks and backslashes: the caller's to free. */
char *clean_name(const char *name);

/* ---- folder.c: where submissions are compiled, and what must end with the grader ---- */

/* Where programs are built: EXERCISES_FOLDER for somebody who cannot write to the build folder. */
const char *scratch_folder(void);

/* A folder in it of this process alone, as an absolute path. A watcher, a process of its own, removes it with all that is in
 * it when this process ends, by whatever signal. What the watcher could not remove is removed later, by forget_old(). */
const char *own_folder(void);

/* The watcher ends this group of processes, too; 0: none. */
void watch_group(pid_t group);

/* Wait until the watcher is done: for handlers of signals, before they end this process. */
void leave_folder(void);

/* Remove what earlier processes left in scratch_folder() more than ten minutes ago. */
void forget_old(void);
