#include "submission.h"

#include "fnv.h"
#include "status.h"
#include "text.h"
#include "wall.h"

#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COMPILE_SECONDS = 60, COMPILE_CPU_SECONDS = 10, OWN_CPU_SECONDS = 60, RUN_SECONDS = 20, MESSAGE_BYTES = 1 << 16 };

static const struct limits compile_limits = {.seconds = COMPILE_SECONDS,
                                             .cpu_seconds = COMPILE_CPU_SECONDS,
                                             .address_bytes = (size_t)4 << 30,
                                             .output_bytes = MESSAGE_BYTES};

/* ---- what it may call ----------------------------------------------------------------------------------------------- */

/* For tests: the protections that the list EXERCISES_WITHOUT names are off, to show what each of them stops. */
bool is_off(const char *protection) {
#ifndef __x86_64__
    if (strcmp(protection, "machine") == 0) return true; /* confine.awk reads the assembly of x86-64 only */
#endif
    const char *list = getenv("EXERCISES_WITHOUT");
    return list != NULL && strstr(list, protection) != NULL;
}

/* `abi`: the header that declares what compiled kernels call of the simulated device. The functions of <math.h>, to which
 * the headers' device functions compile; the runtime API as far as the host parts of tasks use it. */
static bool may_call(const char *name, const char *abi) {
    static const char *const prefixes[] = {"__tsan_read",  "__tsan_write",    "__tsan_volatile_", "__tsan_init",
                                           "__tsan_vptr_", "__ubsan_handle_", "simt_confined"};
    static const char words[] =
        " _GLOBAL_OFFSET_TABLE_ __sanitizer_cov_trace_pc __stack_chk_fail threadIdx"
        " blockIdx blockDim gridDim warpSize printf puts putchar __assert_fail cudaGetLastError cudaFuncSetAttribute"
        " cudaMemsetAsync cudaGetDriverEntryPointByVersion acosf asinf atanf atan2f cbrtf "
        "ceilf copysignf cosf coshf"
        " erff erfcf expf exp2f exp10f expm1f fabsf fdimf floorf fmaf fmaxf fminf fmodf frexpf hypotf ldexpf lgammaf logf"
        " log2f log10f log1pf lrintf nearbyintf powf rintf roundf sinf sinhf sqrtf tanf tanhf tgammaf truncf sincosf exp"
        " exp2 log log2 fma fmax fmin fabs sqrt pow floor ceil llrintf lroundf llroundf lrint llrint lround llround rint"
        " nearbyint round trunc sin cos tan sinh cosh tanh asin acos atan atan2 erf erfc cbrt hypot fmod log1p expm1"
        " log10 ldexp acoshf asinhf atanhf remainderf __popcountdi2";
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return is_word_of(name, strlen(name), words) || (strncmp(name, "simt_", 5) == 0 && is_word_of(name, strlen(name), abi));
}

/* NULL, or why a kernel file may not define or call a symbol: `kind` is nm's letter. */
static const char *why_refused(char kind, const char *name, const char *section, const char *abi) {
    static const char *const replaced[] = {"_Znw", "_Zna", "_Zdl", "_Zda"}; /* operator new and delete */
    static const char *const constant[] = {"simt_constant", ".data.rel.ro", ".rodata", ".data.rel.local.DW.ref."};
    bool known = strncmp(name, "step_", 5) == 0 || strncmp(name, "DW.ref.", 7) == 0, kept = strchr("BbDdCGgSsVv", kind) != NULL;
    for (size_t i = 0; i < sizeof constant / sizeof *constant; i++)
        kept = kept && strncmp(section, constant[i], strlen(constant[i])) != 0;
    if (kind == 'U') return may_call(name, abi) ? NULL : "it calls %s, which is no function of kernels";
    if (strncmp(name, "_GLOBAL__sub_I", 14) == 0) return "it runs code before the program begins";
    if (strchr("tTWrRdDbBVnaNpgGsSC", kind) == NULL) return "%s is no symbol of a kernel";
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++)
        if (strncmp(name, replaced[i], 4) == 0) return "%s takes another's place";
    if (kept) return "it keeps data between launches, in %s";
    if (strchr("TWR", kind) != NULL && strncmp(name, "_Z", 2) != 0 && !known) return "%s takes another's place";
    return NULL;
}

