/* Prints the table that ends the main job: one row a step.
 *
 *     report [--recorded FILE]... [--failed STEP]... RESULTS.jsonl
 *
 * RESULTS holds the JSON lines of the programs that ran here. The error and check columns always come from it. The
 * latency, the speedup, TFLOP/s and the memory come from it too when it was measured on a card; the simulated device's
 * wall time says nothing about a GPU, so after a run there they come from the recorded files, and a line below the table
 * says on which card they were taken.
 */
#define _POSIX_C_SOURCE 200809L

#include <cjson/cJSON.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2, TABLE_WIDTH = 100, MIN_IDEA_WIDTH = 16, CELL_SIZE = 32 };

struct shape {
    int batch, heads, seq, seq_kv, dim;
    bool causal;
};

enum check { CHECK_NOT_DONE, CHECK_WRONG, CHECK_OK };

struct record {
    cJSON *json; /* owns the strings below */
    const char *step, *idea, *device, *pass;
    const char *date, *toolkit, *driver; /* NULL where the line was not recorded with them */
    struct shape shape;
    double ms, tflops, error, workspace; /* NAN where the line has none */
    enum check check;
};

struct records {
    struct record *items;
    size_t count, capacity;
};

struct names {
    const char **items;
    size_t count, capacity;
};

/* Passes are compared only among themselves, so each has a table of its own and a first step to be faster than. */
struct pass {
    const char *name, *words, *baseline, *baseline_heading, *error_of;
};

static const struct pass passes[] = {
    {"fwd", "forward", "01_", "over 01", "O"},
    {"bwd", "backward", "07_", "over 07", "dQ, dK and dV"},
};

/* The size that the book quotes, where all the steps have it. */
static const struct shape quoted = {.batch = 4, .heads = 16, .seq = 4096, .seq_kv = 4096, .dim = 64, .causal = false};

/* --- errors and memory --- */

__attribute__((format(printf, 1, 2))) static _Noreturn void fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("report: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(EXIT_USAGE);
}

