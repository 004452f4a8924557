#include "task.h"

#include "process.h"
#include "status.h"
#include "submission.h"
#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the markers ---------------------------------------------------------------------------------------------------- */

struct span {
    const char *begin, *end; /* what lies between the markers' lines */
};

/* Where hole k is in a text with markers. False unless each marker is there once, in order. */
static bool find_hole(const char *text, int k, struct span *span) {
    char begin[32], end[32];
    snprintf(begin, sizeof begin, "// >>> Hole %d", k + 1);
    snprintf(end, sizeof end, "// <<< End of hole %d", k + 1);
    const char *first = find_line(text, begin), *last = find_line(text, end);
    if (first == NULL || last == NULL || last < first) return false;
    if (find_line(line_end(first), begin) != NULL || find_line(line_end(last), end) != NULL) return false;
    *span = (struct span){line_end(first), last};
    return true;
}

/* ---- starters are made from kernels --------------------------------------------------------------------------------- */

/* It lasts: what is read of a task is kept. */
static const char *text_of(const cJSON *object, const char *name) {
    return cJSON_GetStringValue(cJSON_GetObjectItem(object, name));
}

static double number_of(const cJSON *object, const char *name, double usual) {
    const cJSON *number = cJSON_GetObjectItem(object, name);
    return cJSON_IsNumber(number) ? number->valuedouble : usual;
}

/* The lines of hole k in a kernel file: from the first line that begins with "from" to the one before "before". */
static struct span hole_in_kernel(const struct task *task, const char *after, const cJSON *hole) {
    const char *from = text_of(hole, "from"), *before = text_of(hole, "before");
    const char *first = from == NULL ? NULL : find_line(after, from);
    const char *last = first == NULL || before == NULL ? NULL : find_line(line_end(first), before);
    if (last == NULL)
        errx(EXIT_FAILED, "%s: the kernel no longer has the line \"%s\", with \"%s\" after it; git checkout restores it",
             task->folder, from == NULL ? "?" : from, before == NULL ? "?" : before);
    return (struct span){first, last};
}

/* A kernel file with another text for each part of a list of task.json. Of "left_out", which a task does not need and which would
 * give a hole's text away, a line is left. "holes" get markers around the kernel's own text, or that of `instead`, another
 * state of the file; or around the lines that the task gives, where `instead` is NULL. */
static char *rewritten(const struct task *task, const cJSON *json, const char *list, const char *kernel, const char *instead) {
    char *text;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    const char *at = kernel, *at_instead = instead;
    const cJSON *part, *given;
    int k = 0;
    cJSON_ArrayForEach(part, cJSON_GetObjectItem(json, list)) {
        struct span span = hole_in_kernel(task, at, part);
        int indent = (int)(line_start(span.begin) - span.begin);
        const char *what = cJSON_GetStringValue(cJSON_GetObjectItem(part, "what"));
        fprintf(to, "%.*s", (int)(span.begin - at) + indent, at);
        at = span.end;
        if (strcmp(list, "left_out") == 0) {
            fprintf(to, "// Left out: %s\n", what);
            continue;
        }
        fprintf(to, "// >>> Hole %d: %s\n", ++k, what);
        const cJSON *lines = instead == NULL ? cJSON_GetObjectItem(part, "starter") : NULL;
        cJSON_ArrayForEach(given, lines) fprintf(to, "%.*s%s\n", indent, span.begin, cJSON_GetStringValue(given));
        if (instead != NULL) {
            struct span source = hole_in_kernel(task, at_instead, part);
            fprintf(to, "%.*s", (int)(source.end - source.begin), source.begin);
            at_instead = source.end;
        }
        fprintf(to, "%.*s// <<< End of hole %d\n", indent, span.begin, k);
    }
    fputs(at, to);
    fclose(to);
    return text;
}

/* The file in which the sections `ID NAME` of the task's changes stand. */
static const char *changes_of(const struct task *task) {
    return *task->id == 'b'                  ? "exercises/bugs.changes"
           : *task->id == 'c'                ? "exercises/cheaper.changes"
           : strncmp(task->id, "00", 2) == 0 ? "exercises/warm_ups.changes"
                                             : "exercises/chapters.changes";
}

