/* The command line and the program behind it, the same for every step. */
#pragma once

#include "inputs.h"

enum { MAX_STAMPS = 16, MAX_SEQUENCES = 1024 /* of packed sequences, and of a cache with lengths */ };

struct options {
    struct problem problem;
    uint64_t seed;
    enum input_kind input;
    struct passes passes; /* --pass: what is reported; a backward pass always needs a forward one before it */
    int warmup, repeat;
    bool check, time, print;
    bool describe;            /* --describe: what the step is, and nothing else */
    bool meter, meter_source; /* --meter, --meter=source */
    int meter_every;          /* --meter-blocks */
    const char *trace;        /* file name, NULL for none */
    const char *trace_blocks; /* NULL: the first block of each launch */
    int shuffle_seed;
    const char *json;               /* file name, "-" for standard output, NULL for none */
    const char *stamps[MAX_STAMPS]; /* "key=value", copied into the JSON line */
    int stamp_count;
};

/* Read the command line; lists lie in memory that lasts, of which a program has one. Does not return when it is wrong (one line on standard error, exit status 2) or has --help in it
 * (exit status 0). */
struct options parse_options(int argc, char **argv, const struct step *step);

/* The body of main(): returns the exit status. 0 every check passed, 1 a result is wrong, 2 bad usage or an unsupported
 * size, 3 the device failed. `program` is the name that the build gave, which the step must have, too; `kernel` is the
 * fingerprint of its source. */
int harness_main(const struct step *step, const char *program, const char *kernel, int argc, char **argv);
