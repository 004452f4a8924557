/* rewrite INPUT OUTPUT: turn preprocessed CUDA C++ (g++ -E) into C++ for the simulated device. Few constructs need it,
 * everything else is left to simt_device.h. The text is read into tokens once; one pass over them, at the end of this file, writes
 * the output in order. A construct that begins before the word or symbol that tells it takes its beginning back from the end of
 * the output. The program ends after one file: memory is never freed.
 *
 *     __launch_bounds__(128) k() {       ->  k() { simt_launch_bounds(128);
 *     cudaFree(p);                       ->  simt::ignored("cudaFree") = cudaFree(p);
 *
 * Invariant: before each token, the output holds all that comes of the tokens before it. Text of system headers (flag 3 of a
 * line marker) stays as it is, and so do all line numbers. */
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char *data; /* ends with '\0' */
    size_t length, room;
};

enum kind {
    START, END,   /* around the tokens */
    WORD,         /* a name, a keyword or a part of a number */
    LITERAL,      /* a string or a character */
    SYMBOL,       /* one character, -> or ... */
    DIRECTIVE,    /* a line of the preprocessor, #pragma for example */
    LINE_MARKER,  /* # 12 "file" 1 3 */
    ENDLESS_RAW, UNREADABLE_RAW /* the R of a raw string without an end, or without a ( */
};

/* Blanks belong to no token: they are the text between one's end and the next one's beginning. */
struct token {
    enum kind kind;
    bool is_system; /* of a system header */
    int line;
    const char *file; /* as the line marker above spells it */
    const char *text, *end;
    size_t start; /* of what comes of it in the output, once that is written */
};

struct source {
    const char *text;
    struct token *tokens;   /* tokens[-1] is START, the last one END */
    const struct token *at; /* where the pass is: messages name its line */
};

/* A function, as its declarations tell. */
struct function {
    const struct token *name;
    int needed;        /* template parameters without a default */
    int bodies;        /* definitions: more than one are overloads */
    int commas;        /* between its parameters */
    bool has_defaults; /* of parameters, which a pointer to the function does not know */
    bool is_template, is_variadic, is_overloaded;
};

/* A __shared__ variable declared outside of any function. */
struct shared_variable {
    const char *name, *declaration; /* as it becomes at the head of a function */
};

struct scope {
    enum scope_kind { NAMESPACE, CLASS, FUNCTION, SHARED_FUNCTION, OTHER } kind;
    int parentheses; /* open where its brace opened */
};
enum { DEEPEST = 1000 };

struct rewriter {
    struct source source;
    struct text output;
    struct function *functions;
    struct shared_variable *file_shared;
    const struct token **ptx_names;
    size_t function_count, file_shared_count, ptx_name_count;
    unsigned type_number; /* of the next struct without a name in shared memory */
    struct scope scopes[DEEPEST];
    int depth, parentheses;
    const struct token *declaration;   /* where the current declaration or statement starts */
    const struct token *arguments_end; /* of the launch that was rewritten last */
    struct text bounds;                /* the first argument of __launch_bounds__ in this declaration */
    bool is_device;                    /* this declaration is a kernel's or a device function's */
    bool device_only;                  /* between #pragma simt device_only and host_too */
};

