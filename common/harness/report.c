/* Prints the tables that end the main job, one per pass and data type, one row per step.
 *
 *     report [--recorded FILE]... [--failed STEP]... RESULTS.jsonl
 *
 * RESULTS holds the JSON lines of the programs that ran here. Error and check always come from it. Latency, speedup,
 * TFLOP/s and memory come from it too when it was measured on a card; after a run on the simulated device, whose wall
 * time says nothing about a GPU, they come from the recorded files, and only in the rows whose kernel is the one that was
 * recorded: the fingerprints of the two must agree.
 */
#define _POSIX_C_SOURCE 200809L

#include "status.h"

#include <cjson/cJSON.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_WIDTH = 110, CELL_SIZE = 40, MAX_FAILED = 200 };

struct shape {
    int batch, heads, seq, seq_kv, dim;
    bool causal;
};

struct record {
    cJSON *json; /* owns the strings below */
    const char *step, *idea, *kernel, *device;
    char pass[40]; /* and data type, as "fwd fp32": what is compared among itself, a table for each */
    struct shape shape;
    double ms, tflops, error, workspace; /* NAN where the line has none */
    bool checked, ok;
};

struct records {
    struct record *items;
    size_t count;
};

/* The size that the book quotes, where all the steps have it. */
static const struct shape quoted = {.batch = 4, .heads = 16, .seq = 4096, .seq_kv = 4096, .dim = 64, .causal = false};

__attribute__((format(printf, 1, 2))) static _Noreturn void fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("report: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(EXIT_USAGE);
}

/* --- reading JSON lines --- */

struct place {
    const char *file;
    size_t line;
};

/* NULL where the field is absent or null: the format writes null for a number that does not exist. */
static const cJSON *field(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNull(item) ? NULL : item;
}

static const char *text_field(struct place at, const cJSON *object, const char *name, bool needed) {
    const cJSON *item = field(object, name);
    if (item == NULL && !needed) return NULL;
    if (!cJSON_IsString(item)) fail("%s:%zu: \"%s\" is not a string", at.file, at.line, name);
    return item->valuestring;
}

static double number_field(struct place at, const cJSON *object, const char *name) {
    const cJSON *item = field(object, name);
    if (item != NULL && !cJSON_IsNumber(item)) fail("%s:%zu: \"%s\" is not a number", at.file, at.line, name);
    return item == NULL ? (double)NAN : item->valuedouble;
}

static int size_field(struct place at, const cJSON *object, const char *name) {
    double value = number_field(at, object, name);
    if (!(value >= 1 && value <= INT_MAX && value == floor(value)))
        fail("%s:%zu: \"%s\" is not a size", at.file, at.line, name);
    return (int)value;
}

static bool flag_field(struct place at, const cJSON *object, const char *name) {
    const cJSON *item = field(object, name);
    if (!cJSON_IsBool(item)) fail("%s:%zu: \"%s\" is neither true nor false", at.file, at.line, name);
    return cJSON_IsTrue(item);
}

static double worse(double a, double b) { return isnan(b) || a <= b ? b : a; /* a NaN wins */ }

/* The forward pass is judged by O, the backward pass by the worst of its three gradients. */
static double error_field(struct place at, const cJSON *errors) {
    if (field(errors, "dq") == NULL) return number_field(at, errors, "o");
    double error = worse(number_field(at, errors, "dq"), number_field(at, errors, "dk"));
    return worse(number_field(at, errors, "dv"), error);
}

static struct record parse_record(struct place at, const char *line) {
    cJSON *json = cJSON_ParseWithOpts(line, NULL, true);
    if (!cJSON_IsObject(json)) fail("%s:%zu: not a JSON object", at.file, at.line);
    struct record record = {
        .json = json,
        .step = text_field(at, json, "step", true),
        .idea = text_field(at, json, "idea", false),
        .kernel = text_field(at, json, "kernel", false),
        .device = text_field(at, json, "device", true),
        .shape = {.batch = size_field(at, json, "batch"),
                  .heads = size_field(at, json, "heads"),
                  .seq = size_field(at, json, "seq"),
                  .seq_kv = size_field(at, json, "seq_kv"),
                  .dim = size_field(at, json, "dim"),
                  .causal = flag_field(at, json, "causal")},
        .ms = number_field(at, json, "ms_median"),
        .tflops = number_field(at, json, "tflops"),
        .workspace = number_field(at, json, "workspace_bytes"),
        .error = error_field(at, field(json, "err_rel")),
        .checked = field(json, "ok") != NULL,
    };
    record.ok = record.checked && flag_field(at, json, "ok");
    /* What is deterministic is another measurement than the step's own. */
    bool deterministic = field(json, "deterministic") != NULL && flag_field(at, json, "deterministic");
    snprintf(record.pass, sizeof record.pass, "%s %s", deterministic ? "deterministic" : text_field(at, json, "pass", true),
             text_field(at, json, "dtype", true));
    return record;
}

