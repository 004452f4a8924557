/* The program behind ./run.sh start, grade, try and handout. Run in the project's root.
 *     exercise start [ID [--variant N]]     grade ID [FILE] [options]
 *     exercise try LABEL FILE, the same two of the other, the options of a problem in one argument, and ALONE: 1 or 0
 *     exercise starter ID [VARIANT]
 * and for those who write tasks
 *     exercise solution ID [CHANGE]    counts ID     prove ID
 * Exit status 0: full points, or done; 1: fewer points; 2: bad usage; 3: something needed is not there. */
#include "grading.h"
#include "status.h"
#include "text.h"
#include "wall.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char *work_file(const struct task *task, int variant) {
    char name[32];
    snprintf(name, sizeof name, "work/%s", task->id);
    return variant_file(name, variant);
}

static int whole_number(const char *option, const char *text) {
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < 1 || value > 99)
        errx(EXIT_USAGE, "%s takes a whole number from 1 on, not \"%s\"", option, text);
    return (int)value;
}

/* Never over a file that somebody has edited. */
static int start(const char *id, int variant) {
    struct task task = read_task(id, variant, NULL);
    char *path = work_file(&task, variant), *there = read_text(path);
    if (there != NULL && strcmp(there, task.starter) != 0)
        errx(EXIT_USAGE, "%s is there and edited: it stays as it is. Move it away for a new start.", path);
    mkdir("work", 0777);
    FILE *file = there != NULL ? NULL : fopen(path, "wx");
    if (there == NULL && (file == NULL || fputs(task.starter, file) < 0 || fclose(file) != 0)) {
        int error = errno;
        if (file != NULL) unlink(path); /* not half of it */
        errx(EXIT_FAILED, "cannot write %s: %s", path, strerror(error));
    }
    printf("%s %s\n  What to do:  %s/README.md\n  Your file:   %s, between the lines // >>> and // <<<\n  Judge it:    "
           "./run.sh grade %s",
           task.id, task.title, task.folder, path, task.id);
    if (variant > 0) printf(" --variant %d", variant);
    putchar('\n');
    return 0;
}

static int print_hints(const struct task *task, const char *level) {
    int k = *level >= '1' && *level <= '0' + HINTS && level[1] == '\0' ? *level - '1' : -1;
    if (k < 0) errx(EXIT_USAGE, "--hint takes 1, 2 or 3, not \"%s\"", level);
    for (int hole = 0; hole < task->hole_count; hole++) {
        const char *hint = task->holes[hole].hints[k];
        printf("Hole %d, %s\n  %s\n", hole + 1, task->holes[hole].what, hint != NULL ? hint : "no further hint");
    }
    return 0;
}

static int grade_job(int argc, char **argv) {
    enum { HINT = REPORTS, NUMBER, HIDDEN, VALUED };
    static const char *const valued[VALUED] = {"--json", "--gradescope", "--exercism", "--hint", "--variant", "--hidden"};
    const char *id = NULL, *path = NULL, *values[VALUED] = {NULL};
    for (int i = 0; i < argc; i++) {
        const char *option = argv[i];
        int which = 0;
        while (which < VALUED && strcmp(option, valued[which]) != 0) which++;
        if (which < VALUED && ++i == argc) errx(EXIT_USAGE, "%s needs a value", option);
        if (which == VALUED && ((*option == '-' && option[1] != '\0') || (id != NULL && path != NULL)))
            errx(EXIT_USAGE, "grade does not take \"%s\": ./run.sh grade 05a [FILE] [--variant N] [--hidden SEED] [--hint 1]",
                 option);
        *(which < VALUED ? &values[which] : id == NULL ? &id : &path) = argv[i];
    }
    struct grade_options options = {.hidden = values[HIDDEN] != NULL};
    memcpy(options.reports, values, sizeof options.reports);
    if (getentropy(&options.seed, sizeof options.seed) != 0) return perror("getentropy"), EXIT_FAILED; /* nobody guesses it */
    if (options.hidden) {
        char *end;
        options.seed = strtoull(values[HIDDEN], &end, 10);
        if (end == values[HIDDEN] || *end != '\0' || *values[HIDDEN] == '-')
            errx(EXIT_USAGE, "--hidden takes a whole number, not \"%s\"", values[HIDDEN]);
    }
    int variant = values[NUMBER] != NULL ? whole_number("--variant", values[NUMBER]) : 0;
    if (id == NULL) errx(EXIT_USAGE, "grade needs a task, as in ./run.sh grade 05a; ./run.sh start lists them");
    struct task task = read_task(id, variant, NULL);
    if (values[HINT] != NULL) return print_hints(&task, values[HINT]);
    if (path == NULL) path = work_file(&task, variant);
    char *name = clean_name(strcmp(path, "-") == 0 ? "standard_input.cu" : path), *submission = read_submission(path);
    if (submission == NULL) errx(EXIT_USAGE, "%s: %s", name, why_unreadable(errno));
    const char *ci = getenv("CI");
    bool for_others =
        options.reports[GRADESCOPE] != NULL || options.reports[EXERCISM] != NULL || (ci != NULL && strcmp(ci, "true") == 0);
    if (!wall_is_enough(for_others)) return EXIT_FAILED;
    options.name = name;
    return grade(&task, submission, &options) >= most_points(&task) - 1e-9 ? 0 : EXIT_WRONG;
}

