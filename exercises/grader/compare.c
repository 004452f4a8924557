#include "process.h"
#include "../../common/simt/include/simulated.h"
#include "status.h"
#include "submission.h"
#include "text.h"
#include "variants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Round sizes hide what is wrong at a tail or in a row without keys. No size here is a multiple of a tile; in the first the first
 * rows have no key; d is one that the step takes. Behind a size stands what a step may take beside it, in the order of
 * enum variant, and last grouped heads: windows and sequences shorter and longer than a tile, and a window that holds a whole
 * one. */
enum { VARIANTS = 7, OTHERS = 5 /* the first, and the two others at two d each */ };
static const struct {
    const char *size, *variants[VARIANTS + 1];
} others[] = {{"--seq 113 --seq-kv 75", {[VARIANTS] = "--heads 4 --heads-kv 2"}},
              {"--seq 150 --seq-kv 170",
               {"--window 5,2", "--softcap 2", "--alibi --batch 2", "--dropout 0.3 --batch 2", "--rotary interleaved", NULL,
                "--page-size 16 --lengths 40,0,170 --causal", "--heads 6 --heads-kv 2"}},
              {"--seq 300 --heads 3",
               {"--window 130,0", "--softcap 0.7", "--alibi", "--dropout 0.1", "--rotary halved", "--lengths 40,0,37,200",
                "--page-size 64 --lengths 890,0", "--heads 3 --heads-kv 1"}}};

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
    char *program;           /* NULL: it does not compile */
    struct description step; /* of the program */
    bool right;
    bool elsewhere, faulted;      /* not at the problem that is shown, but at another one; there by a fault */
    char *message;                /* of the compiler, of the device, or which elements are wrong */
    struct submission_run result; /* of the problem that is shown */
};

static struct side build_side(const struct compared *compared) {
    struct side side = {0};
    char *text = read_text(compared->file);
    if (text == NULL) err(EXIT_USAGE, "%s", compared->file);
    side.program = build_submission(text, compared->file, compared->file, false, &side.message);
    free(text);
    side.step = side.program != NULL ? describe_submission(side.program) : (struct description){.passes = {true}};
    return side;
}

static void run_side(struct side *side, const struct problem *given, bool backward, unsigned how) {
    if (side->program == NULL) return;
    struct problem problem = *given;
    problem.hadamard = side->step.hadamard != 0; /* each step rounds Q and K in its own way */
    side->result = run_submission(side->program, &problem, INPUT_RANDOM, 1, backward, how);
    side->message = side->result.message;
    if (side->result.ending != FINISHED) return;
    struct verdict verdict = check_run(&side->result.run, backward, 2e9);
    side->right = verdict.ok;
    size_t length;
    FILE *to = verdict.ok ? NULL : open_memstream(&side->message, &length);
    if (to == NULL && !verdict.ok) abort();
    if (to != NULL) print_verdict(to, &side->result.run, backward, &verdict), fclose(to);
    free_verdict(&verdict);
}

static struct options parse(const char *text) {
    enum { MOST = 64 };
    static const struct step any = {.name = "run.sh", .dtypes = 1 << FP32 | 1 << BF16 | 1 << FP16 | 1 << FP8};
    char *words[MOST + 1] = {"run.sh"}, *rest = strdup(text), *word;
    int count = 1;
    while ((word = strsep(&rest, " ")) != NULL && count < MOST)
        if (*word != '\0') words[count++] = word;
    return parse_options(count, words, &any);
}

/* A step for few queries gets as many as it takes, on as many keys. A second --seq is the reader's own, after the default of try: a
 * number that is too large is then refused. */
static struct problem problem_for(const struct description *step, char **text) {
    struct problem problem = parse(*text).problem;
    if (strstr(*text, "--dtype ") == NULL) problem.dtype = (enum dtype)step->dtype;
    if (step->most_queries == 0 || problem.N_q <= step->most_queries) return problem;
    if (strstr(*text + 1, "--seq ") != NULL) return problem;
    if (asprintf(text, "%s --seq %d --seq-kv %d", *text, problem.N_q = step->most_queries, problem.N_kv) < 0) abort();
    return problem;
}

