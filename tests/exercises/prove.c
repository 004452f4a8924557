/* prove ID: a task's own test. Its solution scores full, its starter does not, each wrong filling loses what it should and is told
 * why. With TEST_FEWER, for ./run.sh test, of the wrong fillings the first, and no variant: CI takes all. Exit status: 0 when all is so, 1 when not, 2 for wrong use. */
#include "grading.h"
#include "status.h"

#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

/* Is it the solution, whose counts task.json records, or which parts does it lose points for (bits 1 << part; 0: any), and a
 * regular expression that its report matches, NULL: any. */
struct expectation {
    const char *name, *says;
    unsigned loses;
    bool is_solution;
};

/* A copy in which each gap between words is one space. */
static char *on_one_line(const char *text) {
    char *words = strdup(text), *to = words;
    for (const char *from = text; *from != '\0'; from++)
        if (!isspace((unsigned char)*from) || (to > words && to[-1] != ' '))
            *to++ = isspace((unsigned char)*from) ? ' ' : *from;
    *to = '\0';
    return words;
}

static bool grade_is(const struct task *task, const char *submission, const struct expectation *expected, char *why, size_t room) {
    static struct grading grading;
    grading = (struct grading){.task = task, .costs_as_recorded = true};
    grade_text(&grading, submission, &(struct grade_options){.name = expected->name, .seed = 1});
    *why = '\0';
    static const char *const names[PARTS] = {"results", "faults", "cost"};
    unsigned may_lose = expected->is_solution ? 0u : expected->loses == 0 ? ~0u : expected->loses;
    if ((may_lose & 1u << CORRECT) != 0) may_lose |= 1u << FAULTS; /* with fewer than half of the results they are not judged */
    for (unsigned part = 0; part < PARTS; part++) {
        bool lost = sum_of(&grading, (int)part) < task->points[part] - 1e-9;
        if (lost ? (may_lose >> part & 1) == 0 : (expected->loses >> part & 1) != 0)
            snprintf(why, room, "it lost %spoints for %s", lost ? "" : "no ", names[part]);
    }
    double score = sum_of(&grading, PARTS), most = most_points(task);
    bool all_right = sum_of(&grading, CORRECT) >= task->points[CORRECT] - 1e-9;
    if (!all_right && score > most / 2 + 1e-9)
        snprintf(why, room, "a result is wrong, and it has more than half of the points");
    if (all_right && sum_of(&grading, FAULTS) == 0.0 && score < most - task->points[FAULTS] - grading.lost_barriers - 1e-9)
        snprintf(why, room, "a fault alone cost it %.1f points", most - score);
    if (!expected->is_solution && score >= most - 1e-9) snprintf(why, room, "it scored full points");
    if (grading.build[0] != '\0') snprintf(why, room, "it does not compile");
    if (expected->is_solution && !grading.costs_as_recorded)
        snprintf(why, room, "a count is not the one that task.json records of the solution");
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    print_report(memory, &grading, expected->name);
    fclose(memory);
    char *words = on_one_line(text), *says = expected->says == NULL ? NULL : on_one_line(expected->says);
    regex_t pattern;
    if (*why == '\0' && says != NULL) {
        if (regcomp(&pattern, says, REG_EXTENDED | REG_NOSUB) != 0) abort();
        if (regexec(&pattern, words, 0, NULL, 0) != 0) snprintf(why, room, "the report does not say \"%s\"", expected->says);
        regfree(&pattern);
    }
    if (*why != '\0') fputs(text, stderr);
    free(text), free(words), free(says);
    return *why == '\0';
}

static bool prove_one(const struct task *task, const char *text, struct expectation expected) {
    char why[200];
    bool fine = grade_is(task, text, &expected, why, sizeof why);
    printf("%s %s %s: %s\n", fine ? "ok    " : "FAILED", task->id, expected.name, fine ? "as it must be" : why);
    return fine;
}

int main(int argc, char **argv) {
    if (argc != 2) return fputs("usage: prove ID\n", stderr), EXIT_USAGE;
    const char *id = argv[1];
    program_invocation_short_name = "run.sh"; /* of errx() */
    struct task task = read_task(id, 0, NULL);
    if (task.solution == NULL) errx(EXIT_USAGE, "%s has no solution here", id);
    bool fine = prove_one(&task, task.solution, (struct expectation){"solution", NULL, 0, true});
    fine &= prove_one(&task, task.starter, (struct expectation){.name = "starter"});
    if (task.wrong_count < 3) fine = false, printf("FAILED %s has %d wrong fillings, not 3\n", task.id, task.wrong_count);
    bool fewer = getenv("TEST_FEWER") != NULL;
    for (int i = 0; i < (fewer ? 1 : task.wrong_count); i++) {
        const struct wrong *of = &task.wrong[i];
        struct task wrong = read_task(id, 0, of->change);
        if (strcmp(wrong.solution, task.solution) == 0)
            fine = false, printf("FAILED %s: %s changes nothing in a hole\n", id, of->change);
        fine &= prove_one(&wrong, wrong.solution, (struct expectation){of->change, of->says, of->loses, false});
    }
    for (int variant = 1; variant <= task.variants && !fewer; variant++) {
        struct task other = read_task(id, variant, NULL);
        char name[32];
        snprintf(name, sizeof name, "solution, variant %d", variant);
        fine &= prove_one(&other, other.solution, (struct expectation){.name = name, .is_solution = true});
    }
    return fine ? 0 : EXIT_WRONG;
}
