#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: %s [options]\n"
    "%s.\n"
    "\n"
    "The problem (docs/math.md, eq. 1-3):\n"
    "  --batch B        batch size (1)\n"
    "  --heads H        heads (2)\n"
    "  --seq N          queries, and keys unless --seq-kv is given (256)\n"
    "  --seq-kv M       keys and values\n"
    "  --dim D          head dimension, 1 to 128 (64)\n"
    "  --causal         query i sees key j where j <= i + M - N\n"
    "  --scale S        what scores are multiplied by (1/sqrt(D))\n"
    "  --input KIND     random, identity or large (random)\n"
    "  --seed S         of the random inputs (1)\n"
    "\n"
    "What to do with it:\n"
    "  --pass PASS      fwd, bwd or both, as far as the step has them (fwd; bwd for a backward step)\n"
    "  --deterministic  the step's backward pass whose result is the same, bit for bit, in every run\n"
    "  --warmup W       runs before the timed ones (5)\n"
    "  --repeat R       timed runs (20)\n"
    "  --no-check       do not compare with the reference\n"
    "  --no-time        do not time\n"
    "  --print          show a 3 x 3 corner of each matrix\n"
    "  --json FILE      append a JSON line to FILE; - is standard output\n"
    "  --stamp KEY=VAL  add a text field to the JSON line; may be repeated\n"
    "\n"
    "On the simulated device only:\n"
    "  --meter[=source] what the kernels did to memory, as a table or beside their source; all of it in --json\n"
    "  --meter-blocks N meter one block in N (1)\n"
    "  --shuffle-seed S run blocks in another order (0: the natural one)\n"
    "\n"
    "  --help           this text\n"
    "\n"
    "Exit status: 0 all checks passed, 1 a result is wrong, 2 bad usage or unsupported size, 3 the device failed.\n";

enum option_code {
    OPT_BATCH = 256,
    OPT_HEADS,
    OPT_SEQ,
    OPT_SEQ_KV,
    OPT_DIM,
    OPT_CAUSAL,
    OPT_SCALE,
    OPT_SEED,
    OPT_INPUT,
    OPT_PASS,
    OPT_DETERMINISTIC,
    OPT_WARMUP,
    OPT_REPEAT,
    OPT_NO_CHECK,
    OPT_NO_TIME,
    OPT_PRINT,
    OPT_METER,
    OPT_METER_BLOCKS,
    OPT_SHUFFLE_SEED,
    OPT_JSON,
    OPT_STAMP,
    OPT_HELP
};