static void read_records(const char *file, struct records *records) {
    FILE *stream = fopen(file, "r");
    if (stream == NULL) fail("cannot read %s", file);
    char *line = NULL;
    size_t size = 0;
    struct place at = {.file = file, .line = 0};
    while (getline(&line, &size, stream) >= 0) {
        at.line++;
        if (line[strspn(line, " \t\r\n")] == '\0') continue;
        records->items = realloc(records->items, (records->count + 1) * sizeof *records->items);
        if (records->items == NULL) fail("out of memory");
        records->items[records->count++] = parse_record(at, line);
    }
    if (ferror(stream)) fail("cannot read %s", file);
    free(line);
    fclose(stream);
}

static void free_records(struct records *records) {
    for (size_t i = 0; i < records->count; i++) cJSON_Delete(records->items[i].json);
    free(records->items);
}

/* --- which numbers to show --- */

static bool same_shape(const struct shape *a, const struct shape *b) {
    return a->batch == b->batch && a->heads == b->heads && a->seq == b->seq && a->seq_kv == b->seq_kv && a->dim == b->dim &&
           a->causal == b->causal;
}

/* Numbers stand side by side in a column only when they were taken on one device at one size. */
static bool comparable(const struct record *a, const struct record *b) {
    return strcmp(a->pass, b->pass) == 0 && strcmp(a->device, b->device) == 0 && same_shape(&a->shape, &b->shape);
}

/* The first line of a step's pass; NULL when there is none. */
static const struct record *first_line(const struct records *records, const char *step, const char *pass) {
    for (size_t i = 0; i < records->count; i++)
        if (strcmp(records->items[i].step, step) == 0 && strcmp(records->items[i].pass, pass) == 0) return &records->items[i];
    return NULL;
}

/* May `line` stand in a row of what ran here? Not when it was taken with another kernel, or nobody knows with which. */
static bool may_stand(const struct records *results, const struct record *line) {
    const struct record *here = first_line(results, line->step, line->pass);
    return here != NULL && here->kernel != NULL && line->kernel != NULL && strcmp(here->kernel, line->kernel) == 0;
}

/* Where a table's numbers come from: lines of `records` that are comparable with `like`, NULL when there are none. */
struct source {
    const struct records *results, *records;
    const struct record *like;
};

/* The last such line of a step: a later measurement replaces an earlier one. */
static const struct record *find(struct source from, const char *step) {
    for (size_t i = from.records->count; from.like != NULL && i-- > 0;) {
        const struct record *line = &from.records->items[i];
        if (comparable(line, from.like) && strcmp(line->step, step) == 0 && may_stand(from.results, line)) return line;
    }
    return NULL;
}

/* What all others are compared with: the first step, by name, that was measured at that size, here or not. */
static const struct record *baseline(struct source from) {
    const struct record *first = NULL;
    for (size_t i = 0; from.like != NULL && i < from.records->count; i++) {
        const struct record *line = &from.records->items[i];
        if (comparable(line, from.like) && (first == NULL || strcmp(line->step, first->step) <= 0)) first = line;
    }
    return first;
}

static double work(const struct shape *s) { return (double)s->batch * s->heads * s->seq * s->seq_kv * s->dim; }

/* Sets `like`: the size that most steps have; among those the one that the book quotes; else the largest. */
static struct source choose(struct source from, const char *pass, char **steps, size_t count, bool timed) {
    size_t most = 0;
    const struct record *chosen = NULL;
    for (size_t i = 0; i < from.records->count; i++) {
        const struct record *line = &from.records->items[i];
        if (strcmp(line->pass, pass) != 0 || (timed && !isfinite(line->ms))) continue;
        from.like = line;
        size_t have = 0;
        for (size_t k = 0; k < count; k++) have += find(from, steps[k]) != NULL;
        if (have == 0 || have < most) continue;
        bool is_quoted = same_shape(&line->shape, &quoted);
        bool larger = chosen == NULL || work(&line->shape) > work(&chosen->shape);
        if (have == most && !is_quoted && (!larger || same_shape(&chosen->shape, &quoted))) continue;
        most = have;
        chosen = line;
    }
    from.like = chosen;
    return from;
}

/* --- cells --- */

enum column { STEP, LATENCY, SPEEDUP, TFLOPS, MEMORY, ERROR, CHECK, COLUMNS };

struct row {
    char cells[COLUMNS][CELL_SIZE];
    const char *idea;
};

