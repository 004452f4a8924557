/* A task: a kernel file with holes, and what a solution must score. exercises/README.md describes the files. */
#pragma once

#include "inputs.h"

#include <cjson/cJSON.h>

enum { MAX_HOLES = 4, MAX_SHAPES = 16, MAX_BUDGETS = 4, HINTS = 3, MAX_WRONG = 8 };

struct hole {
    const char *what;         /* in a few words, for the marker */
    const char *hints[HINTS]; /* from a nudge to nearly all of it; NULL where there are fewer */
};

struct shape {
    const char *what;
    struct problem problem;
    enum input_kind input;
};

/* At most so many of what the meter counts, over all kernels of the run of `metered`. A guard earns no points: who exceeds it
 * has only moved there what another budget limits, and has met none. */
struct budget {
    const char *count, *what, *naive_is;
    double naive, solution, at_most;
    bool guard;
};

enum part { CORRECT, FAULTS, COST, PARTS };

struct task {
    const char *id, *folder, *title, *next;
    bool backward;
    double points[PARTS];
    char *starter;  /* the whole file, markers around each hole */
    char *solution; /* the same with the book's text in the holes; NULL in a copy for students */
    char *file;     /* the kernel file, or the starter: headers beside it are found */
    int hole_count, shape_count, budget_count, guard_count;
    struct hole holes[MAX_HOLES];
    struct shape shapes[MAX_SHAPES], metered;
    struct budget budgets[MAX_BUDGETS];
    int d_multiple, d_most; /* for shapes that are drawn */
    int variants;           /* how many there are */
    int wrong_count;
    struct wrong {
        const char *change, *says; /* of the kernel file; of the report, a regular expression */
        unsigned loses;            /* bits 1 << part */
    } wrong[MAX_WRONG];
};

/* Read exercises/ID_*, in one of its variants; 0: as it is. Ends the program with status 2 where there is none, with 3 where
 * its files do not fit together. With `wrong`, `solution` is the kernel file's text after this change: a wrong filling, for
 * the tests. */
struct task read_task(const char *id, int variant, const char *wrong);

/* NAME.cu, or NAME.N.cu for variant N: the caller's to free. */
char *variant_file(const char *name, int variant);

/* One line per task. */
void list_tasks(void);

/* The starter with the holes of `submission` in it. NULL, and the reason in `why`, where the markers are not there; else why
 * the text may fail to build, or "". `note`: what else the reader should know, or "". */
char *merge(const struct task *task, const char *submission, char *why, char *note, size_t room);

/* lexer.c: why the text of a hole, which begins in this line of the file, may fail to build: in `why`, the line and the reason.
 * False: it has no word for it. */
bool explain(const char *text, int line, char *why, size_t room);

/* schema.c: NULL, or the first member of task.json or shapes.json that is not as it must be and what is expected: the caller's
 * to free. */
enum object { TASK = 1, HOLE = 2, SHAPE = 4, BUDGET = 8, VARIANT = 16, SHAPES = 32 };
char *what_is_wrong(const cJSON *json, enum object object);