static void *grown(void *items, size_t count, size_t *capacity, size_t item_size) {
    if (count < *capacity) {
        return items;
    }
    *capacity = *capacity == 0 ? 16 : *capacity * 2;
    void *bigger = realloc(items, *capacity * item_size);
    if (bigger == NULL) {
        fail("out of memory");
    }
    return bigger;
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

static const char *text_field(struct place at, const cJSON *object, const char *name) {
    const cJSON *item = field(object, name);
    if (item != NULL && !cJSON_IsString(item)) {
        fail("%s:%zu: \"%s\" is not a string", at.file, at.line, name);
    }
    return item == NULL ? NULL : item->valuestring;
}

static const char *needed_text(struct place at, const cJSON *object, const char *name) {
    const char *text = text_field(at, object, name);
    if (text == NULL) {
        fail("%s:%zu: \"%s\" is missing", at.file, at.line, name);
    }
    return text;
}

static double number_field(struct place at, const cJSON *object, const char *name) {
    const cJSON *item = field(object, name);
    if (item != NULL && !cJSON_IsNumber(item)) {
        fail("%s:%zu: \"%s\" is not a number", at.file, at.line, name);
    }
    return item == NULL ? (double)NAN : item->valuedouble;
}

static int size_field(struct place at, const cJSON *object, const char *name) {
    double value = number_field(at, object, name);
    if (!(value >= 1 && value <= INT_MAX && value == floor(value))) {
        fail("%s:%zu: \"%s\" is not a size", at.file, at.line, name);
    }
    return (int)value;
}

/* Causal or not changes the amount of work, so a line that does not say which is no use: absent is an error. */
static bool flag_field(struct place at, const cJSON *object, const char *name) {
    const cJSON *item = field(object, name);
    if (!cJSON_IsBool(item)) {
        fail("%s:%zu: \"%s\" is neither true nor false", at.file, at.line, name);
    }
    return cJSON_IsTrue(item);
}

static enum check check_field(struct place at, const cJSON *object) {
    if (field(object, "ok") == NULL) {
        return CHECK_NOT_DONE;
    }
    return flag_field(at, object, "ok") ? CHECK_OK : CHECK_WRONG;
}

/* The forward pass is judged by O, the backward pass by the worst of its three gradients. */
static double error_field(struct place at, const cJSON *object, const char *pass) {
    static const char *const gradients[] = {"dq", "dk", "dv"};
    const cJSON *errors = field(object, "err_rel");
    if (strcmp(pass, "bwd") != 0) {
        return number_field(at, errors, "o");
    }
    double worst = number_field(at, errors, gradients[0]);
    for (size_t i = 1; i < sizeof gradients / sizeof gradients[0]; i++) {
        double error = number_field(at, errors, gradients[i]);
        worst = error <= worst ? worst : error; /* a NaN wins */
    }
    return worst;
}

static struct record parse_record(struct place at, const char *line) {
    cJSON *json = cJSON_ParseWithOpts(line, NULL, true);
    if (!cJSON_IsObject(json)) {
        fail("%s:%zu: not a JSON object", at.file, at.line);
    }
    struct record record = {
        .json = json,
        .step = needed_text(at, json, "step"),
        .idea = text_field(at, json, "idea"),
        .device = needed_text(at, json, "device"),
        .pass = needed_text(at, json, "pass"),
        .date = text_field(at, json, "date"),
        .toolkit = text_field(at, json, "toolkit"),
        .driver = text_field(at, json, "driver"),
        .shape = {.batch = size_field(at, json, "batch"),
                  .heads = size_field(at, json, "heads"),
                  .seq = size_field(at, json, "seq"),
                  .seq_kv = size_field(at, json, "seq_kv"),
                  .dim = size_field(at, json, "dim"),
                  .causal = flag_field(at, json, "causal")},
        .ms = number_field(at, json, "ms_median"),
        .tflops = number_field(at, json, "tflops"),
        .workspace = number_field(at, json, "workspace_bytes"),
        .check = check_field(at, json),
    };
    /* Lines of a forward pass need not say. What is deterministic is another measurement than the step's own. */
    if (field(json, "deterministic") != NULL && flag_field(at, json, "deterministic")) record.pass = "det";
    record.error = error_field(at, json, record.pass);
    return record;
}

static void read_records(const char *file, struct records *records) {
    FILE *stream = fopen(file, "r");
    if (stream == NULL) {
        fail("cannot read %s", file);
    }
    char *line = NULL;
    size_t size = 0;
    struct place at = {.file = file, .line = 0};
    while (getline(&line, &size, stream) >= 0) {
        at.line++;
        if (line[strspn(line, " \t\r\n")] == '\0') {
            continue;
        }
        records->items = grown(records->items, records->count, &records->capacity, sizeof *records->items);
        records->items[records->count++] = parse_record(at, line);
    }
    bool broken = ferror(stream) != 0;
    free(line);
    fclose(stream);
    if (broken) {
        fail("cannot read %s", file);
    }
}

static void free_records(struct records *records) {
    for (size_t i = 0; i < records->count; i++) {
        cJSON_Delete(records->items[i].json);
    }
    free(records->items);
}

/* --- which numbers to show --- */

static bool same_shape(const struct shape *a, const struct shape *b) {
    return a->batch == b->batch && a->heads == b->heads && a->seq == b->seq && a->seq_kv == b->seq_kv &&
           a->dim == b->dim && a->causal == b->causal;
}

/* Numbers stand side by side in a column only when they were taken on one device at one size. */
static bool comparable(const struct record *a, const struct record *b) {
    return strcmp(a->pass, b->pass) == 0 && strcmp(a->device, b->device) == 0 && same_shape(&a->shape, &b->shape);
}

/* The last such line: a later measurement replaces an earlier one. NULL when there is none. */
static const struct record *find(const struct records *records, const struct record *like, const char *step,
                                 size_t step_length) {
    for (size_t i = records->count; like != NULL && i-- > 0;) {
        const struct record *record = &records->items[i];
        if (comparable(record, like) && strncmp(record->step, step, step_length) == 0) {
            return record;
        }
    }
    return NULL;
}

static const struct record *find_step(const struct records *records, const struct record *like, const char *step) {
    return find(records, like, step, strlen(step) + 1);
}

/* What makes one size better to show than another: more steps have it; the book quotes it; it is larger. */
struct rank {
    size_t steps;
    bool is_quoted;
    double work;
};

static struct rank rank_of(const struct records *records, const struct record *like, const struct names *steps) {
    const struct shape *shape = &like->shape;
    struct rank rank = {.steps = 0, .is_quoted = same_shape(shape, &quoted)};
    rank.work = (double)shape->batch * shape->heads * shape->seq * shape->seq_kv * shape->dim;
    for (size_t i = 0; i < steps->count; i++) {
        rank.steps += find_step(records, like, steps->items[i]) != NULL;
    }
    return rank;
}

static bool better(struct rank a, struct rank b) {
    if (a.steps != b.steps) {
        return a.steps > b.steps;
    }
    if (a.is_quoted != b.is_quoted) {
        return a.is_quoted;
    }
    return a.work > b.work;
}

/* A line whose device and size all the table's numbers should share, or NULL when no line will do. */
static const struct record *choose(const struct records *records, const struct pass *pass, const struct names *steps,
                                   bool timed) {
    const struct record *best = NULL;
    struct rank best_rank = {.steps = 0};
    for (size_t i = 0; i < records->count; i++) {
        const struct record *candidate = &records->items[i];
        if (strcmp(candidate->pass, pass->name) != 0 || (timed && !isfinite(candidate->ms))) {
            continue;
        }
        struct rank rank = rank_of(records, candidate, steps);
        if (rank.steps > 0 && (best == NULL || better(rank, best_rank))) {
            best = candidate;
            best_rank = rank;
        }
    }
    return best;
}

static bool ran_on_card(const struct records *results) {
    for (size_t i = 0; i < results->count; i++) {
        if (strcmp(results->items[i].device, "sim") != 0) {
            return true;
        }
    }
    return false;
}

/* --- the steps of a table --- */

static void add_name(struct names *names, const char *name) {
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], name) == 0) {
            return;
        }
    }
    names->items = grown(names->items, names->count, &names->capacity, sizeof *names->items);
    names->items[names->count++] = name;
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* A program that stopped before it wrote a line has told nobody its pass; its name has. */
static bool belongs_to(const char *failed_step, const struct pass *pass) {
    const char *guess = strstr(failed_step, "_bwd") != NULL ? "bwd" : "fwd";
    return strcmp(guess, pass->name) == 0;
}