/* The kernel after a change (common/change): FILE:NAME, or the NAME of one of the task's own. */
static char *after_change(const struct task *task, const char *kernel, const char *change) {
    char own[512];
    snprintf(own, sizeof own, "%s:%s %s", changes_of(task), task->id, change);
    char *file = strdup(strchr(change, ':') == NULL ? own : change), *name = strchr(file, ':');
    *name++ = '\0';
    const char *const command[] = {"common/change", "apply", file, name, kernel, NULL};
    struct outcome outcome =
        run_program(command, (struct limits){.seconds = 10, .cpu_seconds = 10, .output_bytes = MOST_BYTES}, -1);
    free(file);
    if (outcome.status != 0 || outcome.too_long)
        errx(EXIT_FAILED, "%s: %s: %.*s", task->folder, change, (int)strlen(outcome.output) - 1, outcome.output);
    return outcome.output;
}

/* With the variant's replacements, each of a text that is there once, and without what is left out. */
static char *in_variant(const struct task *task, const cJSON *json, char *text, const cJSON *variant) {
    const cJSON *pair;
    cJSON_ArrayForEach(pair, cJSON_GetObjectItem(variant, "replace")) {
        const char *old = cJSON_GetStringValue(cJSON_GetArrayItem(pair, 0)),
                   *new = cJSON_GetStringValue(cJSON_GetArrayItem(pair, 1));
        char *at = old == NULL ? NULL : strstr(text, old), *replaced;
        if (at == NULL || new == NULL || strstr(at + 1, old) != NULL)
            errx(EXIT_FAILED, "%s: a variant replaces \"%s\", which is not there once", task->folder, old);
        if (asprintf(&replaced, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old)) < 0) abort();
        free(text);
        text = replaced;
    }
    return rewritten(task, json, "left_out", text, NULL);
}

/* The file of a variant, 0: of the task as it is. The caller's to free. */
char *variant_file(const char *name, int variant) {
    char *path;
    if ((variant > 0 ? asprintf(&path, "%s.%d.cu", name, variant) : asprintf(&path, "%s.cu", name)) < 0) abort();
    return path;
}

static void make_texts(struct task *task, const cJSON *json, const cJSON *variant, int number, const char *wrong) {
    char path[512];
    snprintf(path, sizeof path, "%s/starter", task->folder);
    task->file = variant_file(path, number);
    task->starter = read_text(task->file);
    if (task->starter != NULL) return; /* a copy for students */
    const char *name = text_of(json, "kernel"), *change = text_of(json, "broken");
    if (name == NULL) errx(EXIT_FAILED, "%s: task.json: kernel: a string is expected", task->folder);
    bool beside = strchr(name, '/') == NULL;
    snprintf(path, sizeof path, "%s%s%s", beside ? task->folder : "", beside ? "/" : "", name);
    char *kernel = read_text(path);
    if (kernel == NULL) err(EXIT_FAILED, "%s: %s", task->folder, path);
    task->file = strdup(path);
    char *start = change == NULL ? NULL : in_variant(task, json, after_change(task, path, change), variant);
    char *answer = in_variant(task, json, wrong == NULL ? strdup(kernel) : after_change(task, path, wrong), variant);
    kernel = in_variant(task, json, kernel, variant);
    task->starter = rewritten(task, json, "holes", kernel, start);
    task->solution = rewritten(task, json, "holes", kernel, answer);
}

/* Decode rot13: a handout has its hints in it, so that no student reads one by accident. */
static char *rot13(const char *text) {
    char *turned = strdup(text);
    for (char *c = turned; *c != '\0'; c++)
        if (isalpha((unsigned char)*c)) *c = (char)((*c | 32) < 'n' ? *c + 13 : *c - 13);
    return turned;
}

/* ---- task.json ------------------------------------------------------------------------------------------------------ */

