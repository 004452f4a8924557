/* What a submission earns, and why. */
#include "grading.h"

#include "process.h"
#include "status.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- all shapes ----------------------------------------------------------------------------------------------------- */

static struct item *add_item(struct grading *grading, enum part part, const char *name, double most) {
    struct item *item = &grading->items[grading->item_count++];
    item->part = part;
    item->most = most;
    snprintf(item->name, sizeof item->name, "%s", name);
    return item;
}

static void name_shape(char *text, size_t room, const struct task *task, const struct shape *shape) {
    const struct problem *p = &shape->problem;
    if (is_warm_up(task)) {
        snprintf(text, room, "%s (%d x %d)", shape->what, p->N_q, p->d);
        return;
    }
    char window[64] = "", groups[64] = "";
    if (p->windowed) snprintf(window, sizeof window, ", window %d and %d", p->left, p->right);
    if (p->heads_kv > 0) snprintf(groups, sizeof groups, ", heads %d on %d", p->heads, p->heads_kv);
    snprintf(text, room, "%s (%d x %d, d %d%s%s%s)", shape->what, p->N_q, p->N_kv, p->d, p->causal ? ", causal" : "", window,
             groups);
}

static uint64_t next_random(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Shapes that nobody could have written down before: one like each of the listed ones, so that each kind is there. */
static void draw_shapes(const struct task *task, uint64_t seed, struct shape *shapes) {
    uint64_t state = seed;
    for (int i = 0; i < task->shape_count; i++) {
        const struct problem *like = &task->shapes[i].problem;
        struct problem *p = &shapes[i].problem;
        int groups = task->d_most / task->d_multiple;
        int a = 1 + (int)(next_random(&state) % 130), b = 1 + (int)(next_random(&state) % 130);
        if (like->N_kv > (like->windowed ? 300 : 1000)) b += like->N_kv - 130; /* many keys stay many */
        shapes[i] = task->shapes[i];
        shapes[i].what = "drawn";
        int more = (int)(next_random(&state) % 2);
        p->heads = like->heads + more;
        if (like->heads_kv > 0) p->heads_kv = like->heads_kv + more, p->heads = like->heads / like->heads_kv * p->heads_kv;
        p->N_q = (like->N_q < like->N_kv) == (a < b) ? a : b; /* the same one of them is the larger */
        p->N_kv = a + b - p->N_q;
        p->left = like->left < a + b ? like->left : a + b, p->right = like->right < a + b ? like->right : a + b;
        p->d = task->d_multiple * (1 + (int)(next_random(&state) % (uint64_t)groups));
        p->scale = (float)((double)like->scale * sqrt((double)like->d / p->d));
    }
}

/* After a fault the kernel runs once more, past it and in step, and its result counts: the fault itself is paid for once.
 * Not where the task is to find a fault, nor without a program: where a run takes too long. */
static void judge_past_fault(const struct task *task, const struct shape *shape, const char *program, uint64_t seed,
                             struct judged *judged) {
    static const char below[] = "the device found a fault: see below";
    judged->text[0] = '\0';
    say(judged->text, "%s\n", below);
    if (program == NULL || *task->id == 'b') return;
    struct submission_run again = run_submission(program, &shape->problem, shape->input, seed, task->backward, IN_STEP);
    struct judged past = judge(task, shape, &again);
    free_submission_run(&again);
    if (!past.finished) return;
    *judged = past;
    judged->text[0] = '\0';
    say(judged->text, "%s; past the fault the result is %s\n%s", below, past.right ? "right" : "wrong:", past.text);
}

/* As long as a result is wrong, a submission earns half of the points at most. */
static void cap_points(struct grading *grading) {
    double half = most_points(grading->task) / 2, results = 0.0, rest = 0.0;
    for (int i = 0; i < grading->item_count; i++)
        *(grading->items[i].part == CORRECT ? &results : &rest) += grading->items[i].score;
    if (results + rest <= half) return;
    for (int i = 0; i < grading->item_count; i++)
        if (grading->items[i].part == CORRECT) grading->items[i].score *= fmax(0.0, half - rest) / results;
    size_t used = strlen(grading->note);
    snprintf(grading->note + used, sizeof grading->note - used,
             "%sa result is wrong: until all are right, half of the points is the most", used > 0 ? "; " : "");
}

static void grade_shapes(struct grading *grading, const char *program, uint64_t seed, bool hidden) {
    const struct task *task = grading->task;
    struct shape shapes[MAX_SHAPES];
    static struct judged judged[MAX_SHAPES];
    int count = task->shape_count, right = 0, slow = 0; /* slow: runs that did not end by themselves */
    memcpy(shapes, task->shapes, sizeof task->shapes);
    if (hidden) draw_shapes(task, seed, shapes);
    for (int i = 0; i < count && is_warm_up(task); i++) shapes[i].problem.N_kv = shapes[i].problem.N_q; /* for advise() */
    char fault[MAX_TEXT] = "";
    bool printed = false;
    for (int i = 0; i < count; i++) {
        struct item *item = add_item(grading, CORRECT, "", task->points[CORRECT] / count);
        name_shape(item->name, sizeof item->name, task, &shapes[i]);
        judged[i] = (struct judged){.text = "not run: two runs before did not end\n"};
        if (slow < 2) {
            time_t began = time(NULL);
            struct submission_run result = run_submission(program, &shapes[i].problem, shapes[i].input, seed + (uint64_t)i,
                                                          task->backward, grading->adds_atomics ? METERED : 0);
            if (result.ending == BROKE_OFF) grading->broke_off = shapes[i];
            judged[i] = judge(task, &shapes[i], &result);
            if (grading->adds_atomics && judged[i].finished &&
                count_of(result.meter, "flag_accesses") + !task->backward * count_of(result.meter, "global_atomic_requests") >
                    0)
                judged[i] = (struct judged){.text = "threads exchange values by atomic operations, which no barrier puts in "
                                                    "order: this kernel needs none\n"};
            if (result.printed != NULL && !printed) printed = true, show_printed(judged[i].text, result.printed);
            free_submission_run(&result);
            bool is_slow = !judged[i].finished && time(NULL) - began >= 4;
            slow += is_slow;
            if (!judged[i].finished) grading->any_fault = true;
            if (!judged[i].finished && *fault == '\0')
                say(fault, "in the problem \"%s\":\n%.3600s", item->name, judged[i].text);
            if (judged[i].faulted) judge_past_fault(task, &shapes[i], is_slow ? NULL : program, seed + (uint64_t)i, &judged[i]);
        }
        item->passed = judged[i].right;
        item->score = item->passed ? item->most : 0.0;
        memcpy(item->output, judged[i].text, sizeof item->output);
        right += item->passed;
    }
    grading->all_right = right == count;
    struct item *item = add_item(grading, FAULTS, "no race, bad access, unwritten value, or barrier that not all threads reach",
                                 task->points[FAULTS]);
    bool enough = right > 0 && 2 * right >= count; /* a kernel that does nothing has no faults */
    item->passed = enough && !grading->any_fault;
    item->score = item->passed ? item->most : 0.0;
    snprintf(item->output, sizeof item->output, "%s",
             grading->any_fault ? fault
             : enough           ? ""
                                : "not judged: fewer than half of the results are right\n");
    advise(grading, shapes, judged, count);
}

/* The kernels themselves must have read the inputs and written the outputs: NULL, or what they did not. */
static const char *not_done_by_kernels(const struct task *task, const cJSON *meter) {
    const struct problem *p = &task->metered.problem;
    double read = 0.0, written = 0.0;
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        double bytes = (double)tensor_elements(p, tensor) * (double)element_bytes(p, tensor);
        if (is_warm_up(task) && tensor != TENSOR_Q) continue;
        if (is_output(tensor) && is_backward(tensor) == task->backward) written += bytes;
        if (!is_output(tensor) && (!is_backward(tensor) || task->backward)) read += bytes;
    }
    if (!(count_of(meter, "different_bytes_read") >= read)) return "the kernels did not read all inputs\n";
    if (!(count_of(meter, "different_bytes_written") >= written)) return "the kernels did not write all outputs\n";
    return NULL;
}