/* What the object file calls, defines and keeps, against what device code may: NULL, or the reason to refuse it. */
static char *refuse_object(const char *object) {
    const char *const command[] = {"nm", "-fsysv", object, NULL};
    struct outcome names = run_program(command, compile_limits, -1);
    char *reason = NULL, *rest = names.output, *abi = read_text("common/simt/include/simt_abi.h");
    if ((names.status != 0 || names.too_long) &&
        asprintf(&reason, "nm cannot read the object file: %.400s", strsep(&rest, "\n")) < 0)
        abort();
    for (char *line; reason == NULL && (line = strsep(&rest, "\n")) != NULL;) {
        char kind, name[1024], section[64] = "";
        if (sscanf(line, "%1023[^| ] |%*[^|]| %c |%*[^|]|%*[^|]|%*[^|]|%63s", name, &kind, section) < 2) {
            if (strchr(line, '|') != NULL) reason = strdup("a name has more than 1023 characters");
            continue;
        }
        const char *why = why_refused(kind, name, section, abi);
        if (why == NULL) continue;
        /* What else a name may be to c++filt, an option or a file of them, it does not get to see. */
        const char *const demangle[] = {"c++filt", strncmp(name, "_Z", 2) == 0 ? name : NULL, NULL};
        struct outcome readable = run_program(demangle, compile_limits, -1);
        readable.output[strcspn(readable.output, "\n")] = '\0';
        if (asprintf(&reason, why, readable.status == 0 && *readable.output != '\0' ? readable.output : name) < 0) abort();
        free(readable.output);
    }
    free(names.output), free(abi);
    return reason;
}

/* ---- build ---------------------------------------------------------------------------------------------------------- */

/* Adds the headers that a pattern names, and those beside what these include of another chapter: "../11_.../tiles.cuh". */
static void add_headers(const char *pattern, glob_t *files) {
    size_t at = files->gl_pathc;
    glob(pattern, GLOB_APPEND, NULL, files);
    for (size_t end = files->gl_pathc; at < end; at++) {
        char *text = read_text(files->gl_pathv[at]), chapter[64], theirs[PATH_MAX];
        for (const char *line = text; line != NULL && (line = find_line(line, "#include \"../")) != NULL;
             line = line_end(line)) {
            if (sscanf(line_start(line), "#include \"../%63[a-z0-9_]/", chapter) != 1) continue;
            snprintf(theirs, sizeof theirs, SOURCE "/steps/%s/*.cuh", chapter);
            glob(theirs, GLOB_APPEND, NULL, files);
        }
        free(text);
    }
}

