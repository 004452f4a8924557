/* What a submission earns, and why. */
#include "grade.h"

#include "expected.h"
#include "output.h"
#include "process.h"
#include "reference.h"
#include "submission.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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
    bool costs_as_recorded; /* each count is what task.json says of a solution */
    bool adds_atomics;      /* to a kernel with a bug, which needs none */
};

static void say(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(char *text, const char *format, ...) {
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, MAX_TEXT - used, format, arguments);
    va_end(arguments);
}

/* ---- one shape ------------------------------------------------------------------------------------------------------ */

static bool is_warm_up(const struct task *task) { return strncmp(task->id, "00", 2) == 0; }

struct judged {
    bool right, faulted, finished;
    bool tensor_right[TENSOR_COUNT];
    double factor[TENSOR_COUNT]; /* when the tensor is this times what it should be; else NAN */
    char text[MAX_TEXT];
};

/* What a kernel printed with printf(): the first lines, for its author. */
static void show_printed(char *text, const char *printed) {
    enum { LINES = 8 };
    for (int i = 0; i < LINES && *printed != '\0'; i++) {
        size_t length = strcspn(printed, "\n");
        say(text, "%s%.*s\n", i == 0 ? "it printed: " : "            ", (int)(length < 200 ? length : 200), printed);
        printed += length + (printed[length] == '\n');
    }
    if (*printed != '\0') say(text, "            ...\n");
}

static void describe_element(char *text, const struct run *run, enum tensor tensor, size_t index, double expected) {
    const struct problem *p = &run->problem;
    size_t columns = tensor_columns(p, tensor), row = index / columns,
           N = (size_t)(tensor_table[tensor].per_key ? p->N_kv : p->N_q);
    say(text, "%s (head %zu, row %zu", tensor_table[tensor].name, row / N, row % N);
    if (!tensor_table[tensor].is_vector) say(text, ", column %zu", index % columns);
    if (isnan(run->host[tensor][index]))
        say(text, ") is NaN, expected %g", expected);
    else
        say(text, ") is %g, expected %g", (double)run->host[tensor][index], expected);
}

/* c where out is c times expected as far as the type's digits go, c not 1; else NAN. */
static double factor_of(const float *out, const double *expected, size_t count, enum dtype dtype) {
    double along = 0.0, squares = 0.0, rest = 0.0;
    for (size_t i = 0; i < count; i++) along += (double)out[i] * expected[i], squares += expected[i] * expected[i];
    double c = along / squares;
    for (size_t i = 0; i < count; i++) rest += pow((double)out[i] - c * expected[i], 2);
    return count > 4 && sqrt(rest) <= (dtype == FP32 ? 1e-4 : 1e-2) * fabs(c) * sqrt(squares) && fabs(c - 1.0) > 0.03
               ? c
               : NAN;
}

static bool all_equal(const float *values, float value, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (values[i] != value) return false;
    return true;
}

static void judge_tensor(struct judged *judged, const struct run *run, enum tensor tensor, const struct check *check,
                         const size_t *rows) {
    size_t columns = tensor_columns(&run->problem, tensor), count = tensor_elements(&run->problem, tensor);
    judged->tensor_right[tensor] = check->ok;
    size_t nan = 0;
    for (size_t i = 0; i < count; i++) nan += isnan(run->host[tensor][i]) != 0;
    if (check->ok) return;
    judged->right = false;
    if (nan == count) {
        say(judged->text, "%s is NaN everywhere: nothing was written there, or a NaN has spread\n",
            tensor_table[tensor].name);
    } else if (all_equal(run->host[tensor], -INFINITY, count)) {
        say(judged->text, "%s is -inf everywhere: is m never set?\n", tensor_table[tensor].name);
    } else if (all_equal(run->host[tensor], 0.0f, count)) {
        say(judged->text, "%s is 0 everywhere: is anything added to it?\n", tensor_table[tensor].name);
    } else if (check->wrong > 0) {
        size_t at = check->first_wrong[0];
        if (rows != NULL) at = rows[at / columns] * columns + at % columns;
        describe_element(judged->text, run, tensor, at, check->expected[0]);
        say(judged->text, "; %zu of %zu are wrong\n", check->wrong, count);
    } else {
        say(judged->text, "%s is off by %.1e of its norm; rounding explains %.1e\n", tensor_table[tensor].name,
            check->err_rel, check->bound_rel);
    }
}

