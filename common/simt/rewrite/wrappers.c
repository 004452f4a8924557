/* A function of a header around one asm statement stands for an instruction: messages and counts name the line that calls it.
 * "artificial" says so in the debugging information, which report/lines.c reads. Where the instruction takes a place, the
 * function has two parameters more, by default the place of its call. */
#include "rewrite.h"

static bool is_asm(const struct token *t) { return is(t, "asm") || is(t, "__asm") || is(t, "__asm__"); }

/* The name of the function whose body holds this asm and at most two statements besides it: the address before it, say, and
 * a return. NULL: another one. */
static const struct token *wrapper_name(const struct source *source, const struct token *statement) {
    const struct token *brace = statement;
    while (brace->kind != START && !is(brace, "{")) brace = is_one_of(brace, ")]}") ? opening(brace) - 1 : brace - 1;
    if (brace->kind == START || !is(brace - 1, ")")) return NULL;
    int statements = 0;
    const struct token *end = skip_brackets(source, brace) - 1, *name = opening(brace - 1) - 1;
    for (const struct token *t = brace + 1; t < end; t++) {
        if (is(t, "{") || (is_asm(t) && t != statement)) return NULL;
        statements += is(t, ";");
    }
    if (is(name, ">")) name = opening(name) - 1;
    bool is_function = name->kind == WORD && (name[-1].kind == WORD || is_one_of(name - 1, "*&>"));
    return is_function && !is(name - 1, "else") && !is(name, "constexpr") && statements <= 3 ? name : NULL;
}

/* The next NAME(...) or NAME<...>(...), from `t` on, and its ); the END where there is none. */
static struct token *find_use(const struct source *source, struct token *t, const struct token *name, struct token **end) {
    struct angles ignored;
    for (; t->kind != END; t++) {
        if (!is_same_word(t, name)) continue;
        const struct token *open = is(t + 1, "<") ? skip_angles(source, t + 1, &ignored) : t + 1;
        if (open == NULL || !is(open, "(")) continue;
        *end = t + (skip_brackets(source, open) - 1 - t);
        return t;
    }
    return t;
}

static bool has_body(const struct token *end) { return is(skip_markers(end + 1), "{"); }

static void add_parameters(struct token *end, bool has_defaults) {
    end->before = has_defaults ? ", const char *simt_file = __builtin_FILE(), int simt_line = __builtin_LINE()"
                               : ", [[maybe_unused]] const char *simt_file, [[maybe_unused]] int simt_line";
    if (is(end - 1, "(")) end->before += 2;
}

/* A template's specialisations have the parameters without defaults, which its declaration gives. False, and nothing is done,
 * where a function is declared before: its definition could have no defaults. */
static bool take_place(const struct source *source, const struct token *name) {
    struct token *end, *t = find_use(source, source->tokens, name, &end);
    while (t != name && has_body(end)) t = find_use(source, t + 1, name, &end); /* overloads */
    const struct token *declaration = t;
    while (declaration->kind != START && !is_one_of(declaration - 1, ";{}")) declaration--;
    bool is_template = t != name && names_word(declaration, t, "template"), is_specialisation = is(name + 1, "<");
    if (is_template != is_specialisation || (t != name && !is_template)) return false;
    add_parameters(end, true);
    while (is_specialisation && (t = find_use(source, t + 1, name, &end))->kind != END)
        if (is(t + 1, "<") && has_body(end)) add_parameters(end, false);
    return true;
}

void note_wrappers(struct rewriter *r) {
    struct token *tokens = r->source.tokens;
    for (struct token *t = tokens; t->kind != END; t++) {
        const char *suffix = is_asm(t) && !t->is_system ? strrchr(t->file, '.') : NULL;
        const struct token *name = suffix != NULL && strcmp(suffix, ".cu") != 0 ? wrapper_name(&r->source, t) : NULL;
        if (name == NULL) continue;
        tokens[name - tokens].before = "__attribute__((artificial)) ";
        r->source.at = t;
        t->passes_place = true;
        rewrite_asm(r, t); /* does what comes of it name the parameters? */
        t->passes_place = strstr(r->output.data, "simt_line") != NULL && take_place(&r->source, name);
        r->output.length = 0;
    }
}
