#include "options.h"

#include "status.h"

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one row per option: it makes the parser's list and the help text ------------------------------------------------- */

struct parser {
    struct options options;
    bool scale_given, size_given, length_given;
    int sequences; /* numbers of --lengths */
};
static int lengths[MAX_SEQUENCES], starts[MAX_SEQUENCES + 1]; /* what struct problem points to */

struct option_row;
typedef void set_option(struct parser *parser, const struct option_row *row, const char *text);
struct option_row {
    const char *name, *argument; /* argument NULL: a flag; in brackets: may be left out */
    const char *help;            /* a row with no name is a heading */
    set_option *set;
    size_t offset;       /* in struct options, for the setters that serve several options */
    long long low, high; /* of a number; low: what a flag becomes */
};

static long long whole_number(const struct option_row *row, const char *text) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0') errx(EXIT_USAGE, "--%s: '%s' is not a whole number", row->name, text);
    if (errno == ERANGE || value < row->low || value > row->high)
        errx(EXIT_USAGE, "--%s: %s is out of range (%lld to %lld)", row->name, text, row->low, row->high);
    return value;
}

static void *field(struct parser *parser, const struct option_row *row) { return (char *)&parser->options + row->offset; }
static void set_int(struct parser *parser, const struct option_row *row, const char *text) {
    *(int *)field(parser, row) = (int)whole_number(row, text);
}
static void set_size(struct parser *parser, const struct option_row *row, const char *text) {
    set_int(parser, row, text);
    parser->size_given = true;
    parser->length_given |=
        row->offset == offsetof(struct options, problem.N_q) || row->offset == offsetof(struct options, problem.N_kv);
}
static void set_flag(struct parser *parser, const struct option_row *row, const char *text) {
    (void)text;
    *(bool *)field(parser, row) = row->low != 0;
}
static void set_text(struct parser *parser, const struct option_row *row, const char *text) {
    *(const char **)field(parser, row) = text;
}

static void set_seed(struct parser *parser, const struct option_row *row, const char *text) {
    parser->options.seed = (uint64_t)whole_number(row, text);
}

static void set_scale(struct parser *parser, const struct option_row *row, const char *text) {
    char *end;
    float value = strtof(text, &end);
    if (end == text || *end != '\0' || !isfinite(value)) errx(EXIT_USAGE, "--%s: '%s' is not a finite number", row->name, text);
    parser->options.problem.scale = value;
    parser->scale_given = true;
}

static void set_fraction(struct parser *parser, const struct option_row *row, const char *text) {
    char *end;
    float value = strtof(text, &end);
    bool inside = value >= 0.0f && (row->high == 1 ? value < 1.0f : isfinite(value));
    if (end == text || *end != '\0' || !inside || (value == 0.0f && row->low > 0))
        errx(EXIT_USAGE, "--%s: '%s' is not a number %s 0%s", row->name, text, row->low > 0 ? "above" : "from",
             row->high == 1 ? " to just below 1" : "");
    *(float *)field(parser, row) = value;
}

/* Numbers with commas between them into the caller's array of `room`; returns how many. */
static int set_numbers(const struct option_row *row, const char *all, int *numbers, int room) {
    char *rest = strdup(all), *piece;
    int count = 0;
    while ((piece = strsep(&rest, ",")) != NULL) {
        if (count == room) errx(EXIT_USAGE, "--%s: more than %d numbers", row->name, room);
        if (*piece == '\0') errx(EXIT_USAGE, "--%s: '%s' is not a list of whole numbers", row->name, all);
        numbers[count++] = (int)whole_number(row, piece);
    }
    return count;
}

static void set_window(struct parser *parser, const struct option_row *row, const char *text) {
    int numbers[2];
    struct problem *problem = &parser->options.problem;
    if (set_numbers(row, text, numbers, 2) != 2) errx(EXIT_USAGE, "--window needs two numbers, LEFT,RIGHT");
    problem->windowed = true;
    problem->left = numbers[0], problem->right = numbers[1];
}

static void set_lengths(struct parser *parser, const struct option_row *row, const char *text) {
    parser->sequences = set_numbers(row, text, lengths, MAX_SEQUENCES);
    parser->size_given = true;
}