/* A backward pass may have to add to global memory. */
static bool needs_atomics(const struct task *task) {
    bool needs = strstr(task->starter, "atomic") != NULL;
    for (int i = 0; i < task->budget_count; i++) needs = needs || strncmp(task->budgets[i].count, "global_atomic_", 14) == 0;
    return task->backward && needs;
}

/* What a budget limits, whichever instruction does it: a load may be an asynchronous copy, an ldmatrix or an atomic operation
 * that adds 0, a store an atomic exchange, a barrier one of another kind, or flags in memory. */
static double cost_of(const struct task *task, const cJSON *meter, const char *count) {
    static const char *const alike[][4] = {{"global_load_", "global_copy_", "global_atomic_"},
                                           {"global_store_", "global_atomic_", NULL},
                                           {"shared_load_", "shared_ldmatrix_", "shared_atomic_"},
                                           {"shared_store_", "shared_atomic_", "shared_copy_"},
                                           {"barriers", "barrier_phases", "flag_accesses", "global_atomic_requests"}};
    double sum = count_of(meter, count);
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++) {
        size_t length = strlen(alike[i][0]);
        for (int k = 1; k < 4 && strncmp(count, alike[i][0], length) == 0 && alike[i][k] != NULL; k++) {
            if (needs_atomics(task) && strncmp(alike[i][k], "global_atomic_", 14) == 0) continue;
            char name[64];
            snprintf(name, sizeof name, "%s%s", alike[i][k], count + length);
            double more = count_of(meter, name);
            if (!isnan(more)) sum += more;
        }
    }
    return sum;
}

