/* A kernel file of any origin, made into a program and run under guard. */
#pragma once

#include "options.h"
#include "run.h"

#include <cjson/cJSON.h>

/* Compile the text of a kernel file, which lies in the folder of `file`, and link it with child.c. Messages call the file
 * `shown`. Returns the program's path, the caller's to free; or NULL, with the reason in `message` (the caller's to free,
 * too). `confined`: what it calls must be what device code may call, and the caller removes the program; any other is kept for
 * a while, and used again when the same text and headers come back. */
char *build_submission(const char *text, const char *file, const char *shown, bool confined, char **message);

/* FAULTED: the device found a fault; REFUSED: the step does not take the problem; BROKE_OFF: crash, limit, no results. */
enum ending { FINISHED, FAULTED, REFUSED, BROKE_OFF };

struct submission_run {
    struct run run; /* host tensors only: inputs, and the outputs that the program handed over */
    enum ending ending;
    char *message; /* why it did not finish */
    char *printed; /* what a program that finished printed; NULL: nothing */
    cJSON *meter;  /* where it was asked for */
};

/* Of its struct step; the data type that it has as a rule: fp32, where it has that. */
struct description {
    int passes[3]; /* forward, backward, deterministic backward: whether it has them */
    unsigned dtype, dtypes, variants, grouped_heads;
    int most_queries, d_multiple, hadamard;
};
struct description describe_submission(const char *program);

/* `how` a submission is run: METERED fills in `meter`; IN_STEP runs on past races inside of a block and unwritten values, all
 * threads of a block in step; DETERMINISTIC takes its other backward pass. */
enum { METERED = 1, IN_STEP = 2, DETERMINISTIC = 4 };

/* What child.c reads, with the inputs behind it, and what it writes behind those. No seed: nothing that its process holds is a
 * secret. */
struct request {
    struct problem problem;
    bool backward;
    unsigned how;
    int numbers[MAX_SEQUENCES + 1]; /* what the problem's starts or lengths point to */
};
struct reply {
    unsigned ok; /* 0: the device found a fault. No bool: who writes it is not trusted, and a bool must be 0 or 1 */
    size_t workspace_bytes;
};

/* Run it once in a process of its own. */
struct submission_run run_submission(const char *program, const struct problem *problem, enum input_kind input, uint64_t seed,
                                     bool backward, unsigned how);
void free_submission_run(struct submission_run *run);

/* A sum over all kernels of something that the meter counts, by its name there; NAN when there is none. */
double count_of(const cJSON *meter, const char *name);

/* Whether a test has switched this protection off: "tokens", "objects", "machine", "bounds" or "macros"; or "scan", which is none. */
bool is_off(const char *protection);

/* ---- compare.c: two kernel files side by side, what ./run.sh try prints ---- */

struct compared {
    const char *label; /* in the table's head */
    const char *file;  /* in the folder where its own headers are */
};

/* Build both, run both with the meter on the problem of these options (options.h), print a table. Unless `alone`, what is called
 * right is right for other problems, too: with ragged sizes, and with all variants that your struct step takes. Returns 0 when
 * yours is right, 1 when it is wrong or does not compile, 2 when it refuses the problem, 3 when the device found a fault in it.
 * The data type is that of your struct step; so is the pass, unless the options name one. */
int compare(const struct compared *before, const struct compared *yours, const char *options, bool alone);