static void judge_warm_up(struct judged *judged, const struct run *run, enum tensor tensor, const double *expected,
                          const double *size) {
    size_t count = tensor_elements(&run->problem, tensor);
    struct check check = check_gradient(run->host[tensor], expected, size, count, 1e-6);
    judge_tensor(judged, run, tensor, &check, NULL);
    if (!judged->right) judged->factor[tensor] = factor_of(run->host[tensor], expected, count, FP32);
}

static void judge_attention(struct judged *judged, const struct run *run, bool backward) {
    struct verdict verdict = check_run(run, backward, 2e9);
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        if (!is_output(tensor) || is_backward(tensor) != backward) continue;
        const size_t *rows = tensor_table[tensor].per_key ? verdict.keys : verdict.queries;
        judge_tensor(judged, run, tensor, &verdict.checks[tensor], rows);
    }
    judged->right = judged->right && verdict.ok;
    free_verdict(&verdict);
}

/* Which outputs are a constant times what they should be: a second look at a result that is wrong. */
static void look_for_factors(struct judged *judged, const struct run *run, bool backward) {
    const struct problem *p = &run->problem;
    double *expected[TENSOR_COUNT] = {0};
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++)
        if (is_output(tensor)) expected[tensor] = calloc(tensor_elements(p, tensor), sizeof(double));
    const float *Q = run->host[TENSOR_Q], *K = run->host[TENSOR_K], *V = run->host[TENSOR_V];
    if (backward)
        reference_backward(p, Q, K, V, run->host[TENSOR_dO], expected[TENSOR_dQ], expected[TENSOR_dK],
                           expected[TENSOR_dV]);
    else
        reference_forward(p, Q, K, V, expected[TENSOR_O], expected[TENSOR_L]);
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        if (is_output(tensor) && is_backward(tensor) == backward && tensor != TENSOR_L && !judged->tensor_right[tensor])
            judged->factor[tensor] =
                factor_of(run->host[tensor], expected[tensor], tensor_elements(p, tensor), p->dtype);
        free(expected[tensor]);
    }
}

static struct judged judge(const struct task *task, const struct shape *shape, struct submission_run *result) {
    struct judged judged = {
        .right = true, .faulted = result->ending == FAULTED, .finished = result->ending == FINISHED};
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++)
        judged.factor[tensor] = NAN, judged.tensor_right[tensor] = true;
    if (!judged.finished) {
        judged.right = false;
        char *rest = result->message, *line;
        for (int lines = 0; lines < 12 && (line = strsep(&rest, "\n")) != NULL; lines++)
            say(judged.text, "%.900s\n", line);
        return judged;
    }
    size_t room = tensor_elements(&shape->problem, TENSOR_O) + tensor_elements(&shape->problem, TENSOR_L);
    double *expected = calloc(room, sizeof *expected), *size = calloc(room, sizeof *size);
    enum tensor warm_up = expected_of_warm_up(task->id, &shape->problem, result->run.host[TENSOR_Q], expected, size);
    if (warm_up != TENSOR_COUNT) {
        judge_warm_up(&judged, &result->run, warm_up, expected, size);
    } else {
        judge_attention(&judged, &result->run, task->backward);
        if (!judged.right) look_for_factors(&judged, &result->run, task->backward);
    }
    free(expected), free(size);
    return judged;
}

/* ---- all shapes ----------------------------------------------------------------------------------------------------- */

