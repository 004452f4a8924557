/* rewrite INPUT OUTPUT: turn preprocessed CUDA C++ (g++ -E) into C++ for the simulated device. Few constructs need it (see
 * launch.c, shared.c and ptx.c), everything else is left to simt_device.h. Here are the pass over all tokens and the words that
 * are replaced where they stand:
 *
 *     __launch_bounds__(128) k() {       ->  k() { simt_launch_bounds(128);
 *     __cluster_dims__(2, 1, 1) k() {    ->  k() { simt::cluster_dims(2, 1, 1);
 *     k(const __grid_constant__ T x) {   ->  k(const T x) { simt_grid_constant(&x, sizeof x);
 *     cudaFree(p);                       ->  simt::ignored("cudaFree") = cudaFree(p);
 *     cudaMalloc(&p, n)                  ->  cudaMalloc((simt_name_variable("p"), &p), n)
 *
 * Invariant: before each token, the output holds all that comes of the tokens before it. Text of system headers (flag 3 of a
 * line marker) stays as it is, and so do all line numbers. */
#include "rewrite.h"
#include <ctype.h>
#include <err.h>
#include <stdio.h>

void append_line(struct text *line, const char *from, const char *to) {
    struct text copy = {0};
    append(&copy, from, (size_t)(to - from));
    append(line, "", 0);
    size_t start = line->length;
    struct source source = tokenise(copy.data);
    const char *end = copy.data;
    for (const struct token *t = source.tokens;; end = t++->end) {
        if (t->kind == END) break;
        for (; end < t->text; end++) append(line, " ", 1);
        if (t->kind != LINE_MARKER) append(line, t->text, (size_t)(t->end - t->text));
    }
    while (line->length > start && isspace((unsigned char)line->data[line->length - 1])) line->data[--line->length] = '\0';
}

struct text take_back(struct rewriter *r, size_t start) {
    struct text *output = &r->output, taken = {0};
    append_line(&taken, output->data + start, output->data + output->length);
    size_t length = start;
    for (size_t i = start; i < output->length; i++)
        if (output->data[i] == '\n') output->data[length++] = '\n';
    output->length = length;
    output->data[length] = '\0';
    return taken;
}

void catch_up(struct rewriter *r, const struct token *from, const struct token *last) {
    if (from->line != last->line || strcmp(from->file, last->file) != 0)
        append_format(&r->output, "\n# %d \"%s\"\n", last->line, last->file);
}

const struct token *copy_token(struct rewriter *r, const struct token *token) {
    append(&r->output, token->text, (size_t)(token->end - token->text));
    return token + 1;
}

static const struct token *write_instead(struct rewriter *r, const struct token *token, const char *text) {
    append(&r->output, text, strlen(text));
    return token + 1;
}

static const struct token *leave_out(struct rewriter *r, const struct token *token) { return write_instead(r, token, " "); }

/* Parts of paths that a program includes but the simulated device has not; this machine's own CUDA toolkit may have them. */
static const char *const refused_headers[] = {"/thrust/",  "/cub/",     "/nv/target", "/cuda/std/", "/cutlass/",
                                              "/cute/",    "/cudnn",    "/curand",    "/cufft",     "/cusparse",
                                              "/cusolver", "/nvrtc",    "/npp",       "/nccl",      "/cuda_gl_interop.h",
                                              "/torch/",   "/texture_", "/surface_",  "/crt/"};

static const char own_folder[] = "/simt/include/"; /* of common/ or of lib/ */

/* Flags 1 and 3 of a marker: a system header begins. A program's own header may have such a name, and the simulated device such
 * headers: a cuda*.h from elsewhere is a toolkit's. */
