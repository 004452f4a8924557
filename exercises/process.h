/* Run another program under limits and keep what it says. */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <stddef.h>

struct limits {
    int seconds, cpu_seconds; /* on the wall clock; of each process */
    size_t address_bytes;     /* of address space; 0: no limit */
    size_t output_bytes;      /* standard output and error together; more ends the program */
};

struct outcome {
    int status;     /* of exit(), or 128 + the signal that ended it */
    bool timed_out; /* the limit of time ended it */
    bool too_long;  /* the limit of output ended it */
    char *output;   /* the caller's to free */
};

/* argv[0] is looked up in PATH. `results`: a file that the program finds open as descriptor 3; -1: none. The program gets no
 * standard input, and whatever it started is ended with it. */
struct outcome run_program(const char *const argv[], struct limits limits, int results);

#endif