static bool is_causal(const struct shape *s) { return s->problem.causal; }
static bool has_empty_rows(const struct shape *s) { return s->problem.causal && s->problem.N_q > s->problem.N_kv; }
static bool has_tails(const struct shape *s) { return s->problem.N_q % 32 != 0 || s->problem.N_kv % 32 != 0; }
static bool has_odd_d(const struct shape *s) { return s->problem.d % 4 != 0; }
static bool has_part_of_32(const struct shape *s) { return s->problem.d % 32 != 0; }
static bool has_over_32_columns(const struct shape *s) { return s->problem.d > 32; }
static bool is_wide(const struct shape *s) { return s->problem.d > 64; }
static bool is_large(const struct shape *s) { return s->input == INPUT_LARGE; }
static bool is_negative(const struct shape *s) { return s->problem.scale < 0.0f; }
static bool has_many_keys(const struct shape *s) { return s->problem.N_kv > 32; }
static bool is_rectangular(const struct shape *s) { return s->problem.N_q != s->problem.N_kv; }
static bool has_many_rows(const struct shape *s) { return s->problem.N_q > 32; }
static bool has_other_d(const struct shape *s) { return s->problem.d != 32; }
static bool has_heads(const struct shape *s) { return s->problem.heads > 1; }
static bool has_heads_and_other_keys(const struct shape *s) { return has_heads(s) && is_rectangular(s); }

static const struct {
    bool (*has)(const struct shape *);
    const char *which, *look, *look_backward; /* look_backward: NULL where it is the same */
    bool of_keys;                             /* a warm-up has none */
} suspects[] = {
    {is_large, "with large scores", "Is the maximum of the row subtracted before exp()?", NULL, false},
    {is_negative, "with a negative scale", "Is the maximum taken before the scale is applied, or p.scale not used?",
     "Is p.scale used, with its sign?", false},
    {has_empty_rows, "where some row attends to no key", "There m is -inf, and exp(-inf - -inf) is NaN.",
     "There L is -inf, and exp(S - L) is infinite.", false},
    {is_causal, "with a causal mask", "Key number attended_keys(p, row) is the first that is masked. Where there are tiles: are those on the diagonal masked?",
     NULL, false},
    {is_wide, "with d above 64", "Does a loop over columns end too early?", NULL, false},
    {has_odd_d, "where d is no multiple of 4", "Look at the last, partial group of columns.", NULL, false},
    {has_part_of_32, "where d is no multiple of 32", "Is a stride d where the tile has more columns, or the reverse?",
     NULL, false},
    {has_heads_and_other_keys, "with several heads, N_q not N_kv",
     "Is a head's offset made of N_q where it is made of N_kv, or the reverse?", NULL, true},
    {has_heads, "with several heads", "Does each head find its own rows?", NULL, false},
    {is_rectangular, "with different numbers of queries and keys", "Is N_q used where N_kv is meant, or the reverse?",
     NULL, true},
    {has_tails, "that no tile divides", "The last tile is partial: which of its rows and keys exist?", NULL, false},
    {has_many_keys, "with more than one tile of keys", "What is carried from one tile of keys to the next: m, l and O?",
     "What is carried from one tile of keys to the next: the sums of dQ, dK and dV?", true},
    {has_over_32_columns, "with d above 32", "Does a loop over d end after 32 columns?", NULL, false},
    {has_many_rows, "with more than one tile of rows", "Does each block find its own rows?", NULL, false},
    {has_other_d, "where d is not 32", "Does a loop over d, or a stride, assume a value?", NULL, false},
};

static const char *look_of(size_t s, const struct task *task) {
    return task->backward && suspects[s].look_backward != NULL ? suspects[s].look_backward : suspects[s].look;
}

/* What the tensors that are wrong say. */
static const char *advice_by_tensor(const struct judged *j, bool backward) {
    const bool *right = j->tensor_right;
    if (!backward && right[TENSOR_L])
        return "L is right, so S, m and l are right: look at P, the product with V, or the division by l.";
    if (!backward && right[TENSOR_O]) return "O is right and L is not: L = m + log(l).";
    if (!backward)
        return "O and L are wrong, so S, m or l is wrong first: look at the product Q K^T, the scale and the maximum.";
    bool dQ = right[TENSOR_dQ], dK = right[TENSOR_dK], dV = right[TENSOR_dV];
    if (!dV && dQ && dK) return "dQ and dK are right, so P is right: look at the product P^T dO.";
    if (dV && !dQ && dK) return "dV and dK are right, so P and dS are right: look at the product dS K.";
    if (dV && dQ && !dK) return "dV and dQ are right, so P and dS are right: look at the product dS^T Q.";
    if (dV) return "dV is right, so P is right: look at dP, D and dS.";
    return "dV is wrong with the others, so P is wrong first: look at S, L and the mask.";
}

