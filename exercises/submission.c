#include "submission.h"

#include "process.h"
#include "task.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_REFUSED = 4, COMPILE_SECONDS = 25, COMPILE_CPU_SECONDS = 10, RUN_SECONDS = 20, MESSAGE_BYTES = 1 << 16 };

static const struct limits compile_limits = {COMPILE_SECONDS, COMPILE_CPU_SECONDS, (size_t)4 << 30, MESSAGE_BYTES};

/* Where programs are built: elsewhere for somebody who cannot write to the build folder. */
static const char *scratch_folder(void) {
    const char *chosen = getenv("EXERCISES_FOLDER");
    return chosen != NULL && *chosen != '\0' ? chosen : BUILD "/submissions";
}

/* ---- what it may call ----------------------------------------------------------------------------------------------- */

/* The functions of <math.h> and of the simulated device, which the headers' device functions compile to. cuda*: of the
 * host part, which is ours; the lexer keeps these names out of the holes. */
static bool may_call(const char *name) {
    static const char *const prefixes[] = {"__tsan_", "simt_", "cuda"};
    static const char words[] =
        " _GLOBAL_OFFSET_TABLE_ __gxx_personality_v0 _Unwind_Resume __sanitizer_cov_trace_pc __stack_chk_fail"
        " threadIdx blockIdx blockDim gridDim warpSize printf puts putchar __assert_fail"
        " acosf asinf atanf atan2f cbrtf ceilf copysignf cosf coshf erff erfcf expf exp2f exp10f expm1f fabsf fdimf "
        "floorf fmaf"
        " fmaxf fminf fmodf frexpf hypotf ldexpf lgammaf logf log2f log10f log1pf lrintf nearbyintf powf rintf roundf "
        "sinf"
        " sinhf sqrtf tanf tanhf tgammaf truncf sincosf exp exp2 log log2 fma fmax fmin fabs sqrt pow floor ceil ";
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return true;
    char wanted[128];
    snprintf(wanted, sizeof wanted, " %.100s ", name);
    return strstr(words, wanted) != NULL;
}

/* What the object file calls and keeps, against what device code may: NULL, or the reason to refuse it. */
static char *refuse_object(const char *object) {
    const char *const command[] = {"nm", "-C", object, NULL}, *const raw[] = {"nm", object, NULL};
    struct outcome names = run_program(raw, compile_limits, -1), readable = run_program(command, compile_limits, -1);
    char *reason = NULL, *rest = names.output, *rest_readable = readable.output;
    if (names.status != 0 || names.too_long || readable.too_long) reason = strdup("nm cannot read the object file");
    for (char *line; reason == NULL && (line = strsep(&rest, "\n")) != NULL;) {
        char *shown = strsep(&rest_readable, "\n"), kind, name[256];
        bool undefined = sscanf(line, " U %255s", name) == 1;
        if (undefined && !may_call(name)) {
            shown = shown == NULL ? name : shown + strspn(shown, " U");
            if (asprintf(&reason, "it calls %s, which is no function of kernels", shown) < 0) abort();
        }
        if (undefined || sscanf(line, "%*x %c %255s", &kind, name) != 2) continue;
        if (strncmp(name, "_GLOBAL__sub_I", 14) == 0) reason = strdup("it runs code before the program begins");
        if (strchr("BbDdCSsuVv", kind) != NULL && strncmp(name, "step_", 5) != 0 && strncmp(name, "DW.ref.", 7) != 0)
            if (asprintf(&reason, "it keeps data between launches, in %s", shown + strcspn(shown, "bBdDcCsSuvV") + 2) <
                0)
                abort();
    }
    free(names.output);
    free(readable.output);
    return reason;
}