static struct shape to_shape(const cJSON *json) {
    const cJSON *sizes = cJSON_GetObjectItem(json, "size"), *window = cJSON_GetObjectItem(json, "window");
    int n[4];
    for (int i = 0; i < 4; i++) n[i] = cJSON_GetArrayItem(sizes, i)->valueint;
    struct shape shape = {.what = text_of(json, "what"), .input = INPUT_RANDOM};
    shape.problem = (struct problem){.batch = 1, .heads = n[0], .N_q = n[1], .N_kv = n[2], .d = n[3]};
    shape.problem.causal = cJSON_IsTrue(cJSON_GetObjectItem(json, "causal"));
    shape.problem.heads_kv = (int)number_of(json, "heads_kv", 0);
    if (window != NULL) {
        shape.problem.windowed = true;
        shape.problem.left = cJSON_GetArrayItem(window, 0)->valueint;
        shape.problem.right = cJSON_GetArrayItem(window, 1)->valueint;
    }
    shape.problem.scale = (float)number_of(json, "scale", 1.0 / sqrt(n[3]));
    const char *input = text_of(json, "input"), *dtype = text_of(json, "dtype");
    for (int kind = 0; kind < INPUT_KINDS && input != NULL; kind++)
        if (strcmp(input, input_names[kind]) == 0) shape.input = (enum input_kind)kind;
    for (int type = 0; type < DTYPES && dtype != NULL; type++)
        if (strcmp(dtype, dtype_names[type]) == 0) shape.problem.dtype = (enum dtype)type;
    return shape;
}

static void read_lists(struct task *task, const cJSON *json, const cJSON *budgets, const cJSON *usual) {
    const cJSON *item, *list = cJSON_GetObjectItem(json, "shapes");
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(json, "holes")) {
        struct hole *hole = &task->holes[task->hole_count++];
        hole->what = text_of(item, "what");
        for (int k = 0; k < HINTS; k++) {
            const char *hint = cJSON_GetStringValue(cJSON_GetArrayItem(cJSON_GetObjectItem(item, "hints"), k));
            const char *hidden = cJSON_GetStringValue(cJSON_GetArrayItem(cJSON_GetObjectItem(item, "hints_rot13"), k));
            hole->hints[k] = hint != NULL ? hint : hidden != NULL ? rot13(hidden) : NULL;
        }
    }
    const char *kind = cJSON_IsString(list) ? list->valuestring : task->backward ? "backward" : "forward";
    if (!cJSON_IsArray(list)) list = cJSON_GetObjectItem(usual, kind);
    cJSON_ArrayForEach(item, list) { task->shapes[task->shape_count++] = to_shape(item); }
    item = cJSON_GetObjectItem(json, "metered");
    task->metered = to_shape(item != NULL ? item : cJSON_GetArrayItem(cJSON_GetObjectItem(usual, "metered"), 0));
    if (budgets == NULL) budgets = cJSON_GetObjectItem(json, "budgets");
    cJSON_ArrayForEach(item, budgets) {
        task->budgets[task->budget_count++] = (struct budget){.count = text_of(item, "count"),
                                                              .what = text_of(item, "what"),
                                                              .naive_is = text_of(item, "naive_is"),
                                                              .naive = number_of(item, "naive", NAN),
                                                              .solution = number_of(item, "solution", NAN),
                                                              .at_most = number_of(item, "at_most", NAN),
                                                              .guard = cJSON_IsTrue(cJSON_GetObjectItem(item, "guard"))};
        task->guard_count += task->budgets[task->budget_count - 1].guard;
    }
    if (task->shape_count == 0) errx(EXIT_FAILED, "%s: task.json: shapes: %s is no list of shapes.json", task->folder, kind);
}

/* What stands behind `name` at the beginning of a line, "" where no line begins so. */
static char *value_of(const char *text, const char *name) {
    const char *line = find_line(text, name), *value = line == NULL ? "" : line_start(line) + strlen(name);
    return strndup(value, strcspn(value, "\n"));
}

/* The wrong fillings: the task's changes, but for the one that the starter is made by. They say what they lose and what the
 * report must say. One without lines to change is named like the change that it tells of, FILE:NAME. */