static void refuse_header(struct rewriter *r, const struct token *marker) {
    const char *name = marker->text + strcspn(marker->text, "\"\n");
    name += *name == '"';
    const char *end = name + strcspn(name, "\"\n"), *file = end;
    if (strncmp(end, "\" 1", 3) != 0 || strncmp(end + 3, " 3", 2) != 0) return;
    while (file > name && file[-1] != '/') file--;
    if (memmem(name, (size_t)(end - name), own_folder, strlen(own_folder)) != NULL) return;
    const char *found = strncmp(file, "cuda", 4) == 0 && file > name ? file - 1 : NULL;
    for (size_t i = 0; i < sizeof refused_headers / sizeof *refused_headers && found == NULL; i++)
        found = memmem(name, (size_t)(end - name), refused_headers[i], strlen(refused_headers[i]));
    if (found == NULL) return;
    die(&r->source, "#include <%.*s>: the simulated device does not have it", (int)(end - found - 1), found + 1);
}

/* With underscores around it or not. */
static bool begins_with_one_of(const char *text, const char *const *list) {
    text += strspn(text, " _");
    for (; *list != NULL; list++)
        if (strncmp(text, *list, strlen(*list)) == 0 && !is_word(text[strlen(*list) + strspn(text + strlen(*list), "_")]))
            return true;
    return false;
}

static bool opens_bracket(const struct token *token) { /* [ or <: */
    return is(token, "[") || (is(token, "<") && is(token + 1, ":") && touches(token + 1));
}

/* Of strangers' text, after all macros: what would have g++ leave out a detector's calls, or choose other instructions or names,
 * is refused. */
static void check_submission(const struct rewriter *r, const struct token *token) {
    static const char *const pragmas[] = {"unroll", "nounroll", "simt", "once", "GCC diagnostic", "GCC unroll", NULL};
    static const char *const attributes[] = {
        "aligned",  "unused",      "maybe_unused", "nodiscard", "always_inline",     "noinline",
        "noreturn", "fallthrough", "likely",       "unlikely",  "deprecated",        "flatten",
        "pure",     "const",       "using",        "gnu",       "no_unique_address", NULL};
    if (token->kind == DIRECTIVE && !begins_with_one_of(token->text + strlen("#pragma"), pragmas))
        die(&r->source, "%.*s: of the pragmas, use unroll and nounroll", (int)(token->end - token->text), token->text);
    if (is(token, "asm") || is(token, "__asm") || is(token, "__asm__") || is(token, "_Pragma"))
        die(&r->source, "%.*s is no part of any task", (int)(token->end - token->text), token->text);
    bool is_old = is(token, "__attribute__") || is(token, "__attribute");
    const struct token *open = skip_markers(token + 1 + is(token, "<")), *name = NULL, *end = NULL;
    if (!is_old && opens_bracket(token) && opens_bracket(open)) {
        if (is(token, "<") || is(open, "<")) die(&r->source, "attributes stand in [[ and ]]");
        end = skip_brackets(&r->source, token);
    } else if (is_old) {
        end = skip_brackets(&r->source, open);
    }
    for (const struct token *t = open + 1; t < end; t++) {
        if (t->kind == WORD && !begins_with_one_of(t->text, attributes))
            die(&r->source, "attribute %.*s is not allowed here", (int)(t->end - t->text), t->text);
        if (is(t, "(") && name != NULL) t = skip_brackets(&r->source, t) - 1; /* of an attribute: aligned(16) */
        if (t->kind != LINE_MARKER) name = t->kind == WORD ? t : NULL;
    }
}

static const struct token *rewrite_directive(struct rewriter *r, const struct token *token) {
    bool is_own = strncmp(token->text, "#pragma simt ", 13) == 0;
    bool unchecked = memmem(token->text, (size_t)(token->end - token->text), "unchecked", 9) != NULL; /* for tests: task.c */
    if (is_own) r->device_only = token->text[13] == 'd';
    r->is_submission |= is_own && r->device_only && !unchecked;
    if (is_own || skip_markers(r->declaration) == token) r->declaration = token + 1; /* none begins before it */
    return copy_token(r, token);
}

/* All that a kernel calls becomes part of it, as with nvcc. g++ puts no hook before the store of a struct that a function
 * returns, but does before the copy that is left of it once the function is inlined. */
