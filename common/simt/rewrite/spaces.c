/* Where functions run. As nvcc does, this refuses a kernel that returns a value or takes what it cannot use, a call of the host's
 * function in device code and of the device's function on the host, a call of a kernel, and the launch of what is no kernel.
 *
 * Invariant: only what can mean nothing else is refused. Calls and launches are judged at the end, when all declarations are
 * noted; a name that has another meaning anywhere (an overload, a variable, a member, a template, a function of a system
 * header) is left to the compiler. */
#include "rewrite.h"

static bool is_one_word_of(const struct token *token, const char *const *words) {
    while (*words != NULL && !is(token, *words)) words++;
    return *words != NULL;
}

/* Does a type end with the token, so that what follows it is declared here? */
static bool ends_type(const struct token *token) {
    static const char *const other[] = {"return", "else", "do", "throw", "and", "or", "not", NULL};
    return token->kind == WORD && !is_one_word_of(token, other);
}

/* Is it not only the host's although it is not marked? Of float (f)(...) and float (*f(...))(...) the name is another one. */
static bool may_run_anywhere(const struct rewriter *r, const struct token *parenthesis) {
    static const char *const words[] = {"template", "constexpr", "consteval", NULL};
    const struct token *t = r->declaration;
    while (t < parenthesis && !is_one_word_of(t, words)) t++;
    return t < parenthesis || is(skip_markers(skip_brackets(&r->source, parenthesis)), "(");
}

void note_space(struct rewriter *r, struct function *function, const struct token *parenthesis) {
    static const char *const values[] = {"int", "float", "double", "bool", "char", "long", "unsigned", "*", NULL};
    if (r->is_kernel && is_one_word_of(parenthesis - 2, values)) {
        r->source.at = parenthesis - 1;
        die(&r->source, "a __global__ function returns nothing: write void as its type, and store results through a pointer");
    }
    bool anywhere = may_run_anywhere(r, parenthesis);
    unsigned of_device = r->is_host ? DEVICE | HOST : DEVICE;
    function->spaces |= r->is_kernel ? KERNEL : r->is_device ? of_device : anywhere ? ANYWHERE : HOST;
    function->declarations += ends_type(parenthesis - 2);
}

/* Of a kernel: an rvalue reference, and in its body a parameter that is a container of the standard library. */
void check_parameters(struct rewriter *r, const struct token *parenthesis, const struct token *body) {
    static const char *const containers[] = {"vector", "string", "map", "set", "list", "deque", "function", NULL};
    const struct token *end = skip_brackets(&r->source, parenthesis), *container = NULL;
    for (const struct token *t = parenthesis + 1; t < end; t++) {
        if (is(t, "&") && is(t + 1, "&") && touches(t + 1)) {
            r->source.at = t;
            die(&r->source, "a __global__ function takes no rvalue reference: write the type without &&");
        }
        if (is_one_word_of(t, containers) && (is(t + 1, "<") || is(t - 1, ":"))) container = t;
        if (container == NULL || t->kind != WORD || !is_one_of(t + 1, ",)")) continue;
        if (body != NULL && names_word(body, skip_brackets(&r->source, body), strndup(t->text, (size_t)(t->end - t->text)))) {
            r->source.at = t;
            die(&r->source,
                "device code uses %.*s, a std::%.*s, whose elements and functions are the host's: pass a pointer to device "
                "memory",
                (int)(t->end - t->text), t->text, (int)(container->end - container->text), container->text);
        }
        container = NULL;
    }
}

void note_use(struct rewriter *r, const struct token *name, int how) {
    r->uses = resize(r->uses, (r->use_count + 1) * sizeof *r->uses);
    r->uses[r->use_count++] = (struct use){name, how};
}

/* f( in a function, where it declares nothing and is not only asked for its type. */
void note_call(struct rewriter *r, const struct token *name) {
    const struct scope *scope = &r->scopes[r->depth];
    if (!(scope->is_device || scope->is_host) || !is(skip_markers(name + 1), "(")) return;
    if (scope->is_host && (is_one_of(name - 1, ".:") || is(name - 1, "->") || r->is_device)) return;
    if (names_word(r->declaration, name, "sizeof") || names_word(r->declaration, name, "decltype")) return;
    if (!ends_type(name - 1)) note_use(r, name, scope->is_device ? FROM_DEVICE : FROM_HOST);
}

static bool has_other_meaning(const struct rewriter *r, const struct function *function) {
    int declarations = 0, noted = 0;
    for (const struct function *f = r->functions; f < r->functions + r->function_count; f++)
        noted += is_same_word(f->name, function->name) ? f->declarations : 0;
    for (const struct token *t = r->source.tokens; t->kind != END; t++) {
        if (!is_same_word(t, function->name)) continue;
        bool is_function = is(t + 1, "("), is_declared = ends_type(t - 1);
        if (t->is_system && is_function && (is_declared || is_one_of(t - 1, "*&"))) return true;
        if (t->is_system) continue;
        declarations += is_function && is_declared;
        if (!is_function && !is(t + 1, "<") && (is_declared || is_one_of(t - 1, "*&>["))) return true;
    }
    return declarations > noted;
}

void check_uses(struct rewriter *r) {
    static const unsigned refused[] = {[LAUNCH] = HOST | DEVICE, [FROM_DEVICE] = HOST | KERNEL, [FROM_HOST] = DEVICE | KERNEL};
    for (const struct use *use = r->uses; use < r->uses + r->use_count; use++) {
        const struct function *function = NULL;
        unsigned spaces = 0;
        for (const struct function *f = r->functions; f < r->functions + r->function_count; f++) {
            if (!is_same_word(f->name, use->name)) continue;
            spaces |= f->spaces;
            if (f->bodies > 0) function = f;
        }
        if (function == NULL || (spaces & ~refused[use->how]) != 0 || has_other_meaning(r, function)) continue;
        r->source.at = use->name;
        int length = (int)(function->name->end - function->name->text);
        const char *name = function->name->text;
        if (use->how != LAUNCH && (spaces & KERNEL) != 0)
            die(&r->source, "%.*s is a kernel, which is launched: write %.*s<<<blocks, threads>>>(...)", length, name, length,
                name);
        die(&r->source,
            use->how == LAUNCH ? "%.*s is no kernel, and only kernels are launched: write __global__ before it, at %s:%d"
            : use->how == FROM_DEVICE
                ? "device code calls %.*s(), a function of the host: write __device__ before it, at %s:%d"
                : "the host calls %.*s(), a function of the device: write __host__ before it, too, at %s:%d",
            length, name, function->name->file, function->name->line);
    }
}
