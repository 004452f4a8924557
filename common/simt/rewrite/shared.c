/* Variables of the device.
 *
 *     __shared__ float tile[32][33];     ->  auto &tile = simt::static_shared<float[32][33]>(...);
 *     extern __shared__ float tile[];    ->  float *tile = (float *)simt_dynamic_shared(alignof(float) ...);
 *     __device__ int counter;            ->  __attribute__((section("simt_device"))) int counter;
 *                                            (or simt_constant or simt_managed, as its words say)
 *
 * A __shared__ declaration outside of any function becomes one at the head of each device function that names the variable
 * and can see it.
 * Invariant: each declarator of a __shared__ declaration becomes one declaration of its own, in their order. */
#include "rewrite.h"

struct declarator {
    const char *name;
    struct text type, extents; /* with its own *; [32][33] */
    const char *attributes;    /* alignas(1024), or nothing */
};

static _Noreturn void die_of_declaration(const struct source *source) {
    die(source, "a __shared__ declaration that cannot be read: write __shared__ TYPE NAME[SIZE];");
}

enum declared { NOT_DECLARED, VARIABLE, CONSTANT, CONST }; /* the last may be known only when the kernel runs */

/* What TYPE NAME and then = , ; or ) declares, where the type words only. */
static enum declared declared_as(const struct token *name) {
    if (name[-1].kind != WORD || !is_one_of(name + 1, "=,;)")) return NOT_DECLARED;
    enum declared found = VARIABLE;
    for (const struct token *t = name - 1; (t->kind == WORD || t->kind == SYMBOL) && !is_one_of(t, ";{}(,)"); t--) {
        if ((t->kind == SYMBOL && !is(t, ":")) || is(t, "return") || is(t, "else")) return NOT_DECLARED;
        if (is(t, "constexpr")) found = CONSTANT;
        if (is(t, "const") && found == VARIABLE) found = CONST;
    }
    return found;
}

static const struct token *first_variable(const struct token *from, const struct token *end, int blocks);

/* Does the name change while the program runs? Looks back at what is visible before `here`, in as many open blocks: those that
 * are closed are passed over, and so are parentheses, but for those before an open block. */
static bool is_variable_here(const struct token *here, int blocks, const struct token *name) {
    static const char *const built_in[] = {"blockDim", "gridDim", "blockIdx", "threadIdx"};
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
        if (is(name, built_in[i])) return true;
    for (const struct token *t = here - 1; t->kind != START; t--) {
        if (is(t, "{") && blocks-- == 0) break;
        if (is_one_of(t, ")]}") && !(is(t, ")") && is(t + 1, "{"))) t = opening(t);
        if (is(t, "(") && blocks == 0) break; /* of the parameters */
        if (!is_same_word(t, name)) continue;
        enum declared found = declared_as(t);
        if (found == CONST && is(t + 1, "=")) {
            const struct token *end = t + 1;
            while (end->kind != END && !is_one_of(end, ";,")) end++;
            return first_variable(t + 1, end, blocks) != NULL;
        }
        if (found != NOT_DECLARED) return found == VARIABLE;
    }
    return false;
}

/* The first name in an expression whose value is known only when the kernel runs; NULL when there is none, or it cannot be
 * told. */
static const struct token *first_variable(const struct token *from, const struct token *end, int blocks) {
    if (names_word(from, end, "sizeof") || names_word(from, end, "decltype")) return NULL;
    for (const struct token *t = from; t < end; t++)
        if (t->kind == WORD && !is_one_of(t - 1, ".:") && !is(t - 1, "->") && is_variable_here(from - 1, blocks, t)) return t;
    return NULL;
}

/* The first name in the extents of the declarator whose value is known only when the kernel runs. */
static const struct token *variable_extent(const struct rewriter *r, const struct token *declarator, const struct token *end) {
    while (declarator < end && !is(declarator, "[")) declarator++;
    int depth = r->depth;
    while (depth > 0 && r->scopes[depth].kind != FUNCTION && r->scopes[depth].kind != SHARED_FUNCTION) depth--;
    return depth > 0 ? first_variable(declarator, end, r->depth - depth + 1) : NULL;
}