static const struct token *rewrite_global(struct rewriter *r, const struct token *token) {
    r->is_device = r->is_kernel = true;
    return write_instead(r, token, "__attribute__((flatten))");
}

static const struct token *rewrite_host(struct rewriter *r, const struct token *token) {
    r->is_host = true;
    return leave_out(r, token);
}

/* Leave out an attribute of a kernel, and keep what stands in its parentheses. */
static const struct token *rewrite_attribute(struct rewriter *r, const struct token *token) {
    const struct token *past = skip_attribute(&r->source, token), *open = skip_markers(token + 1);
    bool of_cluster = is(token, "__cluster_dims__");
    if (past == token && of_cluster) die(&r->source, "__cluster_dims__ without (");
    if (past == token) return leave_out(r, token);
    struct text taken = {0};
    append_line(&taken, open->end, past[-1].text);
    *(of_cluster ? &r->cluster : &r->bounds) = taken;
    catch_up(r, token, past - 1);
    leave_out(r, token);
    return past;
}

/* The parameter's name stands before the comma, or the parenthesis, that comes next. */
static const struct token *rewrite_grid_constant(struct rewriter *r, const struct token *token) {
    const struct token *end = find_outside_brackets(&r->source, token + 1, ",)");
    struct angles ignored;
    for (const struct token *t = token + 1; end != NULL && t < end; t++) /* of template arguments no comma is meant */
        if (is(t, "<") && (t = skip_angles(&r->source, t, &ignored)) != NULL && t > end)
            end = find_outside_brackets(&r->source, t, ",)");
        else if (t == NULL)
            break;
    if (end != NULL && end[-1].kind == WORD) {
        int length = (int)(end[-1].end - end[-1].text);
        append_format(&r->constants, " simt_grid_constant(&%.*s, sizeof %.*s);", length, end[-1].text, length, end[-1].text);
    }
    return leave_out(r, token);
}

/* A warpSize of the program's own hides the built-in one from its declaration on. */
static const struct token *rewrite_warp_size(struct rewriter *r, const struct token *token) {
    bool is_declared =
        r->scopes[r->depth].kind == NAMESPACE && r->parentheses == 0 && token[-1].kind == WORD && is_one_of(token + 1, "=;{");
    r->has_own_warp_size |= is_declared;
    bool is_member = is(token - 1, ".") || is(token - 1, "->");
    if (!r->has_own_warp_size || is_member) return copy_token(r, token);
    return write_instead(r, token, "simt_own_warpSize");
}

/* NULL in a launch's arguments, whose type is an integer's. */
static const struct token *rewrite_null(struct rewriter *r, const struct token *token) {
    return token < r->arguments_end ? write_instead(r, token, "nullptr") : copy_token(r, token);
}

/* No macro: libstdc++ has the word in attributes of its own. */
static const struct token *rewrite_noinline(struct rewriter *r, const struct token *token) {
    bool in_attribute = r->output.length > 0 && r->output.data[r->output.length - 1] == '(';
    return in_attribute ? copy_token(r, token) : leave_out(r, token);
}

/* static const T x = T(1); in the template of a class: nvcc takes it for any T, as g++ does constexpr. */
static const struct token *rewrite_const(struct rewriter *r, const struct token *token) {
    const struct token *end = token;
    if (r->scopes[r->depth].kind != CLASS || !r->scopes[r->depth].is_template || r->parentheses > 0)
        return copy_token(r, token);
    while (end->kind == WORD || is(end, ":") || is(end, "<") || is(end, ">")) end = skip_markers(end + 1);
    bool is_member = is(end, "=") && names_word(r->declaration, end, "static") && !names_word(r->declaration, end, "inline") &&
                     !names_word(r->declaration, end, "constexpr");
    return is_member ? write_instead(r, token, "constexpr") : copy_token(r, token);
}