/* Another problem with all variants that the step takes. Where it takes none, only the first and the last, which has several tiles
 * and the kernel of large d; else NULL. The last is in the step's second 16-bit type. The caller's to free. */
static char *options_of(int number, const struct description *step) {
    int row = (number + 1) / 2;
    unsigned takes = step->variants | step->grouped_heads << VARIANTS;
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    if (step->most_queries > 0)
        fprintf(to, "--seq %d --seq-kv 897 ", step->most_queries / 2 + 1); /* 15 tiles, of the last one a key */
    else if (row < 2 || (takes & PACKED) == 0)                             /* whose lengths are the size */
        fprintf(to, "%s ", others[row].size);
    int d = row > 0 && number % 2 == 0 ? 120 : 56, multiple = step->d_multiple > 0 ? step->d_multiple : 1;
    fprintf(to, "--dim %d%s", multiple < d ? d - d % multiple : d, row == 0 ? " --causal" : "");
    if (number == OTHERS - 1 && step->dtype == BF16 && (step->dtypes >> FP16 & 1) != 0) fprintf(to, " --dtype fp16");
    bool any = row == 0 || number == OTHERS - 1;
    for (int v = 0; v <= VARIANTS; v++)
        if ((takes >> v & 1) != 0 && others[row].variants[v] != NULL) any = fprintf(to, " %s", others[row].variants[v]) > 0;
    fclose(to);
    return any ? text : NULL;
}

/* "right" holds only if the other problems are right, too, or the step refuses them; of the deterministic pass, the last one. That one
 * runs on one multiprocessor, where a persistent block takes one tile after the other; but not a step for few queries, which splits the
 * keys by multiprocessors. */
static void run_others(struct side *side, const struct description *step) {
    static const char *const names[] = {"fwd", "bwd", "bwd --deterministic"};
    for (int i = 0; i < 3 * OTHERS && side->right; i++) {
        int number = i / 3, pass = i % 3;
        bool runs = pass < 2 ? step->passes[pass] != 0 : side->step.passes[2] != 0 && number == OTHERS - 1;
        char *text = runs ? options_of(number, step) : NULL;
        if (text == NULL) continue;
        struct problem problem = problem_for(step, &text);
        struct side other = {.program = side->program, .step = side->step};
        bool few = number == OTHERS - 1 && step->most_queries == 0 && getenv("SIMT_MULTIPROCESSORS") == NULL;
        if (few) setenv("SIMT_MULTIPROCESSORS", "1", true);
        run_side(&other, &problem, pass > 0, pass == 2 ? DETERMINISTIC : 0);
        if (few) unsetenv("SIMT_MULTIPROCESSORS");
        if (other.right || other.result.ending == REFUSED) {
            free_submission_run(&other.result);
            continue;
        }
        side->right = false, side->elsewhere = true;
        side->faulted = other.result.ending != FINISHED;
        if (asprintf(&side->message, "With %s%s --pass %s %s:\n%s", few ? "SIMT_MULTIPROCESSORS=1 and " : "", text, names[pass],
                     side->faulted ? "it stops" : "the result is wrong", other.message) < 0)
            abort();
    }
}

static const char *state_of(const struct side *side) {
    if (side->program == NULL) return "no build";
    if (side->result.ending == REFUSED) return "refused";
    if (side->elsewhere) return side->faulted ? "FAULT elsewhere" : "WRONG elsewhere";
    if (side->result.ending != FINISHED) return "FAULT";
    return side->right ? "right" : "WRONG";
}

/* Of the table's columns. On a narrow terminal names are cut, a number never. */
static int named = 26, wide = 26;
static void fit_terminal(void) {
    struct winsize terminal = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &terminal) != 0 || terminal.ws_col == 0 || terminal.ws_col > 92) return;
    named = 19, wide = terminal.ws_col > 60 ? (terminal.ws_col - 36) / 2 : 12;
}