/* Over the text, and when each device header and the parts of the simulated device were written. */
static uint64_t fingerprint(const char *text, const char *shown, const char *headers) {
    const char *const parts[] = {"common/device/*", "common/simt/*", "common/simt/include/*", "common/step-cc", CHILD_LIBRARY,
                                 HARNESS_LIBRARY,   SIMT_LIBRARY};
    uint64_t hash = fnv_add(fnv_add(FNV_START, shown, strlen(shown)), text, strlen(text));
    glob_t found = {0};
    struct stat part;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        glob(parts[i], GLOB_NOCHECK | (i > 0 ? GLOB_APPEND : 0), NULL, &found);
    add_headers(headers, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (stat(found.gl_pathv[i], &part) == 0) hash = fnv_add(hash, &part.st_mtim, sizeof part.st_mtim);
    globfree(&found);
    return hash;
}

/* The STEP of "const step step_STEP" where the struct is defined: the last one, behind all holes. `name` has room for 128. */
static bool find_step(const char *text, char *name) {
    static const char begin[] = "\nextern \"C\" const step step_";
    const char *at = NULL;
    for (const char *next = text; (next = strstr(next, begin)) != NULL;) at = next += sizeof begin - 1;
    return at != NULL && sscanf(at, "%127[A-Za-z0-9_]", name) == 1;
}

/* Messages name the lines of the file that the reader edits. A name ends neither the directive nor its string. */
static bool write_text(const char *path, const char *shown, const char *text) {
    FILE *file = fopen(path, "w");
    if (file == NULL) return false;
    char *name = clean_name(shown);
    fchmod(fileno(file), 0644); /* the compiler may be another user */
    bool written = fprintf(file, "#line 1 \"%s\"\n%s", name, text) > 0;
    free(name);
    return fclose(file) == 0 && written;
}

/* The first errors of the compiler, each with its line of source. */
static char *first_errors(struct outcome outcome, bool confined) {
    char *rest = outcome.output, *line, *kept = calloc(1, MESSAGE_BYTES + 64);
    int more = 0, errors = 0;
    if (outcome.timed_out || strstr(outcome.output, "signal terminated program") != NULL) {
        sprintf(kept, "the compiler needed more than %d s or 4 GB", confined ? COMPILE_CPU_SECONDS : OWN_CPU_SECONDS);
        return kept;
    }
    while ((line = strsep(&rest, "\n")) != NULL && errors < 4) {
        if (strstr(line, "error: ") != NULL)
            more = 2, errors++;
        else if (strchr("|", line[strspn(line, " 0123456789")]) == NULL)
            more = 0;
        if (more-- > 0) strcat(strncat(kept, line, 400), "\n");
    }
    if (*kept == '\0') sprintf(kept, "the compiler failed: %.400s", outcome.output); /* its first line */
    return kept;
}

/* step-cc with these arguments. Behind the wall it finds what it needs of the project, with `headers`: no kernel, no task. */
static struct outcome step_cc(const char *const arguments[], const char *headers, bool confined) {
    const char *argv[32] = {BUILD "/bin/step-cc"};
    for (int i = 0; arguments[i] != NULL; i++) argv[1 + i] = arguments[i];
    if (!confined) { /* a reader's own file; the largest of the book takes 15 s */
        struct limits limits = compile_limits;
        limits.seconds *= 2, limits.cpu_seconds = OWN_CPU_SECONDS;
        return run_program(argv, limits, -1);
    }
    static const char *const parts[] = {BUILD "/bin/step-cc",
                                        BUILD "/lib/step-cc/config",
                                        BUILD "/lib/step-cc/headers",
                                        BUILD "/bin/simt-nvcc",
                                        BUILD "/lib/simt/config",
                                        BUILD "/lib/simt/flags",
                                        BUILD "/lib/simt/simt_rewrite",
                                        BUILD "/lib/simt/include",
                                        BUILD "/lib/simt/confined",
                                        SOURCE "/common/device",
                                        SOURCE "/common/simt/include",
                                        CHILD_LIBRARY,
                                        HARNESS_LIBRARY,
                                        SIMT_LIBRARY};
    glob_t files = {0};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        glob(parts[i], GLOB_NOCHECK | (i > 0 ? GLOB_APPEND : 0), NULL, &files);
    add_headers(headers, &files);
    const struct confinement confinement = {(const char *const *)files.gl_pathv, own_folder(), true};
    struct outcome outcome = run_behind_wall(argv, compile_limits, -1, &confinement);
    globfree(&files);
    return outcome;
}

char *build_submission(const char *text, const char *file, const char *shown, bool confined, char **message) {
    char folder[PATH_MAX], headers[PATH_MAX + 8], include[PATH_MAX + 8], base[600], source[640], object[640], step[128];
    *message = NULL;
    if (!find_step(text, step)) {
        *message = strdup("there is no struct step in it");
        return NULL;
    }
    snprintf(include, sizeof include, "%.*s", (int)(strrchr(file, '/') - file), file);
    if (realpath(include, folder) == NULL) err(EXIT_USAGE, "%s", include);
    snprintf(include, sizeof include, "-I%s", folder);
    snprintf(headers, sizeof headers, "%s/*.cuh", folder);
    snprintf(base, sizeof base, "%s/submission", own_folder()); /* one grading's own */
    if (!confined) snprintf(base, sizeof base, "%s/%016" PRIx64, scratch_folder(), fingerprint(text, shown, headers));
    char *program = strdup(base);
    if (!confined && utimensat(AT_FDCWD, program, NULL, 0) == 0) return program; /* no longer old: not to be forgotten now */
    forget_old();
    snprintf(base, sizeof base, "%s/part", own_folder());
    snprintf(source, sizeof source, "%s.cu", base);
    snprintf(object, sizeof object, "%s.o", base);
    if (!write_text(source, shown, text)) err(EXIT_FAILED, "cannot write %s", source);
    const char *const compile[] = {
        /* clang-format off */
        source, "-c", "-o", object, "--like", step, "--", include, "-w", "-Xcompiler", "-fPIE", "-fmax-errors=4", "-fdiagnostics-color=never",
        "-include", "cooperative_groups.h", /* a hole cannot include it, and what stands outside the holes is ours */
        confined ? "-DSIMT_CONFINED" : "-w", confined ? "-fno-exceptions" : "-w",
        confined && is_off("bounds") ? "-fno-sanitize=bounds" : "-fno-gnu-unique", /* a template's constants are symbols as others */
        confined && !is_off("machine") ? "--confined" : NULL, NULL};
    /* clang-format on */
    const char *const link[] = {object, "-o", base, "--like", step, "--main", CHILD_LIBRARY, NULL};
    struct outcome outcome = step_cc(compile, headers, confined);
    if (outcome.status != 0 || outcome.too_long) *message = first_errors(outcome, confined);
    free(outcome.output);
    if (*message == NULL && confined && !is_off("objects")) *message = refuse_object(object);
    if (*message == NULL) {
        outcome = step_cc(link, headers, confined);
        if (outcome.status != 0) *message = strdup(outcome.output);
        free(outcome.output);
    }
    unlink(object);
    unlink(source);
    if (*message == NULL && rename(base, program) == 0) return program;
    free(program);
    return NULL;
}

/* ---- run ------------------------------------------------------------------------------------------------------------ */

static struct outcome run_guarded(const char *program, int results) {
    const char *const argv[] = {program, NULL};
    const struct confinement confinement = {argv, NULL, false};
    const struct limits limits = {.seconds = RUN_SECONDS,
                                  .cpu_seconds = RUN_SECONDS + 5,
                                  .address_bytes = (size_t)16 << 30,
                                  .output_bytes = MESSAGE_BYTES};
    return run_behind_wall(argv, limits, results, &confinement);
}

struct description describe_submission(const char *program) {
    struct outcome outcome = run_guarded(program, -1);
    struct description d = {.passes = {true}};
    if (outcome.status == 0)
        sscanf(outcome.output, "%d %d %d %u %u %u %u %d %d %d", &d.passes[0], &d.passes[1], &d.passes[2], &d.dtype, &d.dtypes,
               &d.variants, &d.grouped_heads, &d.most_queries, &d.d_multiple, &d.hadamard);
    free(outcome.output);
    return d;
}

/* What the program wrote: BROKE_OFF stays where something is missing. */
static void read_results(FILE *file, long at, struct submission_run *result, bool backward, bool meter) {
    struct reply reply;
    if (fseek(file, at, SEEK_SET) != 0 || fread(&reply, sizeof reply, 1, file) != 1) return;
    if (!reply.ok) result->ending = FAULTED;
    if (!reply.ok) return;
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        if (!is_output(tensor) || (is_backward(tensor) && !backward)) continue;
        size_t elements = tensor_elements(&result->run.problem, tensor);
        if (fread(result->run.host[tensor], sizeof(float), elements, file) != elements) return;
    }
    enum { MOST = 1 << 22 };
    char *text = calloc(1, MOST);
    cJSON *kernels = meter && text != NULL && fread(text, 1, MOST - 1, file) > 0 ? cJSON_Parse(text) : NULL;
    free(text);
    if (meter && kernels == NULL) return;
    if (meter) {
        result->meter = cJSON_CreateObject();
        cJSON_AddNumberToObject(result->meter, "workspace_bytes", (double)reply.workspace_bytes);
        cJSON_AddItemToObject(result->meter, "kernels", kernels);
    }
    result->ending = FINISHED;
}