/* f(int x) { behind a declaration's first word, as a local class has it; x, x(1) and x{1} are variables. */
static bool defines_function(const struct source *source, const struct token *token) {
    const struct token *end = find_outside_brackets(source, token, "(;={");
    while (end != NULL && is(end, "(") && is(end - 1, "decltype"))
        end = find_outside_brackets(source, skip_brackets(source, end), "(;={");
    if (end == NULL || !is(end, "(")) return false;
    end = find_outside_brackets(source, skip_brackets(source, end), ";={");
    return end != NULL && is(end, "{");
}

/* A variable of a device function that lives as long as the program is the device's. */
static const struct token *rewrite_static(struct rewriter *r, const struct token *token) {
    const struct token *next = skip_markers(token + 1);
    bool is_constant = is(next, "const") || is(next, "constexpr") || is(next, "inline");
    if (r->scopes[r->depth].is_device && token == skip_markers(r->declaration) && !is_constant &&
        strncmp(next->text, "__", 2) != 0 && !defines_function(&r->source, next))
        append_format(&r->output, "__attribute__((section(\"simt_device\"))) ");
    return copy_token(r, token);
}

/* What a message will call the memory. The tokens of the first argument are still to come. */
static const struct token *rewrite_allocation(struct rewriter *r, const struct token *token) {
    const struct token *open = skip_markers(token + 1), *comma = find_outside_brackets(&r->source, open + 1, ",");
    struct token *address = (struct token *)open;
    while (comma != NULL && address < comma && !is(address, "&")) address++;
    note_call(r, token);
    if (is(open, "(") && comma != NULL && address < comma && !is(address + 1, "&")) {
        struct token *end = (struct token *)find_outside_brackets(&r->source, address + 1, ",)");
        struct text name = {0}, before = {0};
        append_line(&name, address->end, end->text);
        if (strpbrk(name.data, "\"\\") == NULL) {
            append_format(&before, "(simt_name_variable(\"%s\"), ", name.data);
            address->before = before.data, end->before = ")";
        }
    }
    return copy_token(r, token);
}

static const struct {
    const char *word;
    rewriting *rewrite;
} words[] = {
    /* clang-format off */
    {"__global__", rewrite_global}, {"__shared__", rewrite_shared},
    {"__launch_bounds__", rewrite_attribute}, {"__cluster_dims__", rewrite_attribute},
    {"__grid_constant__", rewrite_grid_constant}, {"warpSize", rewrite_warp_size},
    {"__device__", rewrite_device}, {"__constant__", rewrite_device}, {"__managed__", rewrite_device},
    {"__host__", rewrite_host}, {"__noinline__", rewrite_noinline}, {"__null", rewrite_null}, {"const", rewrite_const},
    {"static", rewrite_static},
    {"asm", rewrite_asm}, {"__asm", rewrite_asm}, {"__asm__", rewrite_asm},
    {"cudaLaunchKernel", rewrite_launch_call}, {"cudaLaunchCooperativeKernel", rewrite_launch_call},
    {"cudaMalloc", rewrite_allocation}, {"cudaMallocManaged", rewrite_allocation}, {"cudaMallocHost", rewrite_allocation},
    {"cudaHostAlloc", rewrite_allocation}, {"cudaMallocAsync", rewrite_allocation}, {"cudaMallocPitch", rewrite_allocation}, {"cudaMallocFromPoolAsync", rewrite_allocation},
    /* clang-format on */
};

/* Is the statement that starts here a call of the API whose result is dropped? */
static bool is_dropped_call(const struct rewriter *r, const struct token *token) {
    enum scope_kind scope = r->scopes[r->depth].kind;
    if (r->depth == 0 || scope == NAMESPACE || scope == CLASS || token != skip_markers(r->declaration)) return false;
    if (strncmp(token->text, "cuda", 4) != 0 || !isupper((unsigned char)token->text[4])) return false;
    const struct token *parenthesis = skip_markers(token + 1);
    return is(parenthesis, "(") && is(skip_markers(skip_brackets(&r->source, parenthesis)), ";");
}