void check_array(const struct rewriter *r, const struct token *bracket) {
    static const char *const other[] = {"return", "else", "do", "throw", "new", "delete", "case", "goto"};
    const struct token *type = bracket - 2;
    if (!r->scopes[r->depth].is_marked || r->parentheses > 0 || bracket[-1].kind != WORD || type->kind != WORD) return;
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (is(type, other[i]) || is(type + 1, other[i])) return;
    if (is_one_of(type - 1, "+-*/%=&|^<!~?.") || is(type - 1, "return")) return; /* the end of an expression, without its ; */
    const struct token *end = bracket;
    while (is(end, "[")) end = skip_brackets(&r->source, end);
    const struct token *t = variable_extent(r, bracket, end);
    if (t != NULL)
        die(&r->source, "the size of an array in device code must be a constant, and %.*s is known only when the kernel runs",
            (int)(t->end - t->text), t->text);
}

/* A card's compiler lays shared memory out before the kernel runs. */
static void check_extents(const struct rewriter *r, const struct token *declarator, const struct token *end) {
    const struct token *t = variable_extent(r, declarator, end);
    if (t != NULL)
        die(&r->source,
            "the size of a __shared__ array must be a constant, and %.*s is known only when the kernel runs: write a number, "
            "or extern __shared__ TYPE NAME[] and the bytes as the third launch argument",
            (int)(t->end - t->text), t->text);
}

/* tile[32][33] or *p, up to `end`. */
static struct declarator read_declarator(const struct source *source, const char *type, const struct token *t,
                                         const struct token *end) {
    struct declarator found = {0};
    append_format(&found.type, "%s", type);
    for (t = skip_markers(t); t < end && is_one_of(t, "*&"); t = skip_markers(t + 1)) append_format(&found.type, " *");
    if (t >= end || t->kind != WORD) die_of_declaration(source);
    found.name = strndup(t->text, (size_t)(t->end - t->text));
    const struct token *past = skip_markers(t + 1);
    while (past < end && is(past, "[")) past = skip_markers(skip_brackets(source, past));
    if (past < end && past->kind == WORD && skip_attribute(source, past) == past)
        die(source, "expected ; after the __shared__ variable %s", found.name);
    const struct token *initial = find_outside_brackets(source, t + 1, "=;,{");
    if (initial != NULL && initial < end && is_one_of(initial, "={"))
        die(source, "the __shared__ variable %s cannot have an initial value: one thread must store it, before a barrier",
            found.name);
    append_line(&found.extents, t->end, end->text);
    return found;
}

/* A struct with the alignment that the attributes of the variable name, as __align__(16). */
static void append_alignment(struct text *text, const struct declarator *d) {
    append_format(text, "struct simt_aligned_%s { %s char first; }; ", d->name, d->attributes);
}

/* Of dynamic shared memory: a pointer to the first of its elements, or a reference to what is no array. */
static void append_dynamic(struct text *text, const struct source *source, const struct declarator *d) {
    const char *open = strchr(d->extents.data, '['), *close = open != NULL ? strchr(open, ']') : NULL;
    if (open != NULL && close == NULL) die_of_declaration(source);
    append_alignment(text, d);
    if (open != NULL) /* the dimensions after the first are the pointer's */
        append_format(text, "[[maybe_unused]] std::add_pointer_t<%s%s> %s = (std::add_pointer_t<%s%s>)", d->type.data,
                      close + 1, d->name, d->type.data, close + 1);
    else
        append_format(text, "[[maybe_unused]] auto &%s = *(%s *)", d->name, d->type.data);
    append_format(text, "simt_dynamic_shared(alignof(%s) > alignof(simt_aligned_%s) ? alignof(%s) : alignof(simt_aligned_%s));",
                  d->type.data, d->name, d->type.data, d->name);
}

