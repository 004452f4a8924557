/* The points of a submission as text and as JSON. */
#include "grading.h"

#include "output.h"
#include "process.h"
#include "status.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

double sum_of(const struct grading *grading, int part) {
    double sum = 0.0;
    for (int i = 0; i < grading->item_count; i++)
        if (part == PARTS || (int)grading->items[i].part == part) sum += grading->items[i].score;
    return sum;
}
double round_points(double points) { return floor(points * 10.0 + 0.5) / 10.0; }

/* Lines after `indent` spaces, broken between words; what follows keeps a line's own indentation. */
static void print_lines(FILE *to, size_t indent, const char *text) {
    while (*text != '\0') {
        size_t own = strspn(text, " "), room = 118 - indent - own, length;
        for (text += own; (length = strcspn(text, "\n")) > 0; text += strspn(text, " ")) {
            size_t cut = length;
            if (length > room)
                for (cut = room; cut > 0 && text[cut] != ' ';) cut--;
            if (cut == 0) cut = strcspn(text, " \n");
            fprintf(to, "%*s%.*s\n", (int)(indent + own), "", (int)cut, text);
            text += cut;
        }
        text += *text == '\n';
    }
}

/* The next task, and its chapter, its own page, or the primer. */
static void print_next(FILE *to, const char *id) {
    char page[64];
    glob_t found = {0};
    snprintf(page, sizeof page, "%s/%.*s_*/README.md", *id >= 'a' ? "exercises" : "steps", *id >= 'a' ? 3 : 2, id);
    fprintf(to, "Next: ./run.sh start %s, after %s\n", id,
            glob(page, 0, NULL, &found) == 0 ? found.gl_pathv[0] : "docs/gpu.md");
    globfree(&found);
}

void print_report(FILE *to, const struct grading *grading, const char *file) {
    static const char *const headings[PARTS] = {"Right results", "No faults", "Cost"};
    const struct task *task = grading->task;
    fprintf(to, "%s %s: %s\n", task->id, task->title, file);
    if (grading->note[0] != '\0') fprintf(to, "  note: %s\n", grading->note);
    if (grading->build[0] != '\0') fputs("\nNot accepted:\n", to);
    print_lines(to, 2, grading->build); /* indented: none can look like a line of points */
    for (int part = 0; part < PARTS; part++) {
        if (task->points[part] <= 0.0 || grading->item_count == 0) continue;
        fprintf(to, "\n%-44s %5.1f of %5.1f\n", headings[part], round_points(sum_of(grading, part)), task->points[part]);
        for (int i = 0; i < grading->item_count; i++) {
            const struct item *item = &grading->items[i];
            if ((int)item->part != part) continue;
            fprintf(to, "  %-7s %s\n", item->passed ? "ok" : "MISSED", item->name);
            print_lines(to, 12, item->output);
            if (part == FAULTS && strstr(item->output, ".cu:") != NULL)
                print_lines(to, 12, "docs/simulated-device.md, \"How to read a message\", explains each fault");
        }
        if (part == CORRECT && grading->advice[0] != '\0') print_lines(to, 2, grading->advice);
    }
    double score = sum_of(grading, PARTS), most = most_points(task);
    fprintf(to, "\nScore: %.1f of %.0f\n", round_points(score), most);
    if (score < most - 1e-9)
        fprintf(to, "A hint: ./run.sh grade %s --hint 1 (then 2, 3)\n", task->id);
    else if (task->next != NULL)
        print_next(to, task->next);
}

static cJSON *to_json(const struct grading *grading, enum report kind) {
    const struct task *task = grading->task;
    cJSON *json = cJSON_CreateObject(), *tests = cJSON_CreateArray();
    double score = round_points(sum_of(grading, PARTS)), most = most_points(task);
    char summary[sizeof grading->build + sizeof grading->advice + sizeof grading->note + 8];
    snprintf(summary, sizeof summary, "%s%s%s%s", grading->build, grading->note, *grading->note ? "\n" : "", grading->advice);
    if (kind == EXERCISM) {
        cJSON_AddNumberToObject(json, "version", 2);
        cJSON_AddStringToObject(json, "status", grading->build[0] != '\0' ? "error" : score >= most - 1e-9 ? "pass" : "fail");
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
        cJSON_AddStringToObject(test, "name", item->name);
        if (kind == EXERCISM) {
            cJSON_AddStringToObject(test, "status", item->passed ? "pass" : "fail");
            if (!item->passed) cJSON_AddStringToObject(test, "message", item->output[0] != '\0' ? item->output : "missed");
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

void write_json(const struct grading *grading, enum report kind, const char *path) {
    cJSON *json = to_json(grading, kind);
    char *text = cJSON_Print(json);
    struct output output;
    bool written = output_open(&output, path) && fprintf(output.file, "%s\n", text) > 0;
    if (output.file == NULL || !output_close(&output) || !written) err(EXIT_FAILED, "cannot write %s", path);
    cJSON_Delete(json);
    free(text);
}