/* ---- build ---------------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *text, uint64_t hash) { /* FNV-1a */
    for (; *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

/* Over the text, every device header and the simulated device. */
static uint64_t fingerprint(const char *text, const char *shown, const char *kernel_folder) {
    uint64_t hash = hash_of(text, hash_of(shown, 0xcbf29ce484222325u));
    char pattern[600];
    snprintf(pattern, sizeof pattern, "%s/*.cuh", kernel_folder);
    glob_t found = {0};
    glob("common/*.cuh", 0, NULL, &found);
    glob("common/*.h", GLOB_APPEND, NULL, &found);
    glob("common/simt/include/*", GLOB_APPEND, NULL, &found);
    glob(pattern, GLOB_APPEND, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *header = read_text(found.gl_pathv[i]);
        if (header != NULL) hash = hash_of(header, hash);
        free(header);
    }
    globfree(&found);
    static const char *const parts[] = {CHILD_LIBRARY, HARNESS_LIBRARY, SIMT_LIBRARY};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct stat part;
        if (stat(parts[i], &part) != 0) continue;
        char when[64];
        snprintf(when, sizeof when, "%lld.%ld", (long long)part.st_mtim.tv_sec, part.st_mtim.tv_nsec);
        hash = hash_of(when, hash);
    }
    return hash;
}

/* The name after "const step " where the struct is defined. */
static bool find_symbol(const char *text, char *name, size_t room) {
    const char *at = strstr(text, "\nextern \"C\" const step ");
    if (at == NULL) return false;
    at += strlen("\nextern \"C\" const step ");
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_') length++;
    snprintf(name, room, "%.*s", (int)length, at);
    return length > 0;
}

/* Messages name the lines of the file that the reader edits. */
static bool write_text(const char *path, const char *shown, const char *text) {
    FILE *file = fopen(path, "w");
    if (file == NULL) return false;
    bool written = fprintf(file, "#line 1 \"%s\"\n%s", shown, text) > 0;
    return fclose(file) == 0 && written;
}

/* The first errors of the compiler, each with its line of source. */
static char *first_errors(struct outcome outcome) {
    if (outcome.timed_out || strstr(outcome.output, "signal terminated program") != NULL)
        return strdup("the compiler needed more than 10 s or 4 GB");
    char *kept = calloc(1, MESSAGE_BYTES + 64), *rest = outcome.output, *line;
    int more = 0, errors = 0;
    while ((line = strsep(&rest, "\n")) != NULL && errors < 4) {
        if (strstr(line, "error: ") != NULL)
            more = 2, errors++;
        else if (strchr("|", line[strspn(line, " 0123456789")]) == NULL)
            more = 0;
        if (more-- > 0) strcat(strncat(kept, line, 400), "\n");
    }
    if (*kept == '\0') strcpy(kept, "the compiler failed");
    return kept;
}