/* For budgets: what the book's own solution, and the starter where it is a whole kernel, cost in the metered run. */
static int print_counts(const char *id) {
    struct task task = read_task(id, 0, NULL);
    const char *const texts[] = {task.solution, task.starter};
    for (int i = 0; i < 2; i++) {
        char *message, *program = texts[i] == NULL ? NULL : build_submission(texts[i], task.file, id, false, &message);
        if (program == NULL) continue;
        struct submission_run result =
            run_submission(program, &task.metered.problem, task.metered.input, 1, task.backward, METERED);
        printf("%s of %s:", i == 0 ? "solution" : "starter", id);
        char counts[] =
            "global_load_requests global_load_sectors global_store_sectors global_copy_sectors global_atomic_requests "
            "global_atomic_sectors shared_load_requests shared_load_wavefronts shared_load_conflicts "
            "shared_store_wavefronts shared_store_conflicts shared_copy_conflicts shared_ldmatrix_conflicts "
            "local_load_requests busiest_warp_requests warp_collectives barriers workspace_bytes";
        for (char *rest = counts, *count; result.meter != NULL && (count = strsep(&rest, " ")) != NULL;)
            printf(" %s %.0f", count, count_of(result.meter, count));
        puts(result.meter == NULL ? " no results" : "");
    }
    return 0;
}

int main(int argc, char **argv) {
    program_invocation_short_name = "run.sh"; /* of errx() */
    const char *job = argc > 1 ? argv[1] : "";
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write that fails */
    if (strcmp(job, "start") == 0 && argc == 2) return list_tasks(), 0;
    bool varied = argc == 5 && strcmp(argv[3], "--variant") == 0;
    if (strcmp(job, "start") == 0 && (argc == 3 || varied)) return start(argv[2], varied ? whole_number(argv[3], argv[4]) : 0);
    if (strcmp(job, "start") == 0) errx(EXIT_USAGE, "start takes a task and --variant N, not \"%s\"", argv[argc - 1]);
    if (strcmp(job, "grade") == 0) return grade_job(argc - 2, argv + 2);
    if (strcmp(job, "solution") == 0 && (argc == 3 || argc == 4)) {
        struct task task = read_task(argv[2], 0, argc == 4 ? argv[3] : NULL);
        if (task.solution == NULL) errx(EXIT_USAGE, "%s has no solution here", task.id);
        return fputs(task.solution, stdout) < 0;
    }
    if (strcmp(job, "starter") == 0 && (argc == 3 || argc == 4))
        return fputs(read_task(argv[2], argc == 4 ? whole_number("starter", argv[3]) : 0, NULL).starter, stdout) < 0;
    if (strcmp(job, "prove") == 0 && argc == 3) {
        execl(BUILD "/tests/prove", "run.sh", argv[2], NULL); /* tests/exercises/prove.c */
        err(EXIT_FAILED, "%s/tests/prove", BUILD);
    }
    if (strcmp(job, "try") == 0 && argc == 8)
        return compare(&(struct compared){argv[4], argv[5]}, &(struct compared){argv[2], argv[3]}, argv[6], *argv[7] == '1');
    if (strcmp(job, "counts") == 0 && argc == 3) return print_counts(argv[2]);
    errx(EXIT_USAGE, "exercise: unknown job \"%s\"", job);
}