/* Three significant digits, never an exponent. */
static void put_number(char cell[CELL_SIZE], double value, const char *unit) {
    int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : value >= 0.9995 ? 2 : value >= 0.0995 ? 3 : 4;
    if (isfinite(value))
        snprintf(cell, CELL_SIZE, "%.*f%s", digits, value, unit);
    else
        snprintf(cell, CELL_SIZE, "-");
}

static void put_bytes(char cell[CELL_SIZE], double bytes) {
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
    int unit = 0;
    for (; bytes >= 1024 && unit < 4; unit++) bytes /= 1024;
    put_number(cell, bytes, units[unit]);
    if (unit == 0 && bytes >= 0) snprintf(cell, CELL_SIZE, bytes > 0 ? "%.0f B" : "none", bytes);
}

/* The worst of all the sizes that ran here. */
static void put_check(struct row *row, const struct records *results, const char *step, const char *pass, bool failed) {
    double error = 0;
    bool checked = false;
    for (size_t i = 0; i < results->count; i++) {
        const struct record *line = &results->items[i];
        if (strcmp(line->step, step) != 0 || strcmp(line->pass, pass) != 0 || !line->checked) continue;
        checked = true;
        error = worse(line->error, error);
        failed = failed || !line->ok;
    }
    snprintf(row->cells[ERROR], CELL_SIZE, checked ? "%.1e" : "-", error);
    snprintf(row->cells[CHECK], CELL_SIZE, "%s", failed ? "FAILED" : checked ? "ok" : "-");
}

/* --- printing --- */

static void print_size(const char *pass, const struct shape *shape) {
    static const char *const words[][2] = {{"fwd ", "forward pass, "}, {"bwd ", "backward pass, "}, {"both ", "both passes, "}};
    const char *dtype = pass;
    for (int i = 0; i < 3; i++) {
        if (strncmp(pass, words[i][0], strlen(words[i][0])) != 0) continue;
        dtype = pass + strlen(words[i][0]);
        fputs(words[i][1], stdout);
    }
    printf("%s, B %d, H %d, N %d", dtype, shape->batch, shape->heads, shape->seq);
    if (shape->seq_kv != shape->seq) printf(" x %d", shape->seq_kv);
    printf(", d %d%s", shape->dim, shape->causal ? ", causal" : "");
}

/* The idea stands last, being the only text that can be broken into lines: as many whole words on each as fit. */
static void print_row(const struct row *row, const int widths[COLUMNS]) {
    int indent = printf("%-*s", widths[STEP], row->cells[STEP]);
    for (int column = LATENCY; column < CHECK; column++) indent += printf("  %*s", widths[column], row->cells[column]);
    indent += printf("  %-*s", widths[CHECK], row->cells[CHECK]);
    int used = indent;
    for (const char *word = row->idea; *word != '\0';) {
        int length = (int)strcspn(word, " ");
        if (used > indent && used + 1 + length > TABLE_WIDTH) used = printf("\n%*s", indent, "") - 1;
        used += printf("%s%.*s", used > indent ? " " : "  ", length, word);
        word += length + (int)strspn(word + length, " ");
    }
    putchar('\n');
}

static void print_rows(const struct row *rows, size_t count) {
    int widths[COLUMNS] = {0};
    for (size_t i = 0; i < count; i++) {
        for (int column = 0; column < COLUMNS; column++) {
            int width = (int)strlen(rows[i].cells[column]);
            widths[column] = width > widths[column] ? width : widths[column];
        }
    }
    for (size_t i = 0; i < count; i++) print_row(&rows[i], widths);
}

static void print_origin(const char *pass, const struct record *like, bool on_card) {
    if (like == NULL) {
        puts(on_card ? "Nothing was timed here." : "No latencies: none of these kernels is one that was recorded on a card.");
        return;
    }
    printf("Latency, speedup, TFLOP/s, memory: %s %s", on_card ? "measured here, on" : "recorded on", like->device);
    static const char *const details[][2] = {{"date", ""}, {"toolkit", "toolkit "}, {"driver", "driver "}};
    for (int i = 0; i < 3; i++) {
        const cJSON *detail = field(like->json, details[i][0]);
        if (cJSON_IsString(detail)) printf(", %s%s", details[i][1], detail->valuestring);
    }
    fputs(";\n  ", stdout);
    print_size(pass, &like->shape);
    puts(".");
}