/* Who loads from global memory, each time anew, loads nothing from shared memory: it takes as many requests at least. */
static double around_shared(const cJSON *meter, const char *count) {
    if (strcmp(count, "shared_load_requests") != 0 && strcmp(count, "shared_load_wavefronts") != 0) return 0.0;
    return count_of(meter, "global_load_requests") + count_of(meter, "global_copy_requests");
}

static void grade_cost(struct grading *grading, const char *program, uint64_t seed) {
    const struct task *task = grading->task;
    bool deserves = grading->all_right, any_fault = grading->any_fault;
    struct submission_run result = {0};
    const char *why = deserves ? NULL : "not judged: results first\n";
    bool spoiled = false; /* by the fault that it has run past */
    char wrong[600], name[120];
    if (deserves) {
        result = run_submission(program, &task->metered.problem, task->metered.input, seed, task->backward,
                                METERED | (any_fault ? IN_STEP : 0));
        if (result.ending == BROKE_OFF) grading->broke_off = task->metered;
        struct judged judged = judge(task, &task->metered, &result);
        spoiled = any_fault && !judged.right;
        name_shape(name, sizeof name, task, &task->metered);
        snprintf(wrong, sizeof wrong, "not judged: %s is wrong: %.400s\n", name, judged.text);
        why = !judged.right ? wrong : not_done_by_kernels(task, result.meter);
    }
    double most = task->points[COST] / (task->budget_count - task->guard_count);
    bool guarded = true;
    int first = grading->item_count;
    for (int i = 0; i < task->budget_count; i++) {
        const struct budget *budget = &task->budgets[i];
        struct item *item = add_item(grading, COST, budget->what, budget->guard ? 0.0 : most);
        double yours = why == NULL ? cost_of(task, result.meter, budget->count) : NAN;
        double around = why == NULL ? around_shared(result.meter, budget->count) : 0.0;
        bool goes_around = around > yours;
        if (goes_around) yours = around;
        bool lost_barrier = any_fault && strcmp(budget->count, "barriers") == 0;
        item->passed = yours <= budget->at_most && !lost_barrier;
        if (lost_barrier) grading->lost_barriers += item->most;
        if (budget->guard && why == NULL) guarded = guarded && item->passed;
        if (why == NULL)
            say(item->output, "yours: %.0f%s%s; ", yours, goes_around ? ", from global memory" : "",
                lost_barrier ? ", with a fault" : "");
        say(item->output, "limit: %.0f; a good solution: %.0f; %s: %.0f", budget->at_most, budget->solution, budget->naive_is,
            budget->naive);
        if (yours != budget->solution) grading->costs_as_recorded = false;
        say(item->output, "\n%s", why == NULL ? "" : why);
    }
    for (struct item *item = &grading->items[first]; item < &grading->items[grading->item_count]; item++) {
        if (!guarded && item->passed)
            item->passed = false,
            say(item->output, "not met: the cost was moved to where a limit without points is exceeded\n");
        item->score = item->passed ? item->most : 0.0;
    }
    if (deserves && why != NULL && !spoiled) { /* right elsewhere, but not by the kernels' own work in every run */
        for (struct item *item = grading->items; item < &grading->items[grading->item_count]; item++) {
            item->score = 0.0, item->passed = false;
            if (item->output[0] == '\0') say(item->output, "no points: see the note above\n");
        }
        snprintf(grading->note, sizeof grading->note, "%.*s", (int)strcspn(why, "\n"), why);
    }
    free_submission_run(&result);
}