static void read_wrong(struct task *task, const char *of_starter) {
    static const char *const parts[PARTS] = {"results", "faults", "cost"};
    const char *file = changes_of(task);
    char begin[64], *text = read_text(file);
    if (text == NULL && errno != ENOENT) errx(EXIT_FAILED, "%s: %s", file, why_unreadable(errno));
    snprintf(begin, sizeof begin, "## %s ", task->id);
    const char *section = text == NULL ? NULL : find_line(text, begin), *next;
    for (; section != NULL; section = next == NULL ? NULL : find_line(next, begin)) {
        next = find_line(line_end(section), "## ");
        char *body = strndup(section, next == NULL ? strlen(section) : (size_t)(next - section));
        struct wrong wrong = {.change = value_of(body, begin), .says = value_of(body, "says: ")};
        const char *loses = value_of(body, "loses: ");
        for (int part = 0; part < PARTS; part++) wrong.loses |= strstr(loses, parts[part]) != NULL ? 1u << part : 0u;
        if (wrong.loses == 0 && of_starter != NULL && strcmp(wrong.change, of_starter) == 0) continue;
        if (wrong.loses == 0 || *wrong.says == '\0')
            errx(EXIT_FAILED, "%s: %s %s: %s is expected", file, task->id, wrong.change,
                 wrong.loses == 0 ? "loses: results, faults or cost" : "says: REGEX");
        if (task->wrong_count == MAX_WRONG)
            errx(EXIT_FAILED, "%s: at most %d wrong fillings of a task are expected, also of %s", file, MAX_WRONG, task->id);
        task->wrong[task->wrong_count++] = wrong;
    }
}

static cJSON *read_json(const char *path, enum object object) {
    char *text = read_text(path);
    cJSON *json = text == NULL ? NULL : cJSON_ParseWithLength(text, strlen(text));
    const char *wrong = json == NULL ? text == NULL ? why_unreadable(errno) : "JSON is expected" : what_is_wrong(json, object);
    if (wrong != NULL) errx(EXIT_FAILED, "%s: %s", path, wrong);
    free(text);
    return json;
}

struct task read_task(const char *id, int variant, const char *wrong) {
    struct task task = {.folder = "exercises"};
    char path[512];
    glob_t found = {0};
    size_t digits = strspn(id, "0123456789abcdefghijklmnopqrstuvwxyz_");
    snprintf(path, sizeof path, "exercises/%.*s%s/task.json", 100, id, strchr(id, '_') == NULL ? "_*" : "");
    if (*id == '\0' || id[digits] != '\0' || glob(path, 0, NULL, &found) != 0 || found.gl_pathc != 1)
        errx(EXIT_USAGE, "there is no task \"%s\"; ./run.sh start lists them", id);
    const char *name = found.gl_pathv[0] + strlen("exercises/");
    task.id = strndup(name, strcspn(name, "_"));
    task.folder = strndup(found.gl_pathv[0], strlen(found.gl_pathv[0]) - strlen("/task.json"));
    cJSON *json = read_json(found.gl_pathv[0], TASK), *usual = read_json("exercises/shapes.json", SHAPES);
    task.title = text_of(json, "title");
    task.next = text_of(json, "next");
    task.backward = strcmp(text_of(json, "pass"), "bwd") == 0;
    task.d_multiple = (int)number_of(json, "d_multiple", 1);
    task.d_most = (int)number_of(json, "d_most", MAX_HEAD_DIM);
    if (task.d_multiple > task.d_most) errx(EXIT_FAILED, "%s: task.json: d_most: at least d_multiple is expected", task.folder);
    const cJSON *points = cJSON_GetObjectItem(json, "points");
    for (int part = 0; part < PARTS; part++) task.points[part] = cJSON_GetArrayItem(points, part)->valuedouble;
    const cJSON *variants = cJSON_GetObjectItem(json, "variants"), *chosen = cJSON_GetArrayItem(variants, variant - 1);
    task.variants = cJSON_GetArraySize(variants);
    if (variant < 0 || variant > task.variants) errx(EXIT_USAGE, "task %s has %d variants", task.id, task.variants);
    if (variant == 0) chosen = NULL;
    read_lists(&task, json, cJSON_GetObjectItem(chosen, "budgets"), usual);
    read_wrong(&task, text_of(json, "broken"));
    if ((task.points[COST] > 0) != (task.budget_count > task.guard_count))
        errx(EXIT_FAILED, "%s: points for cost and budgets go together", task.folder);
    make_texts(&task, json, chosen, variant, wrong);
    struct span span;
    for (int k = 0; k < task.hole_count; k++)
        if (!find_hole(task.starter, k, &span)) errx(EXIT_FAILED, "%s: the starter has no hole %d", task.folder, k + 1);
    globfree(&found);
    return task;
}