/* Which of `count` names the text is. */
static int choice(const struct option_row *row, const char *text, const char *const *names, int count) {
    char all[80] = "";
    for (int i = 0; i < count; i++) {
        if (strcmp(text, names[i]) == 0) return i;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i > 0 ? ", " : "", names[i]);
    }
    errx(EXIT_USAGE, "--%s: '%s' is none of %s", row->name, text, all);
}
static void set_rotary(struct parser *parser, const struct option_row *row, const char *text) {
    const char *const names[] = {"interleaved", "halved"};
    parser->options.problem.rotary = INTERLEAVED + (enum rotary)choice(row, text, names, 2);
}
static void set_alibi(struct parser *parser, const struct option_row *row, const char *text) {
    (void)text;
    parser->options.problem.alibi = (enum alibi)row->low;
}
static void set_dtype(struct parser *parser, const struct option_row *row, const char *text) {
    parser->options.problem.dtype = (enum dtype)choice(row, text, dtype_names, DTYPES);
}
static void set_fp8(struct parser *parser, const struct option_row *row, const char *text) {
    const char *const names[] = {"e4m3", "e5m2"};
    parser->options.problem.fp8 = (enum fp8)choice(row, text, names, 2);
}
static void set_scales(struct parser *parser, const struct option_row *row, const char *text) {
    const char *const names[] = {"tensor", "head", "block"};
    parser->options.problem.scales = (enum scales)choice(row, text, names, 3);
}
static void set_input(struct parser *parser, const struct option_row *row, const char *text) {
    parser->options.input = (enum input_kind)choice(row, text, input_names, INPUT_KINDS);
}

static void set_pass(struct parser *parser, const struct option_row *row, const char *text) {
    struct passes *passes = &parser->options.passes;
    bool both = strcmp(text, "both") == 0;
    passes->forward = both || strcmp(text, "fwd") == 0;
    passes->backward = both || strcmp(text, "bwd") == 0;
    if (!passes->forward && !passes->backward) errx(EXIT_USAGE, "--%s: '%s' is none of fwd, bwd, both", row->name, text);
}

static void set_meter(struct parser *parser, const struct option_row *row, const char *text) {
    parser->options.meter = true;
    parser->options.meter_source = text != NULL;
    if (text != NULL && strcmp(text, "source") != 0)
        errx(EXIT_USAGE, "--%s=%s: only --meter and --meter=source are known", row->name, text);
}

static void add_stamp(struct parser *parser, const struct option_row *row, const char *text) {
    struct options *options = &parser->options;
    if (strchr(text, '=') == NULL || *text == '=') errx(EXIT_USAGE, "--%s: '%s' is not KEY=VALUE", row->name, text);
    if (options->stamp_count == MAX_STAMPS) errx(EXIT_USAGE, "--%s: at most %d", row->name, MAX_STAMPS);
    options->stamps[options->stamp_count++] = text;
}