/* Programs of earlier calls are kept for ten minutes. */
static void forget_programs(void) {
    char pattern[600];
    snprintf(pattern, sizeof pattern, "%s/*", scratch_folder());
    glob_t found = {0};
    struct stat file;
    glob(pattern, 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (stat(found.gl_pathv[i], &file) == 0 && time(NULL) - file.st_mtime > 600) unlink(found.gl_pathv[i]);
    globfree(&found);
}

char *build_submission(const char *text, const char *file, const char *shown, bool confined, char **message) {
    char kernel_folder[512], base[600], source[640], object[640], include[520], symbol[128], define[200];
    *message = NULL;
    snprintf(kernel_folder, sizeof kernel_folder, "%.*s", (int)(strrchr(file, '/') - file), file);
    if (!find_symbol(text, symbol, sizeof symbol)) {
        *message = strdup("there is no struct step in it");
        return NULL;
    }
    mkdir(scratch_folder(), 0777);
    snprintf(base, sizeof base, "%s/%016" PRIx64, scratch_folder(), fingerprint(text, shown, kernel_folder));
    if (confined)
        snprintf(base + strlen(base), sizeof base - strlen(base), ".%d", (int)getpid()); /* one grading's own */
    char *program = strdup(base);
    if (access(program, X_OK) == 0) return program;
    forget_programs();
    snprintf(source, sizeof source, "%s.cu", base);
    snprintf(object, sizeof object, "%s.o", base);
    snprintf(include, sizeof include, "-I%s", kernel_folder);
    snprintf(define, sizeof define, "-Wl,--defsym=submitted_step=%s", symbol);
    if (!write_text(source, shown, text)) {
        fprintf(stderr, "run.sh: cannot write %s: %s\n", source, strerror(errno));
        exit(3);
    }
    const char *const compile[] = {
        BUILD "/bin/simt-nvcc",      "-c",       "-std=c++20", "-w",   "-Xcompiler", "-g1",  "-fmax-errors=4",
        "-fdiagnostics-color=never", "-Icommon", include,      source, "-o",         object, NULL};
    char part[680];
    snprintf(part, sizeof part, "%s.%d", base, (int)getpid());
    const char *const link[] = {"c++",          object,
                                define,         "-o",
                                part,           "-Wl,--start-group",
                                CHILD_LIBRARY,  HARNESS_LIBRARY,
                                SIMT_LIBRARY,   "-Wl,--end-group",
                                LINK_LIBRARIES, NULL};
    struct outcome outcome = run_program(compile, compile_limits, -1);
    if (outcome.status != 0 || outcome.too_long) *message = first_errors(outcome);
    free(outcome.output);
    if (*message == NULL && confined) *message = refuse_object(object);
    if (*message == NULL) {
        outcome = run_program(link, compile_limits, -1);
        if (outcome.status != 0) *message = strdup(outcome.output);
        free(outcome.output);
    }
    unlink(object);
    unlink(source);
    if (*message == NULL && rename(part, program) == 0) return program;
    free(program);
    return NULL;
}

/* ---- run ------------------------------------------------------------------------------------------------------------ */

/* bubblewrap: the file system read-only, an empty /tmp, no network, no other processes. */
#define SANDBOX                                                                                                        \
    "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--unshare-all",            \
        "--die-with-parent", "--new-session"

bool sandbox_works(void) {
    static int works = -1;
    if (works < 0) {
        const char *const command[] = {SANDBOX, "true", NULL};
        struct outcome outcome = run_program(command, (struct limits){10, 10, 0, MESSAGE_BYTES}, -1);
        works = outcome.status == 0;
        free(outcome.output);
    }
    return works;
}

/* With so many numbers as arguments, or with none. */
static struct outcome run_guarded(const char *program, char numbers[][32], int number_count, int results) {
    const char *argv[40] = {SANDBOX, "--ro-bind", program, program, program}; /* it may lie in /tmp itself */
    int count = 0;
    if (!sandbox_works()) argv[0] = program, argv[1] = NULL;
    while (argv[count] != NULL) count++;
    for (int i = 0; i < number_count; i++) argv[count++] = numbers[i];
    setenv("SIMT_WATCHDOG_SECONDS", "5", 1);
    setenv("SIMT_THREADS", "1", 1); /* blocks run in one order, so that a report is the same each time */
    return run_program(argv, (struct limits){RUN_SECONDS, RUN_SECONDS, (size_t)16 << 30, MESSAGE_BYTES}, results);
}

void describe_submission(const char *program, bool *backward, enum dtype *dtype) {
    struct outcome outcome = run_guarded(program, NULL, 0, -1);
    int numbers[2] = {false, FP32};
    if (outcome.status == 0) sscanf(outcome.output, "%d %d", &numbers[0], &numbers[1]);
    *backward = numbers[0] != 0;
    *dtype = (enum dtype)numbers[1];
    free(outcome.output);
}

/* What the program wrote: the line, the outputs, the meter. False where something is missing. */
static bool read_results(FILE *file, struct submission_run *result, bool backward, bool meter) {
    char line[64];
    if (fgets(line, sizeof line, file) == NULL) return false;
    if (strcmp(line, "ok\n") != 0) {
        result->ending = FAULTED;
        return true;
    }
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        if (!is_output(tensor) || (is_backward(tensor) && !backward)) continue;
        size_t elements = tensor_elements(&result->run.problem, tensor);
        if (fread(result->run.host[tensor], sizeof(float), elements, file) != elements) return false;
    }
    char *text = calloc(1, 1 << 22);
    if (meter && text != NULL && fread(text, 1, (1 << 22) - 1, file) > 0) result->meter = cJSON_Parse(text);
    free(text);
    result->ending = FINISHED;
    return !meter || result->meter != NULL;
}