static const struct option long_options[] = {
    {"batch", required_argument, NULL, OPT_BATCH},
    {"heads", required_argument, NULL, OPT_HEADS},
    {"seq", required_argument, NULL, OPT_SEQ},
    {"seq-kv", required_argument, NULL, OPT_SEQ_KV},
    {"dim", required_argument, NULL, OPT_DIM},
    {"causal", no_argument, NULL, OPT_CAUSAL},
    {"scale", required_argument, NULL, OPT_SCALE},
    {"seed", required_argument, NULL, OPT_SEED},
    {"input", required_argument, NULL, OPT_INPUT},
    {"pass", required_argument, NULL, OPT_PASS},
    {"deterministic", no_argument, NULL, OPT_DETERMINISTIC},
    {"warmup", required_argument, NULL, OPT_WARMUP},
    {"repeat", required_argument, NULL, OPT_REPEAT},
    {"no-check", no_argument, NULL, OPT_NO_CHECK},
    {"no-time", no_argument, NULL, OPT_NO_TIME},
    {"print", no_argument, NULL, OPT_PRINT},
    {"meter", optional_argument, NULL, OPT_METER},
    {"meter-blocks", required_argument, NULL, OPT_METER_BLOCKS},
    {"shuffle-seed", required_argument, NULL, OPT_SHUFFLE_SEED},
    {"json", required_argument, NULL, OPT_JSON},
    {"stamp", required_argument, NULL, OPT_STAMP},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static const char *const input_names[] = {"random", "identity", "large"};

const char *input_name(enum input_kind kind) { return input_names[kind]; }

_Noreturn void usage_error(const char *program, const char *format, ...) {
    va_list arguments;
    fprintf(stderr, "%s: ", program);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

static long long parse_integer(const char *program, const char *option, const char *text, long long low,
                               long long high) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0') usage_error(program, "--%s: '%s' is not a whole number", option, text);
    if (errno == ERANGE || value < low || value > high)
        usage_error(program, "--%s: %s is out of range (%lld to %lld)", option, text, low, high);
    return value;
}

static float parse_scale(const char *program, const char *text) {
    char *end;
    float value = strtof(text, &end);
    if (end == text || *end != '\0' || !isfinite(value))
        usage_error(program, "--scale: '%s' is not a finite number", text);
    return value;
}

static enum input_kind parse_input(const char *program, const char *text) {
    for (int i = 0; i < 3; i++)
        if (strcmp(text, input_names[i]) == 0) return (enum input_kind)i;
    usage_error(program, "--input: '%s' is none of random, identity, large", text);
}

static void parse_pass(const char *program, const char *text, const struct step *step, struct options *options) {
    bool both = strcmp(text, "both") == 0;
    options->forward = both || strcmp(text, "fwd") == 0;
    options->backward = both || strcmp(text, "bwd") == 0;
    if (!options->forward && !options->backward) usage_error(program, "--pass: '%s' is none of fwd, bwd, both", text);
    if (options->backward && step->backward == NULL)
        usage_error(program, "--pass %s: this step has no backward pass", text);
    if (options->forward && !both && step->forward == NULL)
        usage_error(program, "--pass %s: this step has no forward pass", text);
}

struct options parse_options(int argc, char **argv, const struct step *step) {
    struct options options = {
        .problem = {.batch = 1, .heads = 2, .N_q = 256, .N_kv = 0, .d = 64},
        .seed = 1,
        .forward = step->forward != NULL,
        .backward = step->forward == NULL,
        .warmup = 5,
        .repeat = 20,
        .meter_every = 1,
        .check = true,
        .time = true,
    };
    const char *program = step->name;
    bool scale_given = false;
    opterr = 0; /* the messages are ours, so that each is one line */
    for (int code; (code = getopt_long(argc, argv, ":", long_options, NULL)) != -1;) {
        switch (code) {
        case OPT_BATCH: options.problem.batch = (int)parse_integer(program, "batch", optarg, 1, INT_MAX); break;
        case OPT_HEADS: options.problem.heads = (int)parse_integer(program, "heads", optarg, 1, INT_MAX); break;
        case OPT_SEQ: options.problem.N_q = (int)parse_integer(program, "seq", optarg, 1, 1 << 24); break;
        case OPT_SEQ_KV: options.problem.N_kv = (int)parse_integer(program, "seq-kv", optarg, 1, 1 << 24); break;
        case OPT_DIM: options.problem.d = (int)parse_integer(program, "dim", optarg, 1, INT_MAX); break;
        case OPT_CAUSAL: options.problem.causal = true; break;
        case OPT_SCALE:
            options.problem.scale = parse_scale(program, optarg);
            scale_given = true;
            break;
        case OPT_SEED: options.seed = (uint64_t)parse_integer(program, "seed", optarg, 0, LLONG_MAX); break;
        case OPT_INPUT: options.input = parse_input(program, optarg); break;
        case OPT_PASS: parse_pass(program, optarg, step, &options); break;
        case OPT_DETERMINISTIC: options.deterministic = true; break;
        case OPT_WARMUP: options.warmup = (int)parse_integer(program, "warmup", optarg, 0, 100000); break;
        case OPT_REPEAT: options.repeat = (int)parse_integer(program, "repeat", optarg, 1, 100000); break;
        case OPT_NO_CHECK: options.check = false; break;
        case OPT_NO_TIME: options.time = false; break;
        case OPT_PRINT: options.print = true; break;
        case OPT_METER:
            options.meter = true;
            options.meter_source = optarg != NULL;
            if (optarg != NULL && strcmp(optarg, "source") != 0)
                usage_error(program, "--meter=%s: only --meter and --meter=source are known", optarg);
            break;
        case OPT_METER_BLOCKS:
            options.meter_every = (int)parse_integer(program, "meter-blocks", optarg, 1, INT_MAX);
            break;
        case OPT_SHUFFLE_SEED:
            options.shuffle_seed = (unsigned)parse_integer(program, "shuffle-seed", optarg, 0, UINT_MAX);
            break;
        case OPT_JSON: options.json = optarg; break;
        case OPT_STAMP:
            if (strchr(optarg, '=') == NULL || *optarg == '=')
                usage_error(program, "--stamp: '%s' is not KEY=VALUE", optarg);
            if (options.stamp_count == MAX_STAMPS) usage_error(program, "--stamp: at most %d", MAX_STAMPS);
            options.stamps[options.stamp_count++] = optarg;
            break;
        case OPT_HELP: printf(help, program, step->idea); exit(0);
        case ':': usage_error(program, "%s needs a value (see --help)", argv[optind - 1]);
        default: usage_error(program, "%s is not an option (see --help)", argv[optind - 1]);
        }
    }
    if (optind < argc) usage_error(program, "'%s' is not an option (see --help)", argv[optind]);
    if (options.deterministic && (!options.backward || step->backward_deterministic == NULL))
        usage_error(program, "--deterministic: this step has no such backward pass");
    if (options.problem.N_kv == 0) options.problem.N_kv = options.problem.N_q;
    if (!scale_given) options.problem.scale = 1.0f / sqrtf((float)options.problem.d);
    return options;
}