/* A submission that was not built, or broke off in this problem, may not be the reason: where the starter is not built or breaks
 * off, too, the machine lacks something, and grades nobody. */
static void try_starter(const struct task *task, const struct shape *shape) {
    char why[600], note[600], *message = NULL, *text = merge(task, task->starter, why, note, sizeof note);
    char *program = build_submission(text, task->file, task->id, true, &message);
    if (program != NULL && shape->what != NULL) {
        struct submission_run run = run_submission(program, &shape->problem, shape->input, 1, task->backward, 0);
        if (run.ending == BROKE_OFF) message = strdup(run.message);
        free_submission_run(&run);
    }
    if (program != NULL) unlink(program);
    if (message != NULL)
        errx(EXIT_FAILED, "this machine lacks something, the starter of %s does not %s either: %.*s", task->id,
             program == NULL ? "build" : "run", (int)strcspn(clean(message), "\n"), message);
    free(text), free(program);
}

void grade_text(struct grading *grading, const char *submission, const struct grade_options *options) {
    const struct task *task = grading->task;
    char why[600], *message = NULL, *program = NULL;
    char *text = merge(task, submission, why, grading->note, sizeof grading->note);
    if (text == NULL) {
        say(grading->build, "%s\n", why);
    } else {
        grading->adds_atomics = *task->id == 'b' && strstr(task->starter, "atomic") == NULL && strstr(text, "atomic") != NULL;
        program = build_submission(text, task->file, options->name, true, &message);
        if (program == NULL) say(grading->build, "%s%s%.3000s\n", why, *why != '\0' ? "\n" : "", message);
    }
    if (program != NULL) {
        grade_shapes(grading, program, options->seed, options->hidden);
        grade_cost(grading, program, options->seed);
        if (!grading->all_right) cap_points(grading);
        unlink(program);
    }
    bool of_a_line = program == NULL && fnmatch("*[0-9]: error: *", grading->build, 0) == 0; /* the compiler has read it */
    if (text != NULL && !of_a_line && (program == NULL || grading->broke_off.what != NULL))
        try_starter(task, &grading->broke_off);
    free(text), free(program), free(message);
    clean(grading->build), clean(grading->note); /* they quote the submission, and may be cut in a character */
    for (int i = 0; i < grading->item_count; i++) clean(grading->items[i].output);
}

double grade(const struct task *task, const char *submission, const struct grade_options *options) {
    static struct grading grading;
    grading = (struct grading){.task = task};
    grade_text(&grading, submission, options);
    bool to_output = false;
    for (enum report kind = 0; kind < REPORTS; kind++)
        to_output = to_output || (options->reports[kind] != NULL && strcmp(options->reports[kind], "-") == 0);
    if (!to_output) print_report(stdout, &grading, options->name);
    for (enum report kind = 0; kind < REPORTS; kind++)
        if (options->reports[kind] != NULL) write_json(&grading, kind, options->reports[kind]);
    return sum_of(&grading, PARTS);
}