static struct names steps_of(const struct records *results, const struct names *failed, const struct pass *pass) {
    struct names steps = {.items = NULL};
    for (size_t i = 0; i < results->count; i++) {
        if (strcmp(results->items[i].pass, pass->name) == 0) {
            add_name(&steps, results->items[i].step);
        }
    }
    for (size_t i = 0; i < failed->count; i++) {
        if (belongs_to(failed->items[i], pass)) {
            add_name(&steps, failed->items[i]);
        }
    }
    if (steps.count > 0) {
        qsort(steps.items, steps.count, sizeof *steps.items, by_name);
    }
    return steps;
}

static bool contains(const struct names *names, const char *name) {
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* --- cells --- */

enum column { STEP, IDEA, LATENCY, SPEEDUP, TFLOPS, MEMORY, ERROR, CHECK, COLUMNS };

struct row {
    const char *step, *idea;
    char cells[COLUMNS][CELL_SIZE]; /* STEP and IDEA stay empty: they are of any length */
};

/* Three significant digits, never an exponent. */
static void put_number(char cell[CELL_SIZE], double value, const char *unit) {
    if (!isfinite(value)) {
        snprintf(cell, CELL_SIZE, "-");
        return;
    }
    int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : value >= 0.9995 ? 2 : value >= 0.0995 ? 3 : 4;
    snprintf(cell, CELL_SIZE, "%.*f%s", digits, value, unit);
}

static void put_bytes(char cell[CELL_SIZE], double bytes) {
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
    size_t unit = 0;
    while (bytes >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1024;
        unit++;
    }
    if (bytes == 0) {
        snprintf(cell, CELL_SIZE, "none");
    } else if (unit == 0 && isfinite(bytes)) {
        snprintf(cell, CELL_SIZE, "%.0f B", bytes);
    } else {
        put_number(cell, bytes, units[unit]);
    }
}

/* The worst of all the sizes that ran here. */
static void put_check(struct row *row, const struct records *results, const struct pass *pass, bool program_failed) {
    double worst = 0;
    bool checked = false;
    bool wrong = program_failed;
    for (size_t i = 0; i < results->count; i++) {
        const struct record *record = &results->items[i];
        if (strcmp(record->step, row->step) != 0 || strcmp(record->pass, pass->name) != 0) {
            continue;
        }
        row->idea = record->idea != NULL ? record->idea : row->idea;
        if (record->check != CHECK_NOT_DONE) {
            checked = true;
            worst = record->error <= worst ? worst : record->error; /* a NaN wins */
            wrong = wrong || record->check == CHECK_WRONG;
        }
    }
    snprintf(row->cells[ERROR], CELL_SIZE, checked ? "%.1e" : "-", worst);
    snprintf(row->cells[CHECK], CELL_SIZE, "%s", wrong ? "FAILED" : checked ? "ok" : "-");
}

/* Where a table's numbers come from: lines of `records` that are comparable with `like`. */
struct source {
    const struct records *records;
    const struct record *like; /* NULL when there is no number to show */
};

static void put_speed(struct row *row, const struct pass *pass, struct source times) {
    const struct record *mine = find_step(times.records, times.like, row->step);
    const struct record *first = find(times.records, times.like, pass->baseline, strlen(pass->baseline));
    put_number(row->cells[LATENCY], mine != NULL ? mine->ms : (double)NAN, " ms");
    put_number(row->cells[TFLOPS], mine != NULL ? mine->tflops : (double)NAN, "");
    put_number(row->cells[SPEEDUP], mine != NULL && first != NULL ? first->ms / mine->ms : (double)NAN, "x");
    row->idea = mine != NULL && mine->idea != NULL ? mine->idea : "";
}

static void put_memory(struct row *row, struct source sizes) {
    const struct record *mine = find_step(sizes.records, sizes.like, row->step);
    put_bytes(row->cells[MEMORY], mine != NULL ? mine->workspace : (double)NAN);
}

/* --- printing --- */

/* How many columns of a terminal UTF-8 text takes: a code point each, which continuation bytes do not begin. */
static size_t width_of(const char *text, size_t bytes) {
    size_t width = 0;
    for (size_t i = 0; i < bytes; i++) {
        width += ((unsigned char)text[i] & 0xC0U) != 0x80U;
    }
    return width;
}

static void print_left(const char *text, size_t bytes, size_t width) {
    size_t used = width_of(text, bytes);
    printf("%.*s%*s", (int)bytes, text, used < width ? (int)(width - used) : 0, "");
}

/* Bytes of the longest run of whole words that fits; one word at least, so that this ends. */
static size_t fitting_bytes(const char *text, size_t width) {
    size_t fits = 0;
    for (size_t end = strcspn(text, " ");; end += 1 + strcspn(text + end + 1, " ")) {
        if (fits > 0 && width_of(text, end) > width) {
            return fits;
        }
        fits = end;
        if (text[end] == '\0') {
            return fits;
        }
    }
}

static const char *const headings[2][COLUMNS] = {
    {"step", "idea", "latency", "speedup", "TFLOP/s", "extra", "error", "check"},
    {"", "", "", NULL, "", "memory", "", ""}, /* NULL: the pass says over what */
};

static const char *heading(size_t line, size_t column, const struct pass *pass) {
    return headings[line][column] != NULL ? headings[line][column] : pass->baseline_heading;
}

static size_t at_least(size_t width, const char *text) {
    size_t needed = width_of(text, strlen(text));
    return needed > width ? needed : width;
}

static void measure(const struct row *rows, size_t count, const struct pass *pass, size_t widths[COLUMNS]) {
    size_t total = 0;
    for (size_t column = 0; column < COLUMNS; column++) {
        widths[column] = at_least(at_least(0, heading(0, column, pass)), heading(1, column, pass));
        for (size_t i = 0; i < count; i++) {
            const char *text = column == STEP ? rows[i].step : column == IDEA ? rows[i].idea : rows[i].cells[column];
            widths[column] = at_least(widths[column], text);
        }
        total += widths[column] + (column == 0 ? 0 : 2);
    }
    /* The idea gives way, being the only text that can be broken. */
    size_t others = total - widths[IDEA];
    size_t room = others + MIN_IDEA_WIDTH < TABLE_WIDTH ? TABLE_WIDTH - others : MIN_IDEA_WIDTH;
    widths[IDEA] = widths[IDEA] < room ? widths[IDEA] : room;
}

static void print_headings(const struct pass *pass, const size_t widths[COLUMNS]) {
    for (size_t line = 0; line < 2; line++) {
        print_left(heading(line, STEP, pass), strlen(heading(line, STEP, pass)), widths[STEP] + 2);
        print_left(heading(line, IDEA, pass), strlen(heading(line, IDEA, pass)), widths[IDEA]);
        for (size_t column = LATENCY; column <= MEMORY; column++) {
            printf("  %*s", (int)widths[column], heading(line, column, pass));
        }
        if (line == 0) {
            printf("  %*s  %s", (int)widths[ERROR], heading(line, ERROR, pass), heading(line, CHECK, pass));
        }
        putchar('\n');
    }
}

static void print_row(const struct row *row, const size_t widths[COLUMNS]) {
    const char *idea = row->idea;
    size_t bytes = fitting_bytes(idea, widths[IDEA]);
    print_left(row->step, strlen(row->step), widths[STEP]);
    fputs("  ", stdout);
    print_left(idea, bytes, widths[IDEA]);
    for (size_t column = LATENCY; column < CHECK; column++) {
        printf("  %*s", (int)widths[column], row->cells[column]);
    }
    printf("  %s\n", row->cells[CHECK]);
    for (idea += bytes; *idea != '\0'; idea += bytes) {
        idea += strspn(idea, " ");
        bytes = fitting_bytes(idea, widths[IDEA]);
        printf("%*s%.*s\n", (int)widths[STEP] + 2, "", (int)bytes, idea);
    }
}

static void print_size(const struct pass *pass, const struct shape *shape) {
    printf("%s pass, B %d, H %d, N %d", pass->words, shape->batch, shape->heads, shape->seq);
    if (shape->seq_kv != shape->seq) {
        printf(" x %d", shape->seq_kv);
    }
    printf(", d %d%s", shape->dim, shape->causal ? ", causal" : "");
}

static void print_origin(const struct pass *pass, const struct record *like, bool measured_here) {
    if (like == NULL) {
        puts(measured_here ? "Nothing was timed here." : "No recorded measurements of these steps: no latencies.");
        return;
    }
    printf("Latency, speedup, TFLOP/s and memory: %s\n  %s", measured_here ? "measured here, on" : "recorded on",
           like->device);
    const char *const details[] = {like->date, like->toolkit, like->driver};
    static const char *const labels[] = {"", "toolkit ", "driver "};
    for (size_t i = 0; i < 3; i++) {
        if (details[i] != NULL) {
            printf(", %s%s", labels[i], details[i]);
        }
    }
    fputs(";\n  ", stdout);
    print_size(pass, &like->shape);
    puts(measured_here ? "." : ". Nothing was timed here.");
}

static void print_notes(const struct pass *pass, struct source times, struct source sizes, bool on_card) {
    putchar('\n');
    print_origin(pass, times.like, on_card);
    if (times.like == NULL && sizes.like != NULL) {
        fputs("Memory: ", stdout);
        print_size(pass, &sizes.like->shape);
        puts(", as run here.");
    }
    puts("Extra memory: device memory beyond inputs and outputs.");
    printf("Error and check: what ran here%s; the largest relative error of %s over all sizes run.\n",
           on_card ? "" : ", on the simulated device", pass->error_of);
}

static void print_table(const struct records *results, const struct records *recorded, const struct names *failed,
                        const struct pass *pass, const struct names *steps) {
    bool on_card = ran_on_card(results);
    struct source times = {.records = on_card ? results : recorded};
    times.like = choose(times.records, pass, steps, true);
    struct source sizes = times;
    if (times.like == NULL) { /* the memory that a step asks for can be told without a card */
        sizes = (struct source){.records = results, .like = choose(results, pass, steps, false)};
    }

    struct row *rows = calloc(steps->count, sizeof *rows);
    if (rows == NULL) {
        fail("out of memory");
    }
    for (size_t i = 0; i < steps->count; i++) {
        rows[i].step = steps->items[i];
        put_speed(&rows[i], pass, times);
        put_memory(&rows[i], sizes);
        put_check(&rows[i], results, pass, contains(failed, rows[i].step));
    }
    size_t widths[COLUMNS];
    measure(rows, steps->count, pass, widths);
    print_headings(pass, widths);
    for (size_t i = 0; i < steps->count; i++) {
        print_row(&rows[i], widths);
    }
    print_notes(pass, times, sizes, on_card);
    free(rows);
}

static void print_tables(const struct records *results, const struct records *recorded, const struct names *failed) {
    bool any = false;
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
        struct names steps = steps_of(results, failed, &passes[i]);
        if (steps.count > 0) {
            fputs(any ? "\n" : "", stdout);
            print_table(results, recorded, failed, &passes[i], &steps);
            any = true;
        }
        free(steps.items);
    }
    if (!any) {
        puts("No step ran: nothing to show.");
    }
}

/* --- command line --- */

static const char usage[] = "Usage: report [--recorded FILE]... [--failed STEP]... RESULTS.jsonl\n"
                            "Prints a table of the steps whose JSON lines RESULTS.jsonl holds.\n"
                            "\n"
                            "  --recorded FILE  measurements recorded on a card, shown when nothing was timed here\n"
                            "  --failed STEP    a step whose program failed, with or without a line in RESULTS.jsonl\n"
                            "  --help           this text\n";

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"recorded", required_argument, NULL, 'r'},
        {"failed", required_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    static struct records results; /* all zero */
    static struct records recorded;
    static struct names failed;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'r': read_records(optarg, &recorded); break;
        case 'f': add_name(&failed, optarg); break;
        case 'h': fputs(usage, stdout); return EXIT_SUCCESS;
        default: /* getopt_long has said what is wrong */ return EXIT_USAGE;
        }
    }
    if (optind != argc - 1) {
        fail("one results file, please; see report --help");
    }
    read_records(argv[optind], &results);
    print_tables(&results, &recorded, &failed);
    free_records(&results);
    free_records(&recorded);
    free(failed.items);
    return EXIT_SUCCESS;
}