static void print_table(struct source from, const struct source *recorded, const char *pass, char **steps, size_t count,
                        char **failed) {
    bool on_card = recorded == NULL;
    struct source times = choose(on_card ? from : *recorded, pass, steps, count, true);
    struct source memory = times.like != NULL ? times : choose(from, pass, steps, count, false);
    const struct record *first = baseline(times);
    struct row *rows = calloc(count + 1, sizeof *rows);
    if (rows == NULL) fail("out of memory");
    rows[0] = (struct row){.cells = {"step", "latency", "speedup", "TFLOP/s", "memory", "error", "check"}, .idea = "idea"};
    if (first != NULL) snprintf(rows[0].cells[SPEEDUP], CELL_SIZE, "over %.2s", first->step);
    size_t without = 0;
    for (size_t i = 0; i < count; i++) {
        struct row *row = &rows[i + 1];
        const struct record *here = first_line(from.results, steps[i], pass), *time = find(times, steps[i]),
                            *size = find(memory, steps[i]);
        row->idea = here->idea != NULL ? here->idea : "";
        snprintf(row->cells[STEP], CELL_SIZE, "%s", steps[i]);
        put_number(row->cells[LATENCY], time != NULL ? time->ms : (double)NAN, " ms");
        put_number(row->cells[SPEEDUP], time != NULL ? first->ms / time->ms : (double)NAN, "x");
        put_number(row->cells[TFLOPS], time != NULL ? time->tflops : (double)NAN, "");
        put_bytes(row->cells[MEMORY], size != NULL ? size->workspace : (double)NAN);
        bool has_failed = false;
        for (char **name = failed; *name != NULL; name++) has_failed = has_failed || strcmp(*name, steps[i]) == 0;
        put_check(row, from.results, steps[i], pass, has_failed);
        without += time == NULL;
    }
    print_rows(rows, count + 1);
    putchar('\n');
    print_origin(pass, times.like, on_card);
    if (!on_card && times.like != NULL && without > 0)
        puts("A dash: the kernel that ran here is not one that was recorded at that size.");
    if (times.like == NULL && memory.like != NULL) {
        fputs("Memory: ", stdout);
        print_size(pass, &memory.like->shape);
        puts(", as run here.");
    }
    printf("Memory: of the device, beyond inputs and outputs.\n"
           "Error and check: the largest relative error over all sizes that ran here%s.\n\n",
           on_card ? "" : ", on the simulated device");
    free(rows);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void print_tables(const struct records *results, const struct records *recorded, char **failed) {
    char **steps = calloc(results->count + 1, sizeof *steps);
    if (steps == NULL) fail("out of memory");
    bool on_card = false;
    for (size_t i = 0; i < results->count; i++) on_card = on_card || strcmp(results->items[i].device, "sim") != 0;
    struct source here = {results, results, NULL}, other = {results, recorded, NULL};
    for (size_t p = 0; p < results->count; p++) {
        const char *pass = results->items[p].pass;
        size_t count = 0, before = 0;
        while (strcmp(results->items[before].pass, pass) != 0) before++;
        if (before < p) continue; /* this pass has its table */
        for (size_t i = 0; i < results->count; i++) {
            const struct record *line = &results->items[i];
            if (strcmp(line->pass, pass) == 0 && first_line(results, line->step, pass) == line)
                steps[count++] = (char *)(uintptr_t)line->step;
        }
        qsort(steps, count, sizeof *steps, by_name);
        print_table(here, on_card ? NULL : &other, pass, steps, count, failed);
    }
    free(steps);
    if (results->count == 0) puts("No step ran: nothing to show.");
    for (char **name = failed; *name != NULL; name++) {
        bool has_line = false;
        for (size_t i = 0; i < results->count; i++) has_line = has_line || strcmp(results->items[i].step, *name) == 0;
        if (!has_line) printf("FAILED, without a result: %s\n", *name);
    }
}

int main(int argc, char **argv) {
    static const char usage[] = "Usage: report [--recorded FILE]... [--failed STEP]... RESULTS.jsonl\n"
                                "Prints a table of the steps whose JSON lines RESULTS.jsonl holds.\n"
                                "\n"
                                "  --recorded FILE  measurements recorded on a card, shown when nothing was timed here\n"
                                "  --failed STEP    a step whose program failed, with or without a line in RESULTS.jsonl\n"
                                "  --help           this text\n";
    static const struct option options[] = {
        {"recorded", required_argument, NULL, 'r'},
        {"failed", required_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    static struct records results, recorded; /* all zero */
    static char *failed[MAX_FAILED + 1];
    size_t failed_count = 0;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'r': read_records(optarg, &recorded); break;
        case 'f':
            if (failed_count == MAX_FAILED) fail("more than %d --failed", MAX_FAILED);
            failed[failed_count++] = optarg;
            break;
        case 'h': fputs(usage, stdout); return EXIT_SUCCESS;
        default: /* getopt_long has said what is wrong */ return EXIT_USAGE;
        }
    }
    if (optind != argc - 1) fail("one results file, please; see report --help");
    read_records(argv[optind], &results);
    print_tables(&results, &recorded, failed);
    free_records(&results);
    free_records(&recorded);
    return EXIT_SUCCESS;
}