struct submission_run run_submission(const char *program, const struct problem *p, enum input_kind input, uint64_t seed,
                                     bool backward, bool meter) {
    struct submission_run result = {.run = {.problem = *p, .input = input, .backward = backward, .simulated = true}};
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        if (is_backward(tensor) && !backward) continue;
        result.run.host[tensor] = calloc(tensor_elements(p, tensor), sizeof(float));
        if (result.run.host[tensor] == NULL) abort();
        if (!is_output(tensor)) fill_input(result.run.host[tensor], p, tensor, input, seed);
    }
    char numbers[12][32];
    const long long values[12] = {p->dtype,  p->batch, p->heads, p->N_q,          p->N_kv,  p->d,
                                  p->causal, 0,        input,    (long long)seed, backward, meter};
    for (int i = 0; i < 12; i++) snprintf(numbers[i], sizeof numbers[i], "%lld", values[i]);
    snprintf(numbers[7], sizeof numbers[7], "%.9g", (double)p->scale);

    int results = memfd_create("results", MFD_CLOEXEC);
    FILE *file = results < 0 ? NULL : fdopen(results, "r");
    if (file == NULL) {
        perror("memfd_create");
        exit(3);
    }
    struct outcome outcome = run_guarded(program, numbers, 12, results);
    rewind(file);
    result.ending = BROKE_OFF;
    if (outcome.timed_out || outcome.too_long || outcome.status != 0 || !read_results(file, &result, backward, meter))
        if (result.ending != FAULTED) result.ending = outcome.status == EXIT_REFUSED ? REFUSED : BROKE_OFF;
    fclose(file);
    if (outcome.timed_out && asprintf(&result.message, "stopped after %d s: does a loop never end?", RUN_SECONDS) < 0)
        abort();
    if (outcome.too_long) result.message = strdup("stopped: it printed more than 64 KB");
    if (result.message == NULL && result.ending != FINISHED) {
        if (*outcome.output == '\0') {
            if (asprintf(&result.message, "the program ended with status %d and no results", outcome.status) < 0)
                abort();
        } else {
            result.message = strdup(outcome.output);
        }
    }
    if (result.ending == FINISHED && *outcome.output != '\0')
        result.printed = outcome.output;
    else
        free(outcome.output);
    return result;
}

void free_submission_run(struct submission_run *result) {
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) free(result->run.host[tensor]);
    free(result->message), free(result->printed);
    cJSON_Delete(result->meter);
    *result = (struct submission_run){0};
}

double count_of(const cJSON *meter, const char *name) {
    const cJSON *alone = cJSON_GetObjectItem(meter, name), *kernel;
    if (cJSON_IsNumber(alone)) return alone->valuedouble;
    double sum = 0.0;
    bool found = false;
    cJSON_ArrayForEach(kernel, cJSON_GetObjectItem(meter, "kernels")) {
        const cJSON *number = cJSON_GetObjectItem(kernel, name);
        if (number == NULL) number = cJSON_GetObjectItem(cJSON_GetObjectItem(kernel, "totals"), name);
        if (cJSON_IsNumber(number)) sum += number->valuedouble, found = true;
    }
    return found ? sum : NAN;
}