static const struct token *rewrite_word(struct rewriter *r, const struct token *token) {
    if (is_dropped_call(r, token))
        append_format(&r->output, "simt::ignored(\"%.*s\") = ", (int)(token->end - token->text), token->text);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is(token, words[i].word)) return words[i].rewrite(r, token);
    note_call(r, token);
    return copy_token(r, token);
}

/* What the { opens, by the words of the declaration before it. */
static enum scope_kind scope_opened(const struct rewriter *r, const struct token *brace) {
    enum scope_kind outer = r->scopes[r->depth].kind;
    if (r->parentheses > 0 || (outer != NAMESPACE && outer != CLASS)) return OTHER;
    bool parenthesis = false, class_word = false;
    for (const struct token *t = r->declaration, *past; t < brace; t = past) {
        if ((past = skip_attribute(&r->source, t)) != t) continue;
        past = t + 1;
        if (is(t, "namespace")) return NAMESPACE;
        const struct token *language = skip_markers(t + 1); /* extern "C" { */
        if (is(t, "extern") && *language->text == '"' && skip_markers(language + 1) == brace) return NAMESPACE;
        if (is(t, "template") && is(skip_markers(t + 1), "<")) { /* of which parameters may have defaults: class T = float */
            struct angles ignored;
            const struct token *end = skip_angles(&r->source, skip_markers(t + 1), &ignored);
            past = end != NULL ? end : past;
            continue;
        }
        if (is(t, "=")) return OTHER;
        class_word |= is(t, "struct") || is(t, "class") || is(t, "union");
        if (!is(t, "(")) continue;
        parenthesis = true;
        past = skip_brackets(&r->source, t);
    }
    return class_word && !parenthesis ? CLASS : parenthesis || r->is_device ? FUNCTION : OTHER;
}

/* A declaration or statement begins after the token, which is written. */
static const struct token *begin_after(struct rewriter *r, const struct token *token) {
    if (r->parentheses == 0) r->is_device = r->is_kernel = r->is_host = false;
    return r->declaration = token + 1;
}

/* Of namespace a::b { in a scope of this path; extern "C" { has no name. */
static const char *path_opened(const struct rewriter *r, const struct token *brace, const char *outer) {
    const struct token *t = r->declaration;
    while (t < brace && !is(t, "namespace")) t++;
    if (t == brace) return outer;
    struct text path = {0};
    append_format(&path, "%s::", outer);
    for (t++; t < brace; t++)
        if (t->kind == WORD || is(t, ":")) append(&path, t->text, (size_t)(t->end - t->text));
    return path.data;
}

static const struct token *open_scope(struct rewriter *r, const struct token *brace) {
    if (r->depth + 1 == DEEPEST) die(&r->source, "braces nested too deep");
    enum scope_kind kind = scope_opened(r, brace);
    if (kind == FUNCTION) note_function(r, r->declaration, brace, true);
    if (r->is_device && kind == FUNCTION && declare_file_shared(r, brace)) kind = SHARED_FUNCTION;
    bool is_function = kind == FUNCTION || kind == SHARED_FUNCTION;
    const struct scope *outer = &r->scopes[r->depth];
    struct scope scope = {.kind = kind, .parentheses = r->parentheses, .path = outer->path};
    scope.is_device = outer->is_device || (is_function && r->is_device && !r->is_host);
    scope.is_marked = outer->is_marked || (is_function && r->is_device);
    scope.is_template = names_word(r->declaration, brace, "template");
    /* Templates may never become functions, and a lambda may be the device's. */
    bool begins =
        is_function && outer->kind == NAMESPACE && !scope.is_template && !names_word(r->declaration, brace, "constexpr");
    scope.is_host = (outer->is_host || begins) && !r->is_device && !r->device_only;
    if (kind == NAMESPACE) scope.path = path_opened(r, brace, outer->path);
    r->scopes[++r->depth] = scope;
    copy_token(r, brace);
    if (r->bounds.data != NULL && is_function) append_format(&r->output, " simt_launch_bounds(%s);", r->bounds.data);
    if (r->cluster.data != NULL && is_function) append_format(&r->output, " simt::cluster_dims(%s);", r->cluster.data);
    if (r->constants.data != NULL && is_function) append(&r->output, r->constants.data, r->constants.length);
    r->bounds = r->cluster = r->constants = (struct text){0};
    begin_after(r, brace);
    r->parentheses = 0;
    return brace + 1;
}