/* What the pattern of wrong results says. */
static void advise(struct grading *grading, const struct shape *shapes, const struct judged *judged, int count) {
    char *text = grading->advice;
    size_t room = sizeof grading->advice;
    int wrong = 0, wrong_causal = 0, finished = 0, first = -1;
    for (int i = 0; i < count; i++)
        if (finished += judged[i].finished, judged[i].finished && !judged[i].right)
            first = first < 0 ? i : first, wrong++, wrong_causal += is_causal(&shapes[i]);
    if (wrong == 0) return;
    for (int i = 0; i < count; i++) {
        for (enum tensor tensor = 0; tensor < TENSOR_COUNT && judged[i].finished; tensor++) {
            if (judged[i].tensor_right[tensor] || !(fabs(judged[i].factor[tensor]) > 0)) continue;
            snprintf(text, room,
                     "%s is %.4g times what it should be, every element of it: look for a factor (scale, l) that is "
                     "left out or applied twice.",
                     tensor_table[tensor].name, judged[i].factor[tensor]);
            return;
        }
    }
    /* The narrowest property that all wrong problems have, and of which they are most. */
    size_t best = 0;
    int best_with = 0;
    for (size_t s = 0; s < sizeof suspects / sizeof *suspects; s++) {
        int with = 0, wrong_with = 0;
        if (suspects[s].of_keys && is_warm_up(grading->task)) continue;
        for (int i = 0; i < count; i++)
            if (judged[i].finished && suspects[s].has(&shapes[i])) with++, wrong_with += !judged[i].right;
        /* Two problems without the property must be right, and half of those with it wrong. */
        if (finished - with < 2 || wrong_with < wrong || 2 * wrong_with < with) continue;
        if (best_with == 0 || (with == wrong && best_with > wrong) || with < best_with - 1) best = s, best_with = with;
    }
    if (best_with == wrong)
        snprintf(text, room, "The problems %s are wrong, and no others. %s ", suspects[best].which,
                 look_of(best, grading->task));
    else if (best_with > 0)
        snprintf(text, room, "All wrong problems are among the %d %s. %s ", best_with, suspects[best].which,
                 look_of(best, grading->task));
    if (is_warm_up(grading->task)) return;
    if (best_with == 0 && wrong_causal == wrong && finished < count) { /* too few results to tell the mask from the rest */
        snprintf(text, room, "All wrong results are of problems with a causal mask; %d of %d problems gave no result. Repair what stopped "
                 "them first. Then look at the mask: key number attended_keys(p, row) is the first that is masked.", count - finished, count);
        return;
    }
    const bool *right = judged[first].tensor_right;
    bool none_right = !right[TENSOR_O] && !right[TENSOR_L], dV_wrong = !right[TENSOR_dV] && !right[TENSOR_dQ];
    if (best_with > 0 && (grading->task->backward ? dV_wrong : none_right)) return; /* it would add nothing */
    size_t used = strlen(text);
    snprintf(text + used, room - used, "%s", advice_by_tensor(&judged[first], grading->task->backward));
}

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
    snprintf(text, room, "%s (%d x %d, d %d%s)", shape->what, p->N_q, p->N_kv, p->d, p->causal ? ", causal" : "");
}