static void print_rows(const struct side *before, const struct side *yours) {
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        double a = row_of(before->result.meter, row), b = row_of(yours->result.meter, row);
        if (a == 0.0 && b == 0.0) continue;
        printf("  %-*s %*.0f %*.0f", named, rows[row].what, wide, a, wide, b);
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
        if (strcmp(a, "none") == 0 && strcmp(b, "none") == 0) continue;
        if ((int)strlen(worst[i][0]) <= named && (int)strlen(a) <= wide && (int)strlen(b) <= wide)
            printf("  %-*s %*s %*s\n", named, worst[i][0], wide, a, wide, b);
        else
            printf("  %s\n    %s -> %s\n", worst[i][0], a, b);
    }
}

int compare(const struct compared *before, const struct compared *yours, const char *text, bool alone) {
    char *options = strdup(text);
    struct options asked = parse(options); /* refuses what makes no sense before anything is built */
    struct problem problem = asked.problem;
    if (asked.passes.forward && asked.passes.backward) errx(EXIT_USAGE, "try compares one pass: --pass fwd or --pass bwd");
    if ((double)problem.batch * problem.heads * ((double)problem.N_q + problem.N_kv) * problem.d > 1 << 26)
        errx(EXIT_USAGE, "Q and K of \"%s\" are too large to try", options);
    bool same = strcmp(before->file, yours->file) == 0;
    pid_t other = same ? -1 : fork(); /* compiles what build_side() then finds made */
    if (other == 0) _exit(build_side(before).program == NULL);
    struct side b = build_side(yours), a = {0};
    if (other > 0) waitpid(other, NULL, 0);
    if (!same) a = build_side(before);
    struct description step = b.program != NULL || same ? b.step : a.step;
    bool backward = strstr(options, "--pass ") != NULL ? asked.passes.backward : !step.passes[0] || asked.passes.deterministic;
    if (asked.passes.deterministic && !(backward && step.passes[2]))
        errx(EXIT_USAGE, "%s has no deterministic pass", yours->label);
    unsigned how = METERED | (asked.passes.deterministic ? DETERMINISTIC : 0);
    problem = problem_for(&step, &options);
    run_side(&b, &problem, backward, how);
    run_side(&a, &problem, backward, a.step.passes[2] ? how : METERED);
    if (!alone) run_others(&b, &step), run_others(&a, &step);
    if (same) a = b;
    if (b.program != NULL && b.result.ending == REFUSED) {
        fprintf(stderr, "run.sh: %s", b.message);
        return EXIT_USAGE;
    }
    printf("%s, %s%s: ", yours->label, backward ? "backward" : "forward", asked.passes.deterministic ? ", deterministic" : "");
    if (problem.batch > 1) printf("batch %d, ", problem.batch);
    printf("%d heads", problem.heads);
    if (kv_heads(&problem) < problem.heads) printf(" on %d", kv_heads(&problem));
    printf(", %d x %d, d %d%s%s, on the simulated device\n", problem.N_q, problem.N_kv, problem.d,
           problem.causal ? ", causal" : "", variants_text(&problem));
    fit_terminal();
    printf("  %*s %*.*s %*s\n  %-*s %*s %*s\n", named, "", wide, wide, before->label, wide, "yours", named, "result", wide,
           state_of(&a), wide, state_of(&b));
    if (a.program != NULL && b.program != NULL && a.result.ending == FINISHED && b.result.ending == FINISHED)
        print_rows(&a, &b);
    if (a.program != NULL && a.result.ending == REFUSED)
        printf("\n  %s does not take this problem: nothing to compare.\n", before->label);
    if (b.message != NULL) putchar('\n'), simt_print(stdout, b.message);
    bool faulted = b.program != NULL && (b.result.ending != FINISHED || b.faulted);
    return faulted ? EXIT_FAILED : b.right ? 0 : EXIT_WRONG;
}
