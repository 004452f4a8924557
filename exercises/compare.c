#include "process.h"
#include "status.h"
#include "submission.h"
#include "text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Round sizes hide what is wrong at a tail or in a row without keys. No size here is a multiple of a tile, the first rows have
 * no key, and d is one that the steps in 16 bits take. */
static const struct problem ragged = {.batch = 1, .heads = 2, .N_q = 113, .N_kv = 75, .d = 56, .causal = true};

/* A row is the sum of these counts of the meter. Local memory has none: what the host's compiler keeps there, a card's may
 * keep in registers. */
static const struct {
    const char *what, *counts[4];
} rows[] = {
    {"global requests", {"global_load_requests", "global_store_requests", "global_atomic_requests", "global_copy_requests"}},
    {"global sectors", {"global_load_sectors", "global_store_sectors", "global_atomic_sectors", "global_copy_sectors"}},
    {"  of atomics", {"global_atomic_sectors"}},
    {"shared requests", {"shared_load_requests", "shared_store_requests", "shared_copy_requests", "shared_ldmatrix_requests"}},
    {"shared wavefronts",
     {"shared_load_wavefronts", "shared_store_wavefronts", "shared_copy_wavefronts", "shared_ldmatrix_wavefronts"}},
    {"  of bank conflicts",
     {"shared_load_conflicts", "shared_store_conflicts", "shared_copy_conflicts", "shared_ldmatrix_conflicts"}},
    {"shuffles and votes", {"warp_collectives"}},
    {"barriers", {"barriers"}},
    {"workspace bytes", {"workspace_bytes"}},
};

static double row_of(const cJSON *meter, size_t row) {
    double sum = 0.0;
    for (int i = 0; i < 4 && rows[row].counts[i] != NULL; i++) {
        double count = count_of(meter, rows[row].counts[i]);
        if (count > 0.0) sum += count;
    }
    return sum;
}

/* The line of source with the most of something, as "file:line (number)". */
static void worst_line(const cJSON *meter, const char *space, const char *count, char *text, size_t room) {
    const cJSON *kernel, *line;
    double most = 0.0;
    snprintf(text, room, "none");
    cJSON_ArrayForEach(kernel, cJSON_GetObjectItem(meter, "kernels")) {
        cJSON_ArrayForEach(line, cJSON_GetObjectItem(kernel, "lines")) {
            const char *in = cJSON_GetStringValue(cJSON_GetObjectItem(line, "space"));
            const char *file = cJSON_GetStringValue(cJSON_GetObjectItem(line, "file"));
            const cJSON *number = cJSON_GetObjectItem(line, count);
            if (in == NULL || file == NULL || strcmp(in, space) != 0 || !cJSON_IsNumber(number) || number->valuedouble <= most)
                continue;
            most = number->valuedouble;
            const char *name = strrchr(file, '/');
            snprintf(text, room, "%s:%d (%.0f)", name == NULL ? file : name + 1, cJSON_GetObjectItem(line, "line")->valueint,
                     most);
        }
    }
}

struct side {
    char *program; /* NULL: it does not compile */
    bool right;
    bool faulted; /* at the ragged problem, if not before */
    char *message;
    struct submission_run result; /* of the problem that is shown */
};

static struct side build_side(const struct compared *compared) {
    struct side side = {0};
    char *text = read_text(compared->file);
    if (text == NULL) die(EXIT_USAGE, "%s: %s", compared->file, strerror(errno));
    side.program = build_submission(text, compared->origin, compared->shown, false, &side.message);
    free(text);
    return side;
}

static void run_side(struct side *side, const struct problem *problem, bool backward, unsigned how) {
    if (side->program == NULL) return;
    side->result = run_submission(side->program, problem, INPUT_RANDOM, 1, backward, how);
    side->message = side->result.message;
    if (side->result.ending != FINISHED) return;
    struct verdict verdict = check_run(&side->result.run, backward, 2e9);
    side->right = verdict.ok;
    free_verdict(&verdict);
}

