/* Where functions run. As nvcc does, this refuses a kernel that returns a value, a call of the host's function in device code,
 * and the launch of what is no kernel.
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
    function->spaces |= r->is_kernel ? KERNEL : r->is_device ? DEVICE : anywhere ? ANYWHERE : HOST;
    function->declarations += ends_type(parenthesis - 2);
}

void note_use(struct rewriter *r, const struct token *name, bool is_launch) {
    r->uses = resize(r->uses, (r->use_count + 1) * sizeof *r->uses);
    r->uses[r->use_count++] = (struct use){name, is_launch};
}

/* f( in a device function, where it declares nothing and is not only asked for its type. */
void note_call(struct rewriter *r, const struct token *name) {
    if (!r->scopes[r->depth].is_device || !is(skip_markers(name + 1), "(")) return;
    if (names_word(r->declaration, name, "sizeof") || names_word(r->declaration, name, "decltype")) return;
    if (!ends_type(name - 1)) note_use(r, name, false);
}

static bool has_other_meaning(const struct rewriter *r, const struct function *function) {
    int declarations = 0;
    for (const struct token *t = r->source.tokens; t->kind != END; t++) {
        if (!is_same_word(t, function->name)) continue;
        bool is_function = is(t + 1, "("), is_declared = ends_type(t - 1);
        if (t->is_system && is_function && (is_declared || is_one_of(t - 1, "*&"))) return true;
        if (t->is_system) continue;
        declarations += is_function && is_declared;
        if (!is_function && !is(t + 1, "<") && (is_declared || is_one_of(t - 1, "*&>["))) return true;
    }
    return declarations > function->declarations;
}

void check_uses(struct rewriter *r) {
    for (const struct use *use = r->uses; use < r->uses + r->use_count; use++) {
        const struct function *function = find_function(r, use->name);
        unsigned refused = use->is_launch ? HOST | DEVICE : HOST;
        if (function == NULL || function->bodies == 0 || (function->spaces & ~refused) != 0) continue;
        if (has_other_meaning(r, function)) continue;
        r->source.at = use->name;
        die(&r->source,
            use->is_launch ? "%.*s is no kernel, and only kernels are launched: write __global__ before it, at %s:%d"
                           : "device code calls %.*s(), a function of the host: write __device__ before it, at %s:%d",
            (int)(function->name->end - function->name->text), function->name->text, function->name->file,
            function->name->line);
    }
}