/* One of a function's own has a site of its own; functions that name the file's find the same place by a type of its name. */
static void append_static(struct text *text, const struct declarator *d, bool at_file_scope) {
    append_alignment(text, d);
    append_format(text, "[[maybe_unused]] auto &%s = ", d->name);
    append_format(text, "simt::static_shared<%s%s, alignof(simt_aligned_%s)>(%s%s{}, \"%s\");", d->type.data, d->extents.data,
                  d->name, at_file_scope ? "simt_site_" : "[] ", at_file_scope ? d->name : "", d->name);
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
 * attributes are of the variable: they go to a text of their own. */
static const struct token *read_type(const struct source *source, const struct token *first, const struct token *end,
                                     struct text *type, struct text *attributes) {
    const struct token *t = first;
    for (int angle = 0; t < end;) {
        const struct token *past = skip_attribute(source, t);
        bool is_struct = strstr(type->data, "struct") != NULL || strncmp(first->text, "struct", 6) == 0 ||
                         strncmp(first->text, "union", 5) == 0;
        if (past != t) {
            append_line(type, first->text, t->text);
            append(type, " ", 1);
            append_line(attributes, t->text, past->text);
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
            while (name->kind != START && !is(--name, "*")) {
            }
    return name;
}

static void rewrite_declarators(struct rewriter *r, const char *type, const char *attributes, const struct token *t,
                                const struct token *end, bool is_extern) {
    bool at_file_scope = r->scopes[r->depth].kind == NAMESPACE;
    while (t < end) {
        const struct token *comma = find_outside_brackets(&r->source, t, ",;");
        const struct token *stop = comma != NULL && comma < end ? comma : end;
        struct declarator d = read_declarator(&r->source, type, t, stop);
        d.attributes = attributes;
        if (!is_extern) check_extents(r, t, stop);
        struct text declaration = {0}, *to = at_file_scope ? &declaration : &r->output;
        if (is_extern)
            append_dynamic(to, &r->source, &d);
        else
            append_static(to, &d, at_file_scope);
        if (at_file_scope && !is_extern) append_format(&r->output, "struct simt_site_%s {};", d.name);
        if (at_file_scope) {
            r->file_shared = resize(r->file_shared, (r->file_shared_count + 1) * sizeof *r->file_shared);
            r->file_shared[r->file_shared_count++] =
                (struct shared_variable){d.name, r->scopes[r->depth].path, declaration.data};
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
    struct text attributes = {0};
    append_format(&attributes, "%s", "");
    const struct token *name = read_type(&r->source, skip_markers(token + 1), end, &type, &attributes);
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
    rewrite_declarators(r, type.data, attributes.data, name, end, is_extern);
    catch_up(r, token, end);
    r->declaration = end + 1;
    r->is_device = false;
    return end + 1;
}

/* Can a function that begins with `brace` mean the variable without its namespace's name? That namespace is around the function,
 * has no name or is inline, the function's own name is qualified by it, or some `using` names it. */
static bool is_visible(const struct rewriter *r, const struct token *brace, const struct shared_variable *variable) {
    const char *last = strrchr(variable->path, ':');
    if (nearness(r, variable->path) > 0 || last[1] == '\0' || names_word(r->declaration, brace, last + 1)) return true;
    for (const struct token *t = brace; t->kind != START; t--) {
        if (!is(t, last + 1) || is(t + 1, ":")) continue; /* the latter is of another's path */
        if (is(t - 1, "namespace") && is(t - 2, "inline")) return true;
        for (const struct token *u = t - 1; u->kind == WORD || is(u, ":"); u--)
            if (is(u, "using")) return true;
    }
    return false;
}

/* Does another namespace's variable of this name come first here? */
static bool has_nearer(const struct rewriter *r, const struct shared_variable *variable) {
    for (const struct shared_variable *v = r->file_shared; v < r->file_shared + r->file_shared_count; v++)
        if (strcmp(v->name, variable->name) == 0 && nearness(r, v->path) > nearness(r, variable->path)) return true;
    return false;
}

/* At the { of a device function: declare the file's __shared__ variables that its body names; false when there is none. */
bool declare_file_shared(struct rewriter *r, const struct token *brace) {
    if (r->file_shared_count == 0) return false;
    const char *between = "{ ";
    const struct token *end = skip_brackets(&r->source, brace);
    for (size_t i = 0; i < r->file_shared_count; i++) {
        const struct shared_variable *variable = &r->file_shared[i];
        if (!names_word(brace, end, variable->name) || names_word(r->declaration, brace, variable->name)) continue;
        if (!is_visible(r, brace, variable) || has_nearer(r, variable)) continue;
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