#define AT(member) offsetof(struct options, member)
static const struct option_row rows[] = {
    {.help = "The problem (docs/math.md, eq. 1-3):"},
    {"batch", "B", "batch size (1)", set_size, AT(problem.batch), 1, INT_MAX},
    {"heads", "H", "heads (2)", set_size, AT(problem.heads), 1, INT_MAX},
    {"heads-kv", "G", "heads of K and V, which divide H; head h reads those of h / (H / G) (H)", set_size, AT(problem.heads_kv),
     1, INT_MAX},
    {"seq", "N", "queries, and keys unless --seq-kv is given (256)", set_size, AT(problem.N_q), 1, MAX_LENGTH},
    {"seq-kv", "M", "keys and values", set_size, AT(problem.N_kv), 1, MAX_LENGTH},
    {"dim", "D", "head dimension, 1 to 128 (64)", set_size, AT(problem.d), 1, INT_MAX},
    {"causal", NULL, "query i attends to key j where j <= i + M - N", set_flag, AT(problem.causal), true, 0},
    {"window", "L,R", "query i attends to key j where -L <= j - (i + M - N) <= R; -1: all on this side", set_window, 0, -1,
     MAX_LENGTH},
    {"softcap", "C", "a score s becomes C tanh(s / C)", set_fraction, AT(problem.softcap), 1, 0},
    {"alibi", NULL, "a score falls by 2^(-8 (h + 1) / H) per key of distance in head h", set_alibi, 0, ONE_FORMULA, 0},
    {"alibi-released", NULL, "the same with the released code's slopes where H is no power of 2", set_alibi, 0, RELEASED_RULE,
     0},
    {"dropout", "P", "each weight is dropped with this probability; --seed draws which", set_fraction, AT(problem.dropout), 0,
     1},
    {"rotary", "KIND", "rotate Q and K by their positions: pairs interleaved or halved", set_rotary, 0, 0, 0},
    {"lengths", "LIST", "packed sequences of these lengths, as in 5,0,37; with --page-size, keys of each sequence", set_lengths,
     0, 0, MAX_LENGTH},
    {"page-size", "K", "keys per page of K and V, 16 to 256: a cache in pages (none)", set_size, AT(problem.page_size), 1,
     1 << 20},
    {"devices", "P", "share the rows among this many devices (1)", set_int, AT(problem.devices), 1, INT_MAX},
    {"scale", "S", "what scores are multiplied by (1/sqrt(D))", set_scale, 0, 0, 0},
    {"dtype", "TYPE", "fp32, fp16, bf16 or fp8, as far as the step takes them", set_dtype, 0, 0, 0},
    {"fp8", "TYPE", "of Q, K and V in fp8: e4m3 or e5m2 (e4m3)", set_fp8, 0, 0, 0},
    {"scales", "OF", "in fp8 a scale of each tensor, head or block of 128 rows (tensor)", set_scales, 0, 0, 0},
    {"input", "KIND", "random, identity, large, outliers, sink, flat, or example, the 4 x 4 case of docs/math.md (random)",
     set_input, 0, 0, 0},
    {"seed", "S", "of the random inputs (1)", set_seed, 0, 0, LLONG_MAX},
    {.help = "What to do with it:"},
    {"pass", "PASS", "fwd, bwd or both, as far as the step has them (fwd; bwd for a backward step)", set_pass, 0, 0, 0},
    {"deterministic", NULL, "the step's backward pass whose result is the same, bit for bit, in every run", set_flag,
     AT(passes.deterministic), true, 0},
    {"warmup", "W", "runs before the timed ones (5)", set_int, AT(warmup), 0, 100000},
    {"repeat", "R", "timed runs (20)", set_int, AT(repeat), 1, 100000},
    {"no-check", NULL, "do not compare with the reference", set_flag, AT(check), false, 0},
    {"no-time", NULL, "do not time", set_flag, AT(time), false, 0},
    {"print", NULL, "show a 3 x 3 corner of each matrix", set_flag, AT(print), true, 0},
    {"json", "FILE", "append a JSON line to FILE; - is standard output", set_text, AT(json), 0, 0},
    {"stamp", "KEY=VAL", "add a text field to the JSON line; may be repeated", add_stamp, 0, 0, 0},
    {"describe", NULL, "only print, as a line of JSON, what the step is and takes; nothing runs", set_flag, AT(describe), true,
     0},
    {.help = "On the simulated device only:"},
    {"meter", "[source]", "what the kernels did to memory, as a table or beside their source; all of it in --json", set_meter,
     0, 0, 0},
    {"meter-blocks", "N", "meter one block in N (1)", set_int, AT(meter_every), 1, INT_MAX},
    {"trace", "FILE", "write each launch's geometry and the accesses and barriers of its first block to FILE, as JSON",
     set_text, AT(trace), 0, 0},
    {"trace-blocks", "LIST", "trace these blocks instead, as in 0,3 (blockIdx.x fastest)", set_text, AT(trace_blocks), 0, 0},
    {"shuffle-seed", "S", "run blocks and warps in another order (0: the natural one)", set_int, AT(shuffle_seed), 0, INT_MAX},
};
enum { ROWS = sizeof rows / sizeof *rows, HELP = 1 << 10 };

static _Noreturn void print_help(const struct step *step) {
    printf("Usage: %s [options]\n%s.\n", step->name, step->idea);
    for (int i = 0; i < ROWS; i++) {
        char spelled[40];
        const char *argument = rows[i].argument;
        if (rows[i].name == NULL) {
            printf("\n%s\n", rows[i].help);
            continue;
        }
        if (argument != NULL && argument[0] == '[')
            snprintf(spelled, sizeof spelled, "--%s[=%s", rows[i].name, argument + 1);
        else
            snprintf(spelled, sizeof spelled, "--%s %s", rows[i].name, argument != NULL ? argument : "");
        printf("  %-16s %s\n", spelled, rows[i].help);
    }
    puts("\n  --help           this text\n\n"
         "Exit status: 0 all checks passed, 1 a result is wrong, 2 bad usage or unsupported size, 3 the device failed.");
    exit(0);
}

