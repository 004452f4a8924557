/* What a submission earns: results, faults and cost, each by a process that the submission's cannot reach. */
#ifndef GRADE_H
#define GRADE_H

#include "task.h"

enum report { PLAIN, GRADESCOPE, EXERCISM, REPORTS };

struct grade_options {
    const char *name;             /* of the file, for the report */
    uint64_t seed;                /* of the inputs */
    bool hidden;                  /* shapes drawn from the seed in place of the public ones */
    const char *reports[REPORTS]; /* files for JSON; "-": standard output, and then no text; NULL: none */
};

/* Grade the text of a file and report; returns the points. */
double grade(const struct task *task, const char *submission, const struct grade_options *options);

/* For the proof of a task (exercise prove): which parts a submission loses points for (bits 1 << part), may lose them for,
 * and a regular expression that its report matches, NULL: any. */
struct expectation {
    const char *name, *says;
    unsigned loses, may_lose;
    bool loses_some;  /* whichever */
    bool is_solution; /* its counts are the ones that task.json records */
};
bool grade_is(const struct task *task, const char *submission, const struct expectation *expected, char *why, size_t room);

#endif
