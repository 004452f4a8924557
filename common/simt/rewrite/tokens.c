/* Text to tokens, once, and ways over them. g++ -E has left no comments and no continued lines. The tokens' places are told
 * by its line markers. Invariants: tokens stand in the order of the text, overlap nowhere, and only blanks are between them;
 * START and END stand around them, so that token[-1] and token[1] of each are there; a string or character literal that does
 * not end on its line is a SYMBOL, its quote. */
#include "rewrite.h"
#include <ctype.h>
#include <err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void *resize(void *memory, size_t bytes) {
    memory = realloc(memory, bytes);
    if (memory == NULL) errx(1, "out of memory");
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
    if (length < 0) errx(1, "out of memory");
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
    if (place->file == NULL) errx(1, "out of memory");
    const char *suffix = strrchr(place->file, '.'); /* the device's own .cuh are written as programs are */
    place->is_system =
        memmem(flags, (size_t)(marker->end - flags), " 3", 2) != NULL && (suffix == NULL || strcmp(suffix, ".cuh") != 0);
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

bool is_same_word(const struct token *a, const struct token *b) {
    size_t length = (size_t)(a->end - a->text);
    return a->kind == WORD && (size_t)(b->end - b->text) == length && memcmp(a->text, b->text, length) == 0;
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

const struct token *opening(const struct token *token) {
    bool is_angle = is(token, ">");
    for (int angles = 0, brackets = 0; token->kind != START; token--) {
        brackets += is_one_of(token, ")]}") - is_one_of(token, "([{");
        if (brackets == 0) angles += is(token, ">") - is(token, "<");
        if (is_angle ? angles <= 0 : brackets <= 0) break;
    }
    return token;
}

const struct token *skip_attribute(const struct source *source, const struct token *token) {
    if (!is(token, "alignas") && !is(token, "__attribute__") && !is(token, "__launch_bounds__") &&
        !is(token, "__cluster_dims__"))
        return token;
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