/* "right" holds only if the ragged problem is right, too, or the step refuses it. */
static void run_ragged(struct side *side, enum dtype dtype, bool backward) {
    struct side other = {.program = side->right ? side->program : NULL};
    struct problem problem = ragged;
    problem.dtype = dtype;
    problem.scale = (float)(1.0 / sqrt(problem.d));
    run_side(&other, &problem, backward, 0);
    if (other.program == NULL || other.right || other.result.ending == REFUSED) return;
    side->right = false;
    side->faulted = other.result.ending != FINISHED;
    if (asprintf(&side->message, "At another size, %d x %d, d %d, causal, %s\n%s", ragged.N_q, ragged.N_kv, ragged.d,
                 side->faulted ? "it stops:" : "the result is wrong.", side->faulted ? other.message : "") < 0)
        abort();
}

static const char *state_of(const struct side *side) {
    if (side->program == NULL) return "no build";
    if (side->result.ending == REFUSED) return "refused";
    if (side->result.ending != FINISHED || side->faulted) return "FAULT";
    return side->right ? "right" : "WRONG";
}

static void print_rows(const struct side *before, const struct side *yours) {
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        double a = row_of(before->result.meter, row), b = row_of(yours->result.meter, row);
        if (a == 0.0 && b == 0.0) continue;
        printf("  %-26s %26.0f %26.0f", rows[row].what, a, b);
        if (a == b)
            puts("        same");
        else if (a > 0.0)
            printf("  %+9.1f %%\n", 100.0 * (b - a) / a);
        else
            puts("         new");
    }
    static const char *const worst[][3] = {{"most sectors in line", "global", "sectors"},
                                           {"most wavefronts in line", "shared", "wavefronts"}};
    for (size_t i = 0; i < 2; i++) {
        char a[200], b[200];
        worst_line(before->result.meter, worst[i][1], worst[i][2], a, sizeof a);
        worst_line(yours->result.meter, worst[i][1], worst[i][2], b, sizeof b);
        if (strcmp(a, "none") != 0 || strcmp(b, "none") != 0) printf("  %-26s %26s %26s\n", worst[i][0], a, b);
    }
}

int compare(const struct compared *before, const struct compared *yours, struct problem problem, bool with_ragged) {
    pid_t other = fork(); /* compiles what build_side() then finds made */
    if (other == 0) _exit(build_side(before).program == NULL);
    struct side b = build_side(yours);
    if (other > 0) waitpid(other, NULL, 0);
    struct side a = build_side(before);
    bool backward = false;
    const char *described = b.program != NULL ? b.program : a.program;
    if (described != NULL) describe_submission(described, &backward, &problem.dtype);
    run_side(&b, &problem, backward, METERED);
    run_side(&a, &problem, backward, METERED);
    for (int i = 0; i < 2 && with_ragged; i++) run_ragged(i == 0 ? &b : &a, problem.dtype, backward);
    if (b.program != NULL && b.result.ending == REFUSED) {
        fprintf(stderr, "run.sh: %s", b.message);
        return EXIT_USAGE;
    }
    printf("%s, %s: %d heads, %d x %d, d %d%s, on the simulated device\n", yours->label, backward ? "backward" : "forward",
           problem.heads, problem.N_q, problem.N_kv, problem.d, problem.causal ? ", causal" : "");
    printf("  %-26s %26s %26s\n  %-26s %26s %26s\n", "", before->label, "yours", "result", state_of(&a), state_of(&b));
    if (a.program != NULL && b.program != NULL && a.result.ending == FINISHED && b.result.ending == FINISHED)
        print_rows(&a, &b);
    if (b.message != NULL) printf("\n%s", b.message);
    if (b.program != NULL && b.result.ending == FINISHED && !b.faulted && !b.right)
        printf("  For the elements that are wrong: ./run.sh --steps %s\n", yours->label);
    bool faulted = b.program != NULL && (b.result.ending != FINISHED || b.faulted);
    return faulted ? EXIT_FAILED : b.right ? 0 : EXIT_WRONG;
}