void list_tasks(void) {
    glob_t found = {0};
    glob("exercises/*/task.json", 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *name = found.gl_pathv[i] + strlen("exercises/");
        const char *title = text_of(cJSON_Parse(read_text(found.gl_pathv[i])), "title");
        printf("%-5.*s %s\n", (int)strcspn(name, "_"), name, title == NULL ? "?" : title);
    }
    const char *first = found.gl_pathc > 0 ? found.gl_pathv[0] + strlen("exercises/") : "_";
    printf("Next: ./run.sh start %.*s\n", (int)strcspn(first, "_"), first);
}

/* ---- a submission --------------------------------------------------------------------------------------------------- */

/* The first line up to `end` that is not the starter's up to `own_end`; NULL when there is none. */
static const char *first_changed(const char *at, const char *end, const char *own, const char *own_end) {
    for (; own < own_end || at < end; at = line_end(at), own = line_end(own)) {
        size_t length = strcspn(at, "\r\n");
        if (length != strcspn(own, "\n") || strncmp(at, own, length) != 0) return at;
    }
    return NULL;
}

/* A macro ends with its hole where the starter has its name, too: what stands outside the holes is ours. Other holes keep the
 * rest. */
static void end_macros(FILE *to, const char *hole, const char *starter) {
    for (const char *at = hole; *at != '\0'; at = line_end(at)) {
        const char *word = line_start(at);
        if (*word != '#' || strncmp(word = line_start(word + 1), "define", 6) != 0) continue;
        word = line_start(word + 6);
        size_t length = word_length(word);
        if (length > 0 && is_word_of(word, length, starter)) fprintf(to, "#undef %.*s\n", (int)length, word);
    }
}

char *merge(const struct task *task, const char *submission, char *why, char *note, size_t room) {
    char *text;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    const char *own = task->starter, *at = submission, *changed = NULL;
    bool complete = true;
    *why = *note = '\0';
    for (int k = 0; k < task->hole_count && complete; k++) {
        struct span theirs, ours;
        find_hole(task->starter, k, &ours);
        if (!find_hole(submission, k, &theirs)) {
            complete = false;
            snprintf(why, room,
                     "the lines \"// >>> Hole %d\" and \"// <<< End of hole %d\" must each be there once, in this "
                     "order: they say what is yours",
                     k + 1, k + 1);
            break;
        }
        int line = 1 + lines_between(submission, theirs.begin), end = line + lines_between(theirs.begin, theirs.end);
        char *hole = strndup(theirs.begin, (size_t)(theirs.end - theirs.begin));
        if (!is_off("scan") && *why == '\0') explain(hole, line, why, room);
        /* simt_rewrite sees what macros become */
        fprintf(to, "%.*s#pragma simt device_only%s\n#line %d\n%s", (int)(ours.begin - own), own,
                is_off("tokens") ? " unchecked" : "", line, hole);
        if (!is_off("macros")) end_macros(to, hole, task->starter);
        fprintf(to, "#pragma simt host_too\n#line %d\n", end);
        free(hole);
        if (changed == NULL) changed = first_changed(at, theirs.begin, own, ours.begin);
        at = theirs.end, own = ours.end;
    }
    fputs(own, to);
    fclose(to);
    if (!complete) return NULL;
    if (changed == NULL) changed = first_changed(at, at + strlen(at), own, own + strlen(own));
    if (changed != NULL)
        snprintf(note, room,
                 "line %d is the first outside the holes that differs from the starter: there the starter's lines are used",
                 1 + lines_between(submission, changed));
    return text;
}