static uint64_t next_random(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Shapes that nobody could have written down before: one like each of the listed ones, so that each kind is there. */
static int draw_shapes(const struct task *task, uint64_t seed, struct shape *shapes) {
    uint64_t state = seed;
    for (int i = 0; i < task->shape_count; i++) {
        const struct problem *like = &task->shapes[i].problem;
        struct problem *p = &shapes[i].problem;
        int groups = task->d_most / task->d_multiple;
        int a = 1 + (int)(next_random(&state) % 130), b = 1 + (int)(next_random(&state) % 130);
        if (like->N_kv > 1000) b += like->N_kv - 130; /* many keys stay many */
        shapes[i] = task->shapes[i];
        shapes[i].what = "drawn";
        p->heads = like->heads + (int)(next_random(&state) % 2);
        p->N_q = (like->N_q < like->N_kv) == (a < b) ? a : b; /* the same one of them is the larger */
        p->N_kv = a + b - p->N_q;
        p->d = task->d_multiple * (1 + (int)(next_random(&state) % (uint64_t)groups));
        p->scale = (float)((double)like->scale * sqrt((double)like->d / p->d));
    }
    return task->shape_count;
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
    const double *points = grading->task->points;
    double half = (points[CORRECT] + points[FAULTS] + points[COST]) / 2, results = 0.0, rest = 0.0;
    for (int i = 0; i < grading->item_count; i++)
        *(grading->items[i].part == CORRECT ? &results : &rest) += grading->items[i].score;
    if (results + rest <= half) return;
    for (int i = 0; i < grading->item_count; i++)
        if (grading->items[i].part == CORRECT) grading->items[i].score *= fmax(0.0, half - rest) / results;
    size_t used = strlen(grading->note);
    snprintf(grading->note + used, sizeof grading->note - used,
             "%sa result is wrong: until all are right, half of the points is the most", used > 0 ? "; " : "");
}

static void grade_shapes(struct grading *grading, const char *program, uint64_t seed, bool hidden, bool *all_right,
                         bool *any_fault) {
    const struct task *task = grading->task;
    struct shape shapes[MAX_SHAPES];
    static struct judged judged[MAX_SHAPES];
    int count = task->shape_count;
    memcpy(shapes, task->shapes, sizeof task->shapes);
    if (hidden) count = draw_shapes(task, seed, shapes);
    for (int i = 0; i < count && is_warm_up(task); i++)
        shapes[i].problem.N_kv = shapes[i].problem.N_q; /* for advise() */
    int right = 0;
    char fault[MAX_TEXT] = "";
    *all_right = true, *any_fault = false;
    bool printed = false;
    int slow = 0; /* runs that did not end by themselves */
    for (int i = 0; i < count; i++) {
        char name[160];
        name_shape(name, sizeof name, task, &shapes[i]);
        if (slow == 2) {
            judged[i] = (struct judged){0};
            struct item *item = add_item(grading, CORRECT, name, task->points[CORRECT] / count);
            snprintf(item->output, sizeof item->output, "not run: two runs before did not end\n");
            *all_right = false;
            continue;
        }
        time_t began = time(NULL);
        struct submission_run result = run_submission(program, &shapes[i].problem, shapes[i].input, seed + (uint64_t)i,
                                                      task->backward, grading->adds_atomics ? METERED : 0);
        judged[i] = judge(task, &shapes[i], &result);
        if (grading->adds_atomics && judged[i].finished &&
            count_of(result.meter, "flag_accesses") + !task->backward * count_of(result.meter, "global_atomic_requests") > 0)
            judged[i] = (struct judged){.text = "threads exchange values by atomic operations, which no barrier puts in order: "
                                                "this kernel needs none\n"};
        if (result.printed != NULL && !printed) printed = true, show_printed(judged[i].text, result.printed);
        free_submission_run(&result);
        bool is_slow = !judged[i].finished && time(NULL) - began >= 4;
        slow += is_slow;
        struct item *item = add_item(grading, CORRECT, name, task->points[CORRECT] / count);
        if (!judged[i].finished) *any_fault = true;
        if (!judged[i].finished && *fault == '\0') say(fault, "in the problem \"%s\":\n%.3600s", name, judged[i].text);
        if (judged[i].faulted)
            judge_past_fault(task, &shapes[i], is_slow ? NULL : program, seed + (uint64_t)i, &judged[i]);
        item->score = judged[i].right ? item->most : 0.0;
        item->passed = judged[i].right;
        memcpy(item->output, judged[i].text, sizeof item->output);
        right += judged[i].right;
        *all_right = *all_right && judged[i].right;
    }
    struct item *item =
        add_item(grading, FAULTS, "no race, bad access, unwritten value, or barrier that not all threads reach", task->points[FAULTS]);
    bool enough = right > 0 && 2 * right >= count; /* a kernel that does nothing has no faults */
    item->passed = enough && !*any_fault;
    item->score = item->passed ? item->most : 0.0;
    snprintf(item->output, sizeof item->output, "%s",
             *any_fault  ? fault
             : enough ? ""
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
 * that adds 0, a store an atomic exchange, a barrier flags in memory. */
static double cost_of(const struct task *task, const cJSON *meter, const char *count) {
    static const char *const alike[][3] = {{"global_load_", "global_copy_", "global_atomic_"},
                                           {"global_store_", "global_atomic_", NULL},
                                           {"shared_load_", "shared_ldmatrix_", "shared_atomic_"},
                                           {"shared_store_", "shared_atomic_", "shared_copy_"},
                                           {"barriers", "flag_accesses", "global_atomic_requests"}};
    double sum = count_of(meter, count);
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++) {
        size_t length = strlen(alike[i][0]);
        for (int k = 1; k < 3 && strncmp(count, alike[i][0], length) == 0 && alike[i][k] != NULL; k++) {
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

static void grade_cost(struct grading *grading, const char *program, uint64_t seed, bool deserves, bool any_fault) {
    const struct task *task = grading->task;
    struct submission_run result = {0};
    const char *why = deserves ? NULL : "not judged: results first\n";
    bool spoiled = false; /* by the fault that it has run past */
    if (deserves) {
        result = run_submission(program, &task->metered.problem, task->metered.input, seed, task->backward,
                                METERED | (any_fault ? IN_STEP : 0));
        struct judged judged = judge(task, &task->metered, &result);
        spoiled = any_fault && !judged.right;
        why = !judged.right ? "not judged: the metered run is wrong\n" : not_done_by_kernels(task, result.meter);
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
            item->passed = false, say(item->output, "not met: the cost was moved to where a limit without points is exceeded\n");
        item->score = item->passed ? item->most : 0.0;
    }
    if (deserves && why != NULL && !spoiled) { /* right results elsewhere, but not by the kernels' own work in every run */
        for (int i = 0; i < grading->item_count; i++) grading->items[i].score = 0.0, grading->items[i].passed = false;
        snprintf(grading->note, sizeof grading->note, "%.*s", (int)strcspn(why, "\n"), why);
    }
    if (result.run.problem.d > 0) free_submission_run(&result);
}

/* ---- reports -------------------------------------------------------------------------------------------------------- */

static double sum_of(const struct grading *grading, int part, bool most) {
    double sum = 0.0;
    for (int i = 0; i < grading->item_count; i++)
        if (part == PARTS || (int)grading->items[i].part == part)
            sum += most ? grading->items[i].most : grading->items[i].score;
    return sum;
}
static double round_points(double points) { return floor(points * 10.0 + 0.5) / 10.0; }

/* A line after `indent` spaces, broken between words; what follows keeps the line's own indentation. */
static void print_wrapped(FILE *to, size_t indent, const char *line) {
    size_t own = strspn(line, " "), room = 118 - indent - own;
    for (line += own; *line != '\0'; line += strspn(line, " ")) {
        size_t length = strlen(line), cut = length;
        if (length > room)
            for (cut = room; cut > 0 && line[cut] != ' ';) cut--;
        if (cut == 0) cut = strcspn(line, " ");
        fprintf(to, "%*s%.*s\n", (int)(indent + own), "", (int)cut, line);
        line += cut;
    }
}

static void print_report(FILE *to, const struct grading *grading, const char *file) {
    static const char *const headings[PARTS] = {"Right results", "No faults", "Cost"};
    const struct task *task = grading->task;
    fprintf(to, "%s %s: %s\n", task->id, task->title, file);
    if (grading->note[0] != '\0') fprintf(to, "  note: %s\n", grading->note);
    if (grading->build[0] != '\0') fputs("\nNot accepted:\n", to);
    char text[MAX_TEXT];
    memcpy(text, grading->build, sizeof text);
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;) /* indented: none can look like a line of points */
        if (*line != '\0') print_wrapped(to, 2, line);
    for (int part = 0; part < PARTS; part++) {
        if (task->points[part] <= 0.0 || grading->item_count == 0) continue;
        fprintf(to, "\n%-60s %5.1f of %5.1f\n", headings[part], round_points(sum_of(grading, part, false)),
                task->points[part]);
        for (int i = 0; i < grading->item_count; i++) {
            const struct item *item = &grading->items[i];
            if ((int)item->part != part) continue;
            fprintf(to, "  %-7s %s\n", item->passed ? "ok" : "MISSED", item->name);
            memcpy(text, item->output, sizeof text);
            for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;)
                if (*line != '\0') print_wrapped(to, 12, line);
        }
        if (part == CORRECT && grading->advice[0] != '\0') print_wrapped(to, 2, grading->advice);
    }
    double score = sum_of(grading, PARTS, false),
           most = task->points[CORRECT] + task->points[FAULTS] + task->points[COST];
    fprintf(to, "\nScore: %.1f of %.0f\n", round_points(score), most);
    if (score < most - 1e-9)
        fprintf(to, "A hint: ./run.sh grade %s --hint 1 (then 2, 3)\n", task->id);
    else if (task->next != NULL)
        fprintf(to, "Next: ./run.sh start %s\n", task->next);
}

static cJSON *to_json(const struct grading *grading, enum report kind) {
    const struct task *task = grading->task;
    cJSON *json = cJSON_CreateObject(), *tests = cJSON_CreateArray();
    double score = round_points(sum_of(grading, PARTS, false)),
           most = task->points[CORRECT] + task->points[FAULTS] + task->points[COST];
    char summary[sizeof grading->build + sizeof grading->advice + sizeof grading->note + 8];
    snprintf(summary, sizeof summary, "%s%s%s%s", grading->build, grading->note, *grading->note ? "\n" : "",
             grading->advice);
    if (kind == EXERCISM) {
        cJSON_AddNumberToObject(json, "version", 2);
        cJSON_AddStringToObject(json, "status",
                                grading->build[0] != '\0' ? "error"
                                : score >= most - 1e-9    ? "pass"
                                                          : "fail");
        if (grading->build[0] != '\0') cJSON_AddStringToObject(json, "message", summary);
    } else {
        if (kind == PLAIN) cJSON_AddStringToObject(json, "task", task->id);
        cJSON_AddNumberToObject(json, "score", score);
        if (kind == PLAIN) cJSON_AddNumberToObject(json, "max_score", most);
        cJSON_AddStringToObject(json, "output", *summary != '\0' ? summary : "all points earned");
        if (kind == GRADESCOPE) cJSON_AddStringToObject(json, "visibility", "visible");
    }
    for (int i = 0; i < grading->item_count; i++) {
        const struct item *item = &grading->items[i];
        cJSON *test = cJSON_CreateObject();
        bool full = item->passed;
        cJSON_AddStringToObject(test, "name", item->name);
        if (kind == EXERCISM) {
            cJSON_AddStringToObject(test, "status", full ? "pass" : "fail");
            if (!full) cJSON_AddStringToObject(test, "message", item->output[0] != '\0' ? item->output : "missed");
        } else {
            cJSON_AddNumberToObject(test, "score", item->score);
            cJSON_AddNumberToObject(test, "max_score", item->most);
            cJSON_AddStringToObject(test, "output", item->output);
            if (kind == GRADESCOPE) cJSON_AddStringToObject(test, "visibility", "visible");
        }
        cJSON_AddItemToArray(tests, test);
    }
    cJSON_AddItemToObject(json, "tests", tests);
    return json;
}

static void write_json(const struct grading *grading, enum report kind, const char *path) {
    cJSON *json = to_json(grading, kind);
    char *text = cJSON_Print(json);
    struct output output;
    bool written = output_open(&output, path) && fprintf(output.file, "%s\n", text) > 0;
    if (output.file == NULL || !output_close(&output) || !written) {
        fprintf(stderr, "run.sh: cannot write %s: %s\n", path, strerror(errno));
        exit(3);
    }
    cJSON_Delete(json);
    free(text);
}

static void grade_text(struct grading *grading, const char *submission, const struct grade_options *options) {
    const struct task *task = grading->task;
    char why[600], *message = NULL, *program = NULL;
    char *text = merge(task, submission, why, grading->note, sizeof grading->note);
    if (text == NULL) {
        say(grading->build, "%s\n", why);
    } else {
        grading->adds_atomics = *task->id == 'b' && strstr(task->starter, "atomic") == NULL && strstr(text, "atomic") != NULL;
        program = build_submission(text, task->file, options->name, true, &message);
        if (program == NULL) say(grading->build, "%.3000s\n", message);
    }
    if (program != NULL) {
        bool all_right, any_fault;
        grade_shapes(grading, program, options->seed, options->hidden, &all_right, &any_fault);
        grade_cost(grading, program, options->seed, all_right, any_fault);
        if (!all_right) cap_points(grading);
    }
    if (program != NULL) unlink(program);
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
    return sum_of(&grading, PARTS, false);
}

/* A copy in which each gap between words is one space. */
static char *on_one_line(const char *text) {
    char *words = strdup(text), *to = words;
    for (const char *from = text; *from != '\0'; from++)
        if (!isspace((unsigned char)*from) || (to > words && to[-1] != ' '))
            *to++ = isspace((unsigned char)*from) ? ' ' : *from;
    *to = '\0';
    return words;
}

/* The points for numbers of barriers, which a fault costs too. */
static double of_barriers(const struct task *task) {
    double points = 0.0;
    for (int i = 0; i < task->budget_count; i++)
        if (strcmp(task->budgets[i].count, "barriers") == 0)
            points += task->points[COST] / (task->budget_count - task->guard_count);
    return points;
}

bool grade_is(const struct task *task, const char *submission, const struct expectation *expected, char *why,
              size_t room) {
    static struct grading grading;
    grading = (struct grading){.task = task, .costs_as_recorded = true};
    grade_text(&grading, submission, &(struct grade_options){.name = expected->name, .seed = 1});
    bool as_said = true;
    *why = '\0';
    static const char *const names[PARTS] = {"results", "faults", "cost"};
    for (int part = 0; part < PARTS; part++) {
        bool lost = sum_of(&grading, part, false) < task->points[part] - 1e-9;
        if (lost && (expected->may_lose & 1u << part) == 0)
            as_said = false, snprintf(why, room, "it lost points for %s", names[part]);
        if (!lost && (expected->loses & 1u << part) != 0)
            as_said = false, snprintf(why, room, "it lost no points for %s", names[part]);
    }
    double score = sum_of(&grading, PARTS, false), most = task->points[CORRECT] + task->points[FAULTS] + task->points[COST];
    bool all_right = sum_of(&grading, CORRECT, false) >= task->points[CORRECT] - 1e-9;
    if (!all_right && score > most / 2 + 1e-9)
        as_said = false, snprintf(why, room, "a result is wrong, and it has more than half of the points");
    if (all_right && sum_of(&grading, FAULTS, false) == 0.0 && score < most - task->points[FAULTS] - of_barriers(task) - 1e-9)
        as_said = false, snprintf(why, room, "a fault alone cost it %.1f points", most - score);
    if (expected->loses_some && sum_of(&grading, PARTS, false) >= sum_of(&grading, PARTS, true) - 1e-9)
        as_said = false, snprintf(why, room, "it scored full points");
    if (grading.build[0] != '\0') as_said = false, snprintf(why, room, "it does not compile");
    if (expected->is_solution && !grading.costs_as_recorded)
        as_said = false, snprintf(why, room, "a count is not the one that task.json records of the solution");
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    print_report(memory, &grading, expected->name);
    fclose(memory);
    char *words = on_one_line(text), *says = expected->says == NULL ? NULL : on_one_line(expected->says);
    regex_t pattern;
    if (as_said && expected->says != NULL) {
        if (regcomp(&pattern, says, REG_EXTENDED | REG_NOSUB) != 0) abort();
        as_said = regexec(&pattern, words, 0, NULL, 0) == 0;
        regfree(&pattern);
        if (!as_said) snprintf(why, room, "the report does not say \"%s\"", expected->says);
    }
    if (!as_said) fputs(text, stderr);
    free(text), free(words), free(says);
    return as_said;
}