struct submission_run run_submission(const char *program, const struct problem *p, enum input_kind input, uint64_t seed,
                                     bool backward, unsigned how) {
    struct submission_run result = {.run = {.problem = *p, .input = input, .backward = backward, .simulated = true}};
    struct request request = {*p, backward, how, {0}};
    if (p->starts != NULL) memcpy(request.numbers, p->starts, sizeof(int) * (size_t)(p->sequences + 1));
    if (p->lengths != NULL) memcpy(request.numbers, p->lengths, sizeof(int) * (size_t)p->batch);
    int results = memfd_create("results", MFD_CLOEXEC);
    FILE *file = results < 0 ? NULL : fdopen(results, "r+");
    if (file == NULL) err(EXIT_FAILED, "memfd_create");
    fwrite(&request, sizeof request, 1, file);
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        if (is_backward(tensor) && !backward) continue;
        size_t elements = tensor_elements(p, tensor);
        result.run.host[tensor] = calloc(elements, sizeof(float));
        if (result.run.host[tensor] == NULL) abort();
        if (is_output(tensor)) continue;
        fill_input(result.run.host[tensor], p, tensor, input, seed);
        fwrite(result.run.host[tensor], sizeof(float), elements, file);
    }
    long end = ftell(file);
    if (fflush(file) != 0 || end < 0 || lseek(results, 0, SEEK_SET) != 0) err(EXIT_FAILED, "memfd_create");
    struct outcome outcome = run_guarded(program, results);
    result.ending = BROKE_OFF;
    bool ended = !outcome.timed_out && !outcome.too_long;
    if (ended && outcome.status == 128 + SIGKILL) /* it has no call that does this, and time ends before processor time */
        errx(EXIT_FAILED, "the submission's program was killed: has the machine too little memory?");
    if (ended && outcome.status == EXIT_REFUSED) result.ending = REFUSED;
    if (ended && outcome.status == 0) read_results(file, end, &result, backward, (how & METERED) != 0);
    fclose(file);
    if (outcome.timed_out) {
        if (asprintf(&result.message, "stopped after %d s: does a loop never end?", RUN_SECONDS) < 0) abort();
    } else if (outcome.too_long) {
        result.message = strdup("stopped: it printed more than 64 KB");
    } else if (*outcome.output != '\0') {
        *(result.ending == FINISHED ? &result.printed : &result.message) = strdup(outcome.output);
    } else if (result.ending != FINISHED) {
        if (asprintf(&result.message, "the program ended with status %d and no results", outcome.status) < 0) abort();
    }
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
