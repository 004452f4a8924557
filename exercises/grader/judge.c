/* Is one problem's result right, and if not, how is it wrong? */
#include "grading.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void say(char *text, const char *format, ...) {
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, MAX_TEXT - used, format, arguments);
    va_end(arguments);
}

void show_printed(char *text, const char *printed) {
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

static bool all_equal(const float *values, float value, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (values[i] != value) return false;
    return true;
}

static void judge_tensor(struct judged *judged, const struct run *run, enum tensor tensor, const struct check *check,
                         const size_t *rows) {
    size_t columns = tensor_columns(&run->problem, tensor), count = tensor_elements(&run->problem, tensor);
    judged->tensor_right[tensor] = check->ok;
    judged->factor[tensor] = check->factor;
    size_t nan = 0;
    for (size_t i = 0; i < count; i++) nan += isnan(run->host[tensor][i]) != 0;
    if (check->ok) return;
    judged->right = false;
    if (nan == count) {
        say(judged->text, "%s is NaN everywhere: nothing was written there, or a NaN has spread\n", tensor_table[tensor].name);
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
        say(judged->text, "%s is off by %.1e of its norm; rounding explains %.1e\n", tensor_table[tensor].name, check->err_rel,
            check->bound_rel);
    }
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

/* Add to `values` what the warm-up `id` must write: TENSOR_O, or TENSOR_L, which is returned; TENSOR_COUNT when the id is of
 * none. Warm-ups are written as steps, and mean something else by O and L: per head, Q is a matrix of N_q rows and d columns.
 * `size` is how large the terms of each value are, to which its rounding error is proportional. Both arrays hold zeros and have
 * room for either tensor. */
static enum tensor expected_of_warm_up(const char *id, const struct problem *p, const float *Q, double *values, double *size) {
    bool scaled = strcmp(id, "00a") == 0, reversed = strcmp(id, "00b") == 0, transposed = strcmp(id, "00c") == 0;
    bool sums = strcmp(id, "00d") == 0;
    if (!scaled && !reversed && !transposed && !sums) return TENSOR_COUNT;
    size_t heads = (size_t)p->batch * (size_t)p->heads, rows = (size_t)p->N_q, columns = (size_t)p->d;
    for (size_t k = 0; k < heads * rows * columns; k++) {
        size_t head = k / columns / rows, i = k / columns % rows, j = k % columns;
        size_t at = transposed ? j * rows + i : reversed ? (rows - 1 - i) * columns + j : i * columns + j;
        at = sums ? head * rows + i : head * rows * columns + at;
        double term = (double)Q[k] * (scaled ? (double)p->scale : 1.0);
        values[at] += term;
        size[at] = hypot(size[at], term);
    }
    return sums ? TENSOR_L : TENSOR_O;
}

struct judged judge(const struct task *task, const struct shape *shape, struct submission_run *result) {
    struct judged judged = {.right = true, .faulted = result->ending == FAULTED, .finished = result->ending == FINISHED};
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++)
        judged.factor[tensor] = NAN, judged.tensor_right[tensor] = true;
    if (!judged.finished) {
        judged.right = false;
        char *rest = result->message, *line;
        for (int lines = 0; lines < 12 && (line = strsep(&rest, "\n")) != NULL; lines++) say(judged.text, "%.900s\n", line);
        return judged;
    }
    size_t room = tensor_elements(&shape->problem, TENSOR_O) + tensor_elements(&shape->problem, TENSOR_L);
    double *expected = calloc(room, sizeof *expected), *size = calloc(room, sizeof *size);
    enum tensor warm_up = expected_of_warm_up(task->id, &shape->problem, result->run.host[TENSOR_Q], expected, size);
    if (warm_up != TENSOR_COUNT) {
        const float *out = result->run.host[warm_up];
        size_t count = tensor_elements(&shape->problem, warm_up);
        struct check check = check_gradient(out, expected, size, count, 1e-6);
        judge_tensor(&judged, &result->run, warm_up, &check, NULL);
    } else {
        judge_attention(&judged, &result->run, task->backward);
    }
    free(expected), free(size);
    return judged;
}