static const struct token *close_scope(struct rewriter *r, const struct token *brace) {
    copy_token(r, brace);
    if (r->scopes[r->depth].kind == SHARED_FUNCTION) append(&r->output, "}", 1);
    r->parentheses = r->scopes[r->depth].parentheses;
    if (r->depth > 0) r->depth--;
    return begin_after(r, brace);
}

static const struct token *end_statement(struct rewriter *r, const struct token *semicolon) {
    copy_token(r, semicolon);
    if (r->parentheses > 0) return semicolon + 1; /* of a for */
    enum scope_kind scope = r->scopes[r->depth].kind;
    if (scope == NAMESPACE || scope == CLASS) note_function(r, r->declaration, semicolon, false);
    r->bounds = r->cluster = r->constants = (struct text){0};
    return begin_after(r, semicolon);
}

static const struct token *rewrite_symbol(struct rewriter *r, const struct token *token) {
    const struct token *past = rewrite_launch(r, token);
    if (past != token) return past;
    if (is(token, "{")) return open_scope(r, token);
    if (is(token, "}")) return close_scope(r, token);
    if (is(token, ";")) return end_statement(r, token);
    if (is(token, "[")) check_array(r, token);
    r->parentheses += is(token, "(");
    r->parentheses -= is(token, ")") && r->parentheses > 0;
    return copy_token(r, token);
}

static const struct token *rewrite_token(struct rewriter *r, const struct token *token) {
    bool is_marker = token->kind == LINE_MARKER;
    if (r->is_submission && !is_marker) check_submission(r, token);
    if (is_marker && !token->is_system) refuse_header(r, token);
    if (token->is_system && !is_marker && token >= r->arguments_end) { /* in a launch, the expansion of NULL */
        if (r->parentheses == 0) r->declaration = token + 1;
        return copy_token(r, token);
    }
    check_readable(&r->source, token);
    return token->kind == WORD        ? rewrite_word(r, token)
           : token->kind == SYMBOL    ? rewrite_symbol(r, token)
           : token->kind == DIRECTIVE ? rewrite_directive(r, token)
                                      : copy_token(r, token);
}

static void rewrite(struct rewriter *r) {
    struct source *source = &r->source;
    struct token *token = source->tokens;
    const struct token *past;
    for (const char *written = source->text;; written = past[-1].end) {
        append(&r->output, written, (size_t)(token->text - written));
        if (token->kind == END) break;
        source->at = token;
        token->start = r->output.length;
        if (token->before != NULL) append(&r->output, token->before, strlen(token->before));
        past = rewrite_token(r, token);
        while (++token < past) token->start = r->output.length;
    }
}

static const char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) err(1, "%s", path);
    struct text text = {0};
    if (getdelim(&text.data, &text.room, '\0', file) < 0) append(&text, "", 0); /* an empty file */
    fclose(file);
    return text.data;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--instructions") == 0) return list_ptx_instructions(), 0;
    if (argc != 3) {
        fprintf(stderr, "usage: %s INPUT.ii OUTPUT.ii\n", argv[0]);
        return 2;
    }
    static struct rewriter r;
    r.source = tokenise(read_file(argv[1]));
    r.declaration = r.arguments_end = r.source.tokens;
    r.scopes[0].path = "";
    append(&r.output, "", 0);
    note_wrappers(&r);
    rewrite(&r);
    check_uses(&r);
    FILE *file = fopen(argv[2], "wb");
    if (file != NULL && fwrite(r.output.data, 1, r.output.length, file) == r.output.length && fclose(file) == 0) return 0;
    err(1, "%s", argv[2]);
}