static void read_arguments(int argc, char **argv, const struct step *step, struct parser *parser) {
    struct option long_options[ROWS + 2] = {{"help", no_argument, NULL, HELP}};
    int count = 1;
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].name == NULL) continue;
        int argument = rows[i].argument == NULL     ? no_argument
                       : rows[i].argument[0] == '[' ? optional_argument
                                                    : required_argument;
        long_options[count++] = (struct option){rows[i].name, argument, NULL, HELP + 1 + i};
    }
    opterr = 0; /* the messages are ours, so that each is one line */
    optind = 0; /* from the beginning, at a second call, too */
    for (int code; (code = getopt_long(argc, argv, ":", long_options, NULL)) != -1;) {
        if (code == ':') errx(EXIT_USAGE, "%s needs a value (see --help)", argv[optind - 1]);
        if (code < HELP) errx(EXIT_USAGE, "%s is not an option (see --help)", argv[optind - 1]);
        if (code == HELP) print_help(step);
        const struct option_row *row = &rows[code - HELP - 1];
        row->set(parser, row, optarg);
    }
    if (optind < argc) errx(EXIT_USAGE, "'%s' is not an option (see --help)", argv[optind]);
}

/* --lengths and --page-size: packed sequences, or a cache of which each sequence of the batch uses a part. */
static void make_sequences(struct parser *parser) {
    struct problem *problem = &parser->options.problem;
    int longest = 0;
    long long total = 0;
    if (problem->page_size > 0 && parser->sequences == 0) {
        if (problem->batch > MAX_SEQUENCES) errx(EXIT_USAGE, "--page-size: at most %d sequences", MAX_SEQUENCES);
        if (problem->N_kv == 0) problem->N_kv = problem->N_q;
        for (parser->sequences = 0; parser->sequences < problem->batch; parser->sequences++)
            lengths[parser->sequences] = problem->N_kv;
    }
    for (int s = 0; s < parser->sequences; s++) {
        total += lengths[s];
        if (lengths[s] > longest) longest = lengths[s];
    }
    if (problem->page_size > 0) {
        if (problem->batch != 1 && problem->batch != parser->sequences)
            errx(EXIT_USAGE, "--lengths has %d numbers, and --batch is %d", parser->sequences, problem->batch);
        problem->batch = parser->sequences;
        if (problem->N_kv == 0) problem->N_kv = longest > 0 ? longest : 1;
        if (longest > problem->N_kv) errx(EXIT_USAGE, "--lengths: %d keys do not fit into --seq-kv %d", longest, problem->N_kv);
        problem->lengths = lengths;
        return;
    }
    if (problem->batch != 1 || parser->length_given)
        errx(EXIT_USAGE, "--lengths says how many queries and keys there are: not with --batch, --seq or --seq-kv");
    if (total < 1 || total > MAX_LENGTH)
        errx(EXIT_USAGE, "--lengths adds up to %lld: it must be from 1 to %d", total, MAX_LENGTH);
    problem->N_q = problem->N_kv = (int)total;
    problem->sequences = parser->sequences;
    problem->longest = longest;
    for (int s = 0; s < parser->sequences; s++) starts[s + 1] = starts[s] + lengths[s];
    problem->starts = starts;
}

struct options parse_options(int argc, char **argv, const struct step *step) {
    struct parser parser = {
        .options = {
            .problem = {.dtype = usual_dtype(step), .batch = 1, .heads = 2, .N_q = 256, .N_kv = 0, .d = 64, .devices = 1},
            .seed = 1,
            .passes = {.forward = step->forward != NULL, .backward = step->forward == NULL},
            .warmup = 5,
            .repeat = 20,
            .meter_every = 1,
            .check = true,
            .time = true}};
    parser.options.problem.hadamard = step->hadamard;
    read_arguments(argc, argv, step, &parser);
    struct options *options = &parser.options;
    struct problem *problem = &options->problem;
    if (options->input == INPUT_EXAMPLE) {
        if (parser.size_given) errx(EXIT_USAGE, "--input example has a size of its own: 1 head, 4 x 4, d 4");
        if (!parser.scale_given) problem->scale = example_problem.scale;
        parser.scale_given = true;
        problem->heads = 1;
        problem->N_q = problem->N_kv = problem->d = 4;
    }
    if (parser.sequences > 0 || problem->page_size > 0) make_sequences(&parser);
    if (problem->N_kv == 0) problem->N_kv = problem->N_q;
    if (problem->windowed) { /* -1, and what is beyond all keys */
        int all = problem->N_q <= MAX_LENGTH && problem->N_kv <= MAX_LENGTH ? problem->N_q + problem->N_kv : MAX_LENGTH;
        if (problem->left < 0 || problem->left > all) problem->left = all;
        if (problem->right < 0 || problem->right > all) problem->right = all;
    }
    problem->dropout_seed = options->seed;
    if (!parser.scale_given) problem->scale = 1.0f / sqrtf((float)problem->d);
    return *options;
}
