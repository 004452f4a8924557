/* What a submission earns: results, faults and cost, each by a process that the submission's cannot reach. judge.c judges one
 * problem, advice.c says what the wrong ones have in common, grade.c gives the points, and scoresheet.c prints them. */
#pragma once

#include "submission.h"
#include "task.h"

#include <string.h>

enum report { PLAIN, GRADESCOPE, EXERCISM, REPORTS };

struct grade_options {
    const char *name;             /* of the file, for the report */
    uint64_t seed;                /* of the inputs */
    bool hidden;                  /* shapes drawn from the seed in place of the public ones */
    const char *reports[REPORTS]; /* files for JSON; "-": standard output, and then no text; NULL: none */
};

/* Grade the text of a file and report; returns the points. */
double grade(const struct task *task, const char *submission, const struct grade_options *options);

/* ---- a grading while it is made ---- */

enum { MAX_ITEMS = MAX_SHAPES + MAX_BUDGETS + 3, MAX_TEXT = 4000 };

/* A line of the rubric. */
struct item {
    enum part part;
    char name[160];
    double score, most;
    bool passed;
    char output[MAX_TEXT];
};

struct grading {
    const struct task *task;
    struct item items[MAX_ITEMS];
    int item_count;
    char build[MAX_TEXT], note[600], advice[600];
    bool all_right, any_fault; /* of the results of the shapes; a run that did not finish is one */
    struct shape broke_off;    /* the last problem whose run had no ending of its own; its `what` is NULL: there is none */
    double lost_barriers;      /* points for numbers of barriers, which a fault costs too */
    bool costs_as_recorded;    /* each count is what task.json says of a solution */
    bool adds_atomics;         /* to a kernel with a bug, which needs none */
};

/* Append to a text of MAX_TEXT. */
void say(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline bool is_warm_up(const struct task *task) { return strncmp(task->id, "00", 2) == 0; }

struct judged {
    bool right, faulted, finished;
    bool tensor_right[TENSOR_COUNT];
    double factor[TENSOR_COUNT]; /* when the tensor is this times what it should be; else NAN */
    char text[MAX_TEXT];
};

/* Append the first lines of what a kernel printed with printf(), for its author. */
void show_printed(char *text, const char *printed);
/* One problem's results beside the expected ones; `result` is filled in by run_submission(). */
struct judged judge(const struct task *task, const struct shape *shape, struct submission_run *result);

/* Everything but the reports. */
void grade_text(struct grading *grading, const char *submission, const struct grade_options *options);

/* What the pattern of wrong results says, to grading->advice. */
void advise(struct grading *grading, const struct shape *shapes, const struct judged *judged, int count);

double sum_of(const struct grading *grading, int part); /* points; PARTS: of all */
static inline double most_points(const struct task *task) {
    return task->points[CORRECT] + task->points[FAULTS] + task->points[COST];
}
double round_points(double points); /* to a tenth */
void print_report(FILE *to, const struct grading *grading, const char *file);
void write_json(const struct grading *grading, enum report kind, const char *path);