void *resize(void *memory, size_t bytes);
void append(struct text *text, const char *data, size_t length);
void append_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void die(const struct source *source, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool is_word(char c);
struct source tokenise(const char *text);
bool is(const struct token *token, const char *text);
bool is_one_of(const struct token *token, const char *symbols);
bool touches(const struct token *token); /* the one before it */
bool names_word(const struct token *from, const struct token *end, const char *word);
const struct token *skip_markers(const struct token *token);
void check_readable(const struct source *source, const struct token *token);
/* The first of the characters `wanted` outside of any bracket opened at `token` or later; NULL when there is none. */
const struct token *find_outside_brackets(const struct source *source, const struct token *token, const char *wanted);
const struct token *skip_brackets(const struct source *source, const struct token *token);
/* Past alignas(...), __attribute__((...)) or __launch_bounds__(...); `token` itself when none stands there. */
const struct token *skip_attribute(const struct source *source, const struct token *token);
/* Past the > that closes the < at `token`, and what is between; NULL when there is none. */
struct angles {
    int arguments, defaults;
    bool is_variadic;
};
const struct token *skip_angles(const struct source *source, const struct token *token, struct angles *found);

/* The text from `from` to `to`, without line markers and blanks at its end. */
void append_line(struct text *line, const char *from, const char *to);
/* Take what has been written from `start` on, as one line, and leave only its line ends. */
struct text take_back(struct rewriter *r, size_t start);
/* After what stood from `from` to `last` became one line: tell the compiler which line follows. */
void catch_up(struct rewriter *r, const struct token *from, const struct token *last);
const struct token *copy_token(struct rewriter *r, const struct token *token);

/* Write a construct in place of the token, and return the first token that is left: */
typedef const struct token *rewriting(struct rewriter *r, const struct token *token);
rewriting rewrite_launch, rewrite_launch_call, rewrite_shared, rewrite_device, rewrite_asm;
void note_function(struct rewriter *r, const struct token *token, const struct token *end, bool has_body);
bool declare_file_shared(struct rewriter *r, const struct token *brace);
void note_ptx_names(struct rewriter *r);

/* Text to tokens, once, and ways over them. g++ -E has left no comments and no continued lines. The tokens' places are told
 * by its line markers. Invariants: tokens stand in the order of the text, overlap nowhere, and only blanks are between them;
 * START and END stand around them, so that token[-1] and token[1] of each are there; a string or character literal that does
 * not end on its line is a SYMBOL, its quote. */

static _Noreturn void die_of_memory(void) {
    fputs("error: out of memory\n", stderr);
    exit(1);
}

void *resize(void *memory, size_t bytes) {
    memory = realloc(memory, bytes);
    if (memory == NULL) die_of_memory();
    return memory;
}

void append(struct text *text, const char *data, size_t length) {
    if (text->length + length + 1 > text->room) {
        text->room = 2 * (text->length + length + 1);
        text->data = resize(text->data, text->room);
    }
    memcpy(text->data + text->length, data, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void append_format(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *formatted;
    int length = vasprintf(&formatted, format, arguments);
    if (length < 0) die_of_memory();
    append(text, formatted, (size_t)length);
    va_end(arguments);
}

void die(const struct source *source, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%d: error: ", source->at->file, source->at->line);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* `begin` and `end` are the whole text's, here and below: what stands before a character tells what it is. */
static bool starts_raw_string(const char *p, const char *begin) {
    return p[0] == 'R' && p[1] == '"' && (p == begin || !is_word(p[-1]) || strchr("uUL8", p[-1]) != NULL);
}

/* Does the ' separate digits, as in 1'000? The one of u'a' does not. */
static bool separates_digits(const char *p, const char *begin) {
    if (p == begin || !isxdigit((unsigned char)p[-1]) || !isxdigit((unsigned char)p[1])) return false;
    while (p > begin && (is_word(p[-1]) || p[-1] == '\'')) p--;
    return isdigit((unsigned char)*p);
}

static const char *read_raw_string(const char *p, const char *end, enum kind *kind) {
    enum { LONGEST = 20 }; /* from the R up to the ( */
    const char *parenthesis = memchr(p, '(', end - p <= LONGEST ? (size_t)(end - p) : LONGEST + 1);
    *kind = UNREADABLE_RAW;
    if (parenthesis == NULL) return p + 1;
    char closing[LONGEST + 2];
    size_t length = (size_t)snprintf(closing, sizeof closing, ")%.*s\"", (int)(parenthesis - p - 2), p + 2);
    const char *found = memmem(parenthesis, (size_t)(end - parenthesis), closing, length);
    *kind = found != NULL ? LITERAL : ENDLESS_RAW;
    return found != NULL ? found + length : p + 1;
}

static const char *read_quoted(const char *p, const char *begin, const char *end, enum kind *kind) {
    *kind = SYMBOL;
    if (*p == '\'' && separates_digits(p, begin)) return p + 1;
    const char *q = p + 1;
    while (q < end && *q != *p && *q != '\n') q += *q == '\\' && q + 1 < end ? 2 : 1;
    if (q >= end || *q != *p) return p + 1;
    *kind = LITERAL;
    return q + 1;
}

/* The end of the token that starts at p. */
static const char *read_token(const char *p, const char *begin, const char *end, enum kind *kind) {
    if (*p == '#' && (p == begin || p[-1] == '\n')) {
        const char *line_end = memchr(p, '\n', (size_t)(end - p));
        *kind = p[1] == ' ' && isdigit((unsigned char)p[2]) ? LINE_MARKER : DIRECTIVE;
        return line_end != NULL ? line_end : end;
    }
    if (starts_raw_string(p, begin)) return read_raw_string(p, end, kind);
    if (*p == '"' || *p == '\'') return read_quoted(p, begin, end, kind);
    if (is_word(*p)) {
        *kind = WORD;
        do p++;
        while (p < end && is_word(*p) && !starts_raw_string(p, begin));
        return p;
    }
    *kind = SYMBOL;
    return p + (strncmp(p, "->", 2) == 0 ? 2 : strncmp(p, "...", 3) == 0 ? 3 : 1);
}

/* `# 12 "file" 1 3` says where the line after it comes from; flag 3 stands for a system header. */
static void read_line_marker(const struct token *marker, struct token *place) {
    char *number_end;
    place->line = (int)strtol(marker->text + 2, &number_end, 10) - 1;
    const char *name = number_end + strspn(number_end, " \""), *flags = name + strcspn(name, "\"\n");
    place->file = strndup(name, (size_t)(flags - name));
    if (place->file == NULL) die_of_memory();
    place->is_system = memmem(flags, (size_t)(marker->end - flags), " 3", 2) != NULL;
}

struct source tokenise(const char *begin) {
    struct token *tokens = NULL, token = {.kind = START, .line = 1, .file = "", .text = begin, .end = begin};
    const char *end = begin + strlen(begin), *p;
    for (size_t count = 0, room = 0;;) {
        if (count == room) tokens = resize(tokens, (room = 2 * room + 64) * sizeof *tokens);
        tokens[count++] = token;
        if (token.kind == END) return (struct source){begin, tokens + 1, tokens + 1};
        if (token.kind == LINE_MARKER) read_line_marker(&tokens[count - 1], &token);
        for (p = token.text; p < token.end; p++) token.line += *p == '\n';
        for (; p < end && isspace((unsigned char)*p); p++) token.line += *p == '\n';
        token.text = token.end = p;
        token.kind = END;
        if (p < end) token.end = read_token(p, begin, end, &token.kind);
    }
}

bool is(const struct token *token, const char *text) {
    size_t length = (size_t)(token->end - token->text);
    return strncmp(token->text, text, length) == 0 && text[length] == '\0' && length > 0;
}

bool is_one_of(const struct token *t, const char *symbols) { return t->kind == SYMBOL && strchr(symbols, *t->text) != NULL; }

bool touches(const struct token *token) { return token[-1].end == token->text; }

const struct token *skip_markers(const struct token *token) {
    while (token->kind == LINE_MARKER) token++;
    return token;
}

bool names_word(const struct token *from, const struct token *end, const char *word) {
    while (from < end && !is(from, word)) from++;
    return from < end;
}

void check_readable(const struct source *source, const struct token *token) {
    if (token->kind == ENDLESS_RAW) die(source, "raw string without an end");
    if (token->kind == UNREADABLE_RAW) die(source, "raw string that cannot be read");
}

const struct token *find_outside_brackets(const struct source *source, const struct token *token, const char *wanted) {
    int depth = 0;
    for (; token->kind != END && depth >= 0; token++) {
        check_readable(source, token);
        if (depth == 0 && is_one_of(token, wanted)) return token;
        depth += is_one_of(token, "([{") - is_one_of(token, ")]}");
    }
    return NULL;
}

const struct token *skip_brackets(const struct source *source, const struct token *token) {
    const char *closing = is(token, "(") ? ")" : is(token, "[") ? "]" : "}";
    const struct token *end = find_outside_brackets(source, token + 1, closing);
    if (end == NULL) die(source, "%c without %s", *token->text, closing);
    return end + 1;
}

const struct token *skip_attribute(const struct source *source, const struct token *token) {
    if (!is(token, "alignas") && !is(token, "__attribute__") && !is(token, "__launch_bounds__")) return token;
    const struct token *parenthesis = skip_markers(token + 1);
    return is(parenthesis, "(") ? skip_brackets(source, parenthesis) : token;
}

const struct token *skip_angles(const struct source *source, const struct token *token, struct angles *found) {
    int depth = 0;
    bool any = false;
    *found = (struct angles){0};
    for (; token->kind != END && !is(token, ";"); token++) {
        depth += is(token, "<") - is(token, ">");
        bool is_border = is_one_of(token, "<>") || (depth == 1 && is_one_of(token, ",="));
        any |= !is_border;
        found->arguments += depth == 1 && is(token, ",");
        found->defaults += depth == 1 && is(token, "=");
        found->is_variadic |= is(token, "...");
        if (is_one_of(token, "([{")) token = skip_brackets(source, token) - 1;
        if (depth > 0) continue;
        found->arguments += any;
        return token + 1;
    }
    return NULL;
}

/* Kernels and their launches.
 *
 *     kernel<<<grid, block>>>(a, b)      ->  simt::launch(simt::config(grid, block), "kernel", kernel)(a, b)
 *
 * A kernel whose function the compiler can tell by the launch's arguments only (an overload, a template whose arguments are
 * left to be deduced) is called from a generic lambda. Invariant: when the pass comes to a launch, all declarations before it
 * are noted, so that the table of functions tells of which kind its kernel is. */

static struct function *find_function(const struct rewriter *r, const struct token *name) {
    size_t length = (size_t)(name->end - name->text);
    for (size_t i = r->function_count; i-- > 0;) {
        const struct token *known = r->functions[i].name;
        if ((size_t)(known->end - known->text) == length && memcmp(known->text, name->text, length) == 0)
            return &r->functions[i];
    }
    return NULL;
}

static struct function *note_parameters(struct rewriter *r, const struct token *parenthesis) {
    struct function *function = find_function(r, parenthesis - 1);
    if (function == NULL) {
        r->functions = resize(r->functions, (r->function_count + 1) * sizeof *r->functions);
        function = &r->functions[r->function_count++];
        *function = (struct function){.name = parenthesis - 1, .commas = -1};
    }
    const struct token *end = skip_brackets(&r->source, parenthesis);
    int commas = is(skip_markers(parenthesis + 1), ")") ? -2 : 0;
    for (const struct token *t = parenthesis + 1; t < end; t++) {
        function->has_defaults |= is(t, "=");
        commas += is(t, ",");
    }
    function->is_overloaded |= function->commas != -1 && function->commas != commas;
    function->commas = commas;
    return function;
}

/* The declaration up to `end`, its ; or {, is a function's, perhaps. */
void note_function(struct rewriter *r, const struct token *token, const struct token *end, bool has_body) {
    struct angles template = {0};
    bool is_variadic = false;
    for (token = skip_markers(token); token < end; token = skip_markers(token)) {
        const struct token *past = skip_attribute(&r->source, token);
        if (is(token, "template")) {
            past = skip_markers(token + 1);
            if (!is(past, "<") || (past = skip_angles(&r->source, past, &template)) == NULL) return;
            is_variadic |= template.is_variadic;
        } else if (is(token, "=") || (is(token, "(") && token[-1].kind != WORD)) {
            return;
        } else if (is(token, "(")) {
            struct function *function = note_parameters(r, token);
            function->bodies += has_body;
            function->is_variadic |= is_variadic;
            if (template.arguments > 0) {
                function->is_template = true;
                function->needed = template.arguments - template.defaults;
            }
            return;
        } else if (past == token) {
            past++;
        }
        token = past;
    }
}

/* The last < of the <<< that opens a launch's shape; NULL when another token stands here. `<< <` is one too. */
static const struct token *shape_opening(const struct token *token) {
    if (!is(token, "<") || !is(token + 1, "<") || !touches(token + 1)) return NULL;
    const struct token *third = skip_markers(token + 2);
    return is(third, "<") && !(is(third + 1, "<") && touches(third + 1)) ? third : NULL;
}

/* The first > of the > > > that closes the shape, and the last one. */
static const struct token *shape_closing(const struct source *source, const struct token *token, const struct token **last) {
    for (; (token = find_outside_brackets(source, token, ">;")) != NULL && is(token, ">"); token++) {
        const struct token *second = skip_markers(token + 1), *third = skip_markers(second + 1);
        if (!is(second, ">") || !is(third, ">")) continue;
        if (is(third + 1, ">") && touches(third + 1)) continue; /* foo<int>>>>: the first one closes a template's arguments */
        *last = third;
        return token;
    }
    return NULL;
}

/* The (, [ or < that `token` closes. */
static const struct token *opening(const struct token *token) {
    bool is_angle = is(token, ">");
    for (int angles = 0, brackets = 0; token->kind != START; token--) {
        brackets += is_one_of(token, ")]") - is_one_of(token, "([");
        if (brackets == 0) angles += is(token, ">") - is(token, "<");
        if (is_angle ? angles <= 0 : brackets <= 0) break;
    }
    return token;
}

/* Where the expression that ends before `end` and names the kernel starts: words, ::, ., ->, and brackets. */
static const struct token *kernel_start(const struct token *end) {
    for (const struct token *token = end;;) {
        bool may_be_apart = true; /* the name from what follows it */
        if (is(token - 1, ">")) token = opening(token - 1);
        for (; is_one_of(token - 1, ")]"); may_be_apart = false) token = opening(token - 1);
        if (token[-1].kind == WORD && (may_be_apart || touches(token))) token--;
        bool is_scope = is(token - 1, ":") && is(token - 2, ":") && touches(token - 1);
        if (is(token - 1, ".")) {
            token--;
        } else if (is_scope || is(token - 1, "->")) {
            token -= is_scope ? 2 : 1;
            bool continues = token[-1].kind == WORD || is_one_of(token - 1, ">)]");
            if (!continues || !touches(token)) return token;
        } else {
            return token;
        }
    }
}

/* Does the launch of the kernel [start, end) leave open which function it means? */
static bool is_deduced(const struct rewriter *r, const struct token *start, const struct token *end) {
    struct angles spelt = {0};
    const struct token *name_end = start; /* without template arguments */
    while (name_end < end && !is(name_end, "<")) name_end++;
    if (name_end < end) skip_angles(&r->source, name_end, &spelt);
    const struct function *known = find_function(r, name_end - 1);
    return known != NULL && (known->is_overloaded || known->bodies > 1 || known->is_variadic || known->has_defaults ||
                             (known->is_template && spelt.arguments < known->needed));
}

static void write_launch(struct text *output, const char *shape, const char *kernel, bool deduced) {
    append_format(output, "simt::launch%s(simt::config(%s), \"", deduced ? "_deduced" : "", shape);
    for (const char *p = kernel; *p != '\0'; p++) append_format(output, "%s%c", *p == '"' || *p == '\\' ? "\\" : "", *p);
    append(output, "\", ", 3);
    append_format(output, deduced ? "[=](auto... simt_a) { %s(simt_a...); }, " : "%s)", kernel);
    if (deduced)
        append_format(output, "[](auto... simt_a) -> const void * { if constexpr (requires { "
                      "static_cast<void (*)(decltype(simt_a)...)>(%s); }) return (const void *)"
                      "static_cast<void (*)(decltype(simt_a)...)>(%s); else return nullptr; })", kernel, kernel);
}

/* `token` itself where no launch's shape opens. */
const struct token *rewrite_launch(struct rewriter *r, const struct token *token) {
    const struct source *source = &r->source;
    const struct token *open = shape_opening(token), *last = NULL;
    if (open == NULL) return token;
    if (r->device_only) die(source, "device code only here: kernels are launched by the host");
    const struct token *start = kernel_start(token);
    struct text kernel = take_back(r, start->start);
    if (kernel.length == 0) die(source, "<<< without a kernel before it");
    const struct token *closing = shape_closing(source, open + 1, &last);
    if (closing == NULL) die(source, "<<< without >>>");
    struct text shape = {0};
    append_line(&shape, open->end, closing->text);
    write_launch(&r->output, shape.data, kernel.data, is_deduced(r, start, token));
    const struct token *arguments = skip_markers(last + 1);
    if (is(arguments, "(")) r->arguments_end = skip_brackets(source, arguments);
    catch_up(r, token, last);
    return last + 1;
}

/* cudaLaunchKernel((void *)kernel, ...) is a template of simt_device.h that takes the kernel's type: the end of the cast. */
static const struct token *cast_end(const struct token *token) {
    static const char *const cast[] = {"(", "(", "const", "void", "*", ")"};
    for (size_t i = 0; i < sizeof cast / sizeof *cast; i++) {
        token = skip_markers(token);
        if (!is(token, cast[i]) && strcmp(cast[i], "const") != 0) return NULL;
        token += is(token, cast[i]);
    }
    return token - 1;
}

const struct token *rewrite_launch_call(struct rewriter *r, const struct token *token) {
    copy_token(r, token);
    const struct token *last = cast_end(token + 1);
    if (last == NULL) return token + 1;
    append(&r->output, "(", 1);
    catch_up(r, token, last);
    r->parentheses++;
    return last + 1;
}

/* Variables of the device.
 *
 *     __shared__ float tile[32][33];     ->  auto &tile = simt::static_shared<float[32][33]>(...);
 *     extern __shared__ float tile[];    ->  float *tile = (float *)simt_dynamic_shared();
 *     __device__ int counter;            ->  __attribute__((section("simt_device"))) int counter;
 *                                            (or simt_constant or simt_managed, as its words say)
 *
 * A __shared__ declaration outside of any function becomes one at the head of each device function that names the variable.
 * Invariant: each declarator of a __shared__ declaration becomes one declaration of its own, in their order. */

struct declarator {
    const char *name;
    struct text type, extents; /* with its own *; [32][33] */
};

static _Noreturn void die_of_declaration(const struct source *source) {
    die(source, "a __shared__ declaration that cannot be read: write __shared__ TYPE NAME[SIZE];");
}

/* tile[32][33] or *p, up to `end`. */
static struct declarator read_declarator(const struct source *source, const char *type, const struct token *t,
                                         const struct token *end) {
    struct declarator found = {0};
    append_format(&found.type, "%s", type);
    for (t = skip_markers(t); t < end && is_one_of(t, "*&"); t = skip_markers(t + 1))
        append_format(&found.type, " *");
    if (t >= end || t->kind != WORD) die_of_declaration(source);
    found.name = strndup(t->text, (size_t)(t->end - t->text));
    const struct token *initial = find_outside_brackets(source, t + 1, "=;,{");
    if (initial != NULL && initial < end && is_one_of(initial, "={"))
        die(source, "the __shared__ variable %s cannot have an initial value: one thread must store it, before a barrier",
            found.name);
    append_line(&found.extents, t->end, end->text);
    return found;
}

/* Of dynamic shared memory: a pointer to the first of its elements, or a reference to what is no array. */
static void append_dynamic(struct text *text, const struct source *source, const struct declarator *d) {
    const char *open = strchr(d->extents.data, '['), *close = open != NULL ? strchr(open, ']') : NULL;
    if (open != NULL && close == NULL) die_of_declaration(source);
    if (open != NULL) /* the dimensions after the first are the pointer's */
        append_format(text, "std::add_pointer_t<%s%s> %s = (std::add_pointer_t<%s%s>)simt_dynamic_shared();", d->type.data,
                      close + 1, d->name, d->type.data, close + 1);
    else
        append_format(text, "auto &%s = *(%s *)simt_dynamic_shared();", d->name, d->type.data);
}

/* One of a function's own has a site of its own; functions that name the file's find the same place by a type of its name. */
static void append_static(struct text *text, const struct declarator *d, bool at_file_scope) {
    append_format(text, "auto &%s = simt::static_shared<%s%s>(%s%s{}, \"%s\");", d->name, d->type.data, d->extents.data,
                  at_file_scope ? "simt_site_" : "[] ", at_file_scope ? d->name : "", d->name);
}

/* Take the word out of a type, where it stands as a whole word; false when it does not. */
static bool take_word(struct text *type, const char *word) {
    size_t length = strlen(word);
    for (char *p = type->data; (p = strstr(p, word)) != NULL; p++)
        if ((p == type->data || !is_word(p[-1])) && !is_word(p[length])) {
            memset(p, ' ', length);
            return true;
        }
    return false;
}

/* The type goes on up to the first name that is followed by [ , = { or ; (the token of that name, which this returns). Its
 * attributes are dropped: simt::static_shared() aligns every array to 128 bytes. */
static const struct token *read_type(const struct source *source, const struct token *first, const struct token *end,
                                     struct text *type) {
    const struct token *t = first;
    for (int angle = 0; t < end;) {
        const struct token *past = skip_attribute(source, t);
        bool is_struct = strstr(type->data, "struct") != NULL || strncmp(first->text, "struct", 6) == 0 ||
                         strncmp(first->text, "union", 5) == 0;
        if (past != t) {
            append_line(type, first->text, t->text);
            append(type, " ", 1);
            t = first = skip_markers(past);
        } else if (is(t, "(") || (is(t, "{") && is_struct)) {
            t = skip_brackets(source, t);
        } else {
            angle += is(t, "<") - is(t, ">");
            if (angle == 0 && is_one_of(t, "[,={")) break;
            t++;
        }
    }
    if (t > first && t[-1].kind == WORD) t--;
    append_line(type, first->text, t->text);
    return t;
}

/* A * at the end of the type is the first declarator's: take it off, and return where that begins. */
static const struct token *return_stars(struct text *type, const struct token *name) {
    for (; type->length > 0 && strchr(" \t*", type->data[type->length - 1]) != NULL; type->data[--type->length] = '\0')
        if (type->data[type->length - 1] == '*')
            while (name->kind != START && !is(--name, "*")) {}
    return name;
}

static void rewrite_declarators(struct rewriter *r, const char *type, const struct token *t, const struct token *end,
                                bool is_extern) {
    bool at_file_scope = r->scopes[r->depth].kind == NAMESPACE;
    while (t < end) {
        const struct token *comma = find_outside_brackets(&r->source, t, ",;");
        const struct token *stop = comma != NULL && comma < end ? comma : end;
        struct declarator d = read_declarator(&r->source, type, t, stop);
        struct text declaration = {0};
        append_format(&declaration, "[[maybe_unused]] ");
        if (is_extern)
            append_dynamic(&declaration, &r->source, &d);
        else
            append_static(&declaration, &d, at_file_scope);
        if (at_file_scope && !is_extern) append_format(&r->output, "struct simt_site_%s {};", d.name);
        if (!at_file_scope) {
            append(&r->output, declaration.data, declaration.length);
        } else {
            r->file_shared = resize(r->file_shared, (r->file_shared_count + 1) * sizeof *r->file_shared);
            r->file_shared[r->file_shared_count++] = (struct shared_variable){d.name, declaration.data};
        }
        t = stop + 1;
    }
}

const struct token *rewrite_shared(struct rewriter *r, const struct token *token) {
    size_t start = skip_markers(r->declaration)->start; /* of words that belong to the type */
    struct text type = take_back(r, start + strspn(r->output.data + start, " \t\n\v\f\r"));
    append(&type, " ", 1);
    const struct token *end = find_outside_brackets(&r->source, token + 1, ";");
    if (end == NULL) die(&r->source, "a __shared__ declaration without a semicolon");
    const struct token *name = read_type(&r->source, skip_markers(token + 1), end, &type);
    bool is_extern = take_word(&type, "extern");
    take_word(&type, "static");
    take_word(&type, "__device__");
    name = return_stars(&type, name);
    if (strspn(type.data, " ") == type.length) die_of_declaration(&r->source);
    if (strchr(type.data, '{') != NULL) {
        struct text alias = {0};
        append_format(&alias, "simt_shared_type_%u", r->type_number++);
        append_format(&r->output, "typedef %s %s; ", type.data, alias.data);
        type = alias;
    }
    rewrite_declarators(r, type.data, name, end, is_extern);
    catch_up(r, token, end);
    r->declaration = end + 1;
    r->is_device = false;
    return end + 1;
}

/* At the { of a device function: declare the file's __shared__ variables that its body names; false when there is none. */
bool declare_file_shared(struct rewriter *r, const struct token *brace) {
    if (r->file_shared_count == 0) return false;
    const char *between = "{ ";
    const struct token *end = skip_brackets(&r->source, brace);
    for (size_t i = 0; i < r->file_shared_count; i++) {
        const struct shared_variable *variable = &r->file_shared[i];
        if (!names_word(brace, end, variable->name) || names_word(r->declaration, brace, variable->name)) continue;
        append_format(&r->output, "%s%s", between, variable->declaration);
        between = " ";
    }
    return *between == ' ';
}

/* `token` is the word; is the declaration that of a variable that the program may change? (A constant needs no section: it
 * lies where kernels may read it.) */
static bool is_variable(const struct rewriter *r, const struct token *token) {
    const struct source *source = &r->source;
    if (names_word(r->declaration, token, "constexpr")) return false;
    bool is_const = names_word(r->declaration, token, "const"), is_type = false;
    for (const struct token *t = token + 1, *past; t->kind != END; t = past) {
        if ((past = skip_attribute(source, t)) != t) continue;
        past = t + 1;
        if (is(t, "operator") || is(t, "constexpr") || is_one_of(t, "()")) return false;
        if (is(t, "{") && is_type) {
            past = skip_brackets(source, t);
        } else if (is(t, "<")) {
            struct angles ignored;
            past = skip_angles(source, t, &ignored);
            if (past == NULL) past = t + 1;
        } else if (is_one_of(t, "=;[{")) {
            return !is_const;
        }
        is_type |= is(t, "struct") || is(t, "union") || is(t, "class");
        is_const = (is_const || is(t, "const")) && !is(t, "*");
    }
    return false;
}

/* The section of such a variable: memory/place.c tells its kind by it. Its words stand before and after `t`, in any order. */
static const char *section_of(const struct token *declaration, const struct token *t) {
    while (t->kind != END && !is_one_of(t, "=;[{(")) t++;
    for (; declaration < t; declaration++) {
        if (is(declaration, "__constant__")) return "simt_constant";
        if (is(declaration, "__managed__")) return "simt_managed";
    }
    return "simt_device";
}

const struct token *rewrite_device(struct rewriter *r, const struct token *token) {
    if (is_variable(r, token))
        append_format(&r->output, "__attribute__((section(\"%s\")))", section_of(r->declaration, token));
    else
        r->is_device = true;
    append(&r->output, " ", 1); /* in place of each word: what stood apart must not become one token, or a comment */
    return token + 1;
}

/* Inline PTX.
 *
 *     asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));     ->  (simt_ptx::ex2_approx_f32((y), (x)));
 *
 * Invariant: an instruction or a register is written only when simt_ptx.h, which the program includes before its own text,
 * defines a function of its name; any other is an error here. */

enum { MOST_OPERANDS = 30 };

struct operands {
    struct text expressions[MOST_OPERANDS];
    int count;
};

void note_ptx_names(struct rewriter *r) {
    const struct token *t = r->source.tokens;
    while (t->kind != END && !(is(t, "simt_ptx") && is(t - 1, "namespace") && is(t + 1, "{"))) t++;
    const struct token *end = t;
    while (end->kind != END && !is(end, "end_of_ptx")) end++;
    if (end->kind == END) return;
    for (; t < end; t++) {
        if (!is(t, "(") || t[-1].kind != WORD || !touches(t)) continue;
        r->ptx_names = resize(r->ptx_names, (r->ptx_name_count + 1) * sizeof *r->ptx_names);
        r->ptx_names[r->ptx_name_count++] = t - 1;
    }
}

static bool is_ptx_name(const struct rewriter *r, const char *name) {
    size_t i = 0;
    while (i < r->ptx_name_count && !is(r->ptx_names[i], name)) i++;
    return i < r->ptx_name_count;
}

/* A special register: %laneid, or %%laneid as it stands beside operands. Past its name. */
static const char *rewrite_register(struct rewriter *r, const char *p) {
    size_t length = 0;
    char name[40];
    for (p += p[1] == '%' ? 2 : 1; (is_word(*p) || *p == '.') && length < sizeof name - 1; p++)
        name[length++] = *p == '.' ? '_' : *p;
    name[length] = '\0';
    if (!is_ptx_name(r, name)) die(&r->source, "PTX register %%%s: the simulated device does not have it", name);
    append_format(&r->output, "simt_ptx::%s()", name);
    return p;
}

/* One operand as PTX writes it: %0, [%0 + 16], a number, %%laneid. Several of them in braces come apart before. */
static void rewrite_operand(struct rewriter *r, const char *p, const char *end, const struct operands *operands) {
    while (p < end) {
        if (strchr("[]{}", *p) != NULL) {
            append(&r->output, " ", 1);
            p++;
        } else if (*p == '%' && isdigit((unsigned char)p[1])) {
            char *past;
            long number = strtol(p + 1, &past, 10);
            if (number >= operands->count)
                die(&r->source, "inline PTX names an operand %%%ld that is not there", number);
            append_format(&r->output, "(%s)", operands->expressions[number].data);
            p = past;
        } else if (*p == '%') { /* nvcc takes one of the two %, too */
            p = rewrite_register(r, p);
        } else {
            append(&r->output, p++, 1);
        }
    }
}

/* ldmatrix's shape and number stand in either order: here the shape comes first. */
static void order_qualifiers(char *name) {
    static const char prefix[] = "ldmatrix_sync_aligned_x";
    enum { NUMBER = sizeof prefix - 1 };
    if (strncmp(name, prefix, NUMBER) != 0 || strncmp(name + NUMBER + 1, "_m8n8", 5) != 0) return;
    char number = name[NUMBER];
    memcpy(name + NUMBER - 1, "m8n8_x", 6);
    name[NUMBER + 5] = number;
}

/* The function for an instruction: words joined by _, without hints for caches. */
static void instruction_name(char *name, size_t room, const char *p, const char *end) {
    size_t length = 0;
    while (p < end && length < room - 1) {
        if (strncmp(p, ".L1::", 5) == 0 || strncmp(p, ".L2::", 5) == 0)
            for (p += 5; p < end && is_word(*p);) p++;
        else
            name[length++] = is_word(*p++) ? p[-1] : '_';
    }
    name[length] = '\0';
    order_qualifiers(name);
}

static void rewrite_instruction(struct rewriter *r, const char *p, const char *end, const struct operands *operands) {
    const char *name_end = p + strcspn(p, " \t\n;");
    if (name_end > end) name_end = end;
    char name[100];
    instruction_name(name, sizeof name, p, name_end);
    if (!is_ptx_name(r, name))
        die(&r->source, "PTX instruction %.*s: the simulated device does not have it", (int)(name_end - p), p);
    append_format(&r->output, "simt_ptx::%s(", name);
    for (const char *q = name_end; q < end;) {
        const char *comma = memchr(q, ',', (size_t)(end - q)), *stop = comma != NULL ? comma : end;
        rewrite_operand(r, q, stop, operands);
        if (stop < end) append(&r->output, ", ", 2);
        q = stop + 1;
    }
    append(&r->output, ")", 1);
}

/* All instructions of an asm statement become one expression. */
static void rewrite_instructions(struct rewriter *r, const char *code, const struct operands *operands) {
    const char *between = "(";
    for (const char *p = code; *(p += strspn(p, " \t\n{};")) != '\0';) {
        bool is_comment = strncmp(p, "//", 2) == 0;
        const char *stop = p + strcspn(p, is_comment ? "\n" : ";"), *last = stop;
        while (isspace((unsigned char)last[-1])) last--;
        if (!is_comment) {
            append_format(&r->output, "%s", between);
            rewrite_instruction(r, p, last, operands);
            between = ", ";
        }
        p = stop;
    }
    append_format(&r->output, "%s", *between == '(' ? "((void)0)" : ")");
}

/* Concatenated string literals, unescaped; past them. */
static const struct token *read_strings(const struct source *source, const struct token *token, struct text *code) {
    append(code, "", 0);
    for (token = skip_markers(token);; token = skip_markers(token + 1)) {
        if (*token->text == 'R' && token->kind == LITERAL) die(source, "inline PTX in a raw string: write it as a plain one");
        if (*token->text != '"') return token;
        for (const char *p = token->text + 1; p < token->end - 1; p++) {
            bool escaped = *p == '\\';
            p += escaped;
            append(code, escaped && *p == 'n' ? "\n" : escaped && *p == 't' ? "\t" : p, 1);
        }
    }
}

/* Outputs and inputs, "=f"(y) : "f"(x): their expressions. What follows them is of no concern. */
static void read_operands(const struct source *source, const struct token *token, struct operands *operands) {
    for (int section = 0; is(token, ":") && section < 2; section++) {
        token = skip_markers(token + 1);
        while (*token->text == '"' || is(token, "[")) {
            if (is(token, "[")) die(source, "inline PTX with named operands: write %%0, %%1");
            const struct token *expression = skip_markers(token + 1);
            if (!is(expression, "(") || operands->count == MOST_OPERANDS)
                die(source, "inline PTX whose operands cannot be read");
            token = skip_brackets(source, expression);
            append_line(&operands->expressions[operands->count++], expression->end, token[-1].text);
            token = skip_markers(token);
            if (is(token, ",")) token = skip_markers(token + 1);
        }
    }
}

const struct token *rewrite_asm(struct rewriter *r, const struct token *token) {
    const struct token *t = skip_markers(token + 1);
    while (is(t, "volatile") || is(t, "__volatile__") || is(t, "inline")) t = skip_markers(t + 1);
    if (!is(t, "(")) die(&r->source, "asm without (");
    const struct token *end = skip_brackets(&r->source, t);
    struct text code = {0};
    struct operands operands = {0};
    t = read_strings(&r->source, t + 1, &code);
    read_operands(&r->source, t, &operands);
    rewrite_instructions(r, code.data, &operands);
    catch_up(r, token, end - 1);
    return end;
}

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
static const char *const refused_headers[] = {
    "/thrust/",  "/cub/",  "/nv/target", "/cuda/std/", "/cutlass/", "/cute/", "/cudnn", "/curand", "/cufft",
    "/cusparse", "/cusolver", "/nvrtc", "/npp", "/nccl", "/nvml", "/cuda_gl_interop.h", "/torch/", "/texture_"};

/* Flags 1 and 3 of a marker: a system header begins. A program's own header may have such a name. */
static void refuse_header(const struct rewriter *r, const struct token *marker) {
    const char *name = marker->text + strcspn(marker->text, "\"\n");
    const char *end = *name == '"' ? name + 1 + strcspn(name + 1, "\"\n") : name;
    if (strncmp(end, "\" 1", 3) != 0 || strncmp(end + 3, " 3", 2) != 0) return;
    for (size_t i = 0; i < sizeof refused_headers / sizeof *refused_headers; i++) {
        const char *found = memmem(name, (size_t)(end - name), refused_headers[i], strlen(refused_headers[i]));
        if (found == NULL) continue;
        die(&r->source, "#include <%.*s>: the simulated device does not have it", (int)(end - found - 1), found + 1);
    }
}

static const struct token *rewrite_directive(struct rewriter *r, const struct token *token) {
    copy_token(r, token);
    if (strncmp(token->text, "#pragma simt ", 13) != 0) return token + 1;
    r->device_only = token->text[13] == 'd';
    return r->declaration = token + 1; /* no declaration begins before it */
}

/* All that a kernel calls becomes part of it, as with nvcc. g++ puts no hook before the store of a struct that a function
 * returns, but does before the copy that is left of it once the function is inlined. */
static const struct token *rewrite_global(struct rewriter *r, const struct token *token) {
    r->is_device = true;
    return write_instead(r, token, "__attribute__((flatten))");
}

static const struct token *rewrite_bounds(struct rewriter *r, const struct token *token) {
    const struct token *past = skip_attribute(&r->source, token);
    if (past == token) return leave_out(r, token);
    const struct token *open = skip_markers(token + 1), *comma = find_outside_brackets(&r->source, open + 1, ",");
    r->bounds = (struct text){0};
    append_line(&r->bounds, open->end, (comma != NULL && comma < past ? comma : past - 1)->text);
    catch_up(r, token, past - 1);
    leave_out(r, token);
    return past;
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

static const struct {
    const char *word;
    rewriting *rewrite;
} words[] = {
    {"__global__", rewrite_global}, {"__shared__", rewrite_shared}, {"__launch_bounds__", rewrite_bounds},
    {"__device__", rewrite_device}, {"__constant__", rewrite_device}, {"__managed__", rewrite_device},
    {"__host__", leave_out}, {"__noinline__", rewrite_noinline}, {"__null", rewrite_null},
    {"asm", rewrite_asm}, {"__asm", rewrite_asm}, {"__asm__", rewrite_asm},
    {"cudaLaunchKernel", rewrite_launch_call}, {"cudaLaunchCooperativeKernel", rewrite_launch_call},
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
    if (r->parentheses == 0) r->is_device = false;
    return r->declaration = token + 1;
}

static const struct token *open_scope(struct rewriter *r, const struct token *brace) {
    if (r->depth + 1 == DEEPEST) die(&r->source, "braces nested too deep");
    enum scope_kind kind = scope_opened(r, brace);
    if (kind == FUNCTION) note_function(r, r->declaration, brace, true);
    if (r->is_device && kind == FUNCTION && declare_file_shared(r, brace)) kind = SHARED_FUNCTION;
    r->scopes[++r->depth] = (struct scope){kind, r->parentheses};
    copy_token(r, brace);
    if (r->bounds.data != NULL && (kind == FUNCTION || kind == SHARED_FUNCTION))
        append_format(&r->output, " simt_launch_bounds(%s);", r->bounds.data);
    r->bounds = (struct text){0};
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
    r->bounds = (struct text){0};
    return begin_after(r, semicolon);
}

static const struct token *rewrite_symbol(struct rewriter *r, const struct token *token) {
    const struct token *past = rewrite_launch(r, token);
    if (past != token) return past;
    if (is(token, "{")) return open_scope(r, token);
    if (is(token, "}")) return close_scope(r, token);
    if (is(token, ";")) return end_statement(r, token);
    r->parentheses += is(token, "(");
    r->parentheses -= is(token, ")") && r->parentheses > 0;
    return copy_token(r, token);
}

static const struct token *rewrite_token(struct rewriter *r, const struct token *token) {
    bool is_marker = token->kind == LINE_MARKER;
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
        past = rewrite_token(r, token);
        while (++token < past) token->start = r->output.length;
    }
}

static const char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    struct text text = {0};
    if (getdelim(&text.data, &text.room, '\0', file) < 0) append(&text, "", 0); /* an empty file */
    fclose(file);
    return text.data;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s INPUT.ii OUTPUT.ii\n", argv[0]);
        return 2;
    }
    static struct rewriter r;
    r.source = tokenise(read_file(argv[1]));
    r.declaration = r.arguments_end = r.source.tokens;
    append(&r.output, "", 0);
    note_ptx_names(&r);
    rewrite(&r);
    FILE *file = fopen(argv[2], "wb");
    if (file != NULL && fwrite(r.output.data, 1, r.output.length, file) == r.output.length && fclose(file) == 0) return 0;
    perror(argv[2]);
    return 1;
}
