/* Kernels and their launches.
 *
 *     kernel<<<grid, block>>>(a, b)      ->  simt::launch(simt::config(grid, block), "kernel", kernel)(a, b)
 *
 * A kernel whose function the compiler can tell by the launch's arguments only (an overload, a template whose arguments are
 * left to be deduced) is called from a generic lambda. Invariant: when the pass comes to a launch, all declarations before it
 * are noted, so that the table of functions tells of which kind its kernel is. */
#include "rewrite.h"

size_t nearness(const struct rewriter *r, const char *path) {
    const char *here = r->scopes[r->depth].path;
    size_t length = strlen(path);
    return strncmp(path, here, length) == 0 && (here[length] == '\0' || here[length] == ':') ? 1 + length : 0;
}

/* What a launch here means by the name: of NAMESPACE::name, that of such a namespace; otherwise the nearest. Where that does not
 * tell (using namespace), all of the name count as overloads. */
static struct function launched(const struct rewriter *r, const struct token *name) {
    struct function found = {0};
    size_t best = 0;
    bool is_qualified = is(name - 1, ":") && name[-3].kind == WORD;
    for (struct function *f = r->functions; f < r->functions + r->function_count; f++) {
        if (!is_same_word(f->name, name)) continue;
        const char *last = strrchr(f->path, ':');
        size_t rank = !is_qualified ? nearness(r, f->path) : last != NULL && is(name - 3, last + 1);
        bool is_other = found.name != NULL && rank == best;
        if (found.name == NULL || rank > best) found = *f, best = rank;
        found.is_overloaded |= is_other;
    }
    return found;
}

static struct function *note_parameters(struct rewriter *r, const struct token *parenthesis) {
    struct function *function = r->functions;
    const char *path = r->scopes[r->depth].path;
    while (function < r->functions + r->function_count &&
           !(is_same_word(function->name, parenthesis - 1) && strcmp(function->path, path) == 0))
        function++;
    if (function == r->functions + r->function_count) {
        r->functions = resize(r->functions, (r->function_count + 1) * sizeof *r->functions);
        function = &r->functions[r->function_count++];
        *function = (struct function){.name = parenthesis - 1, .path = path, .commas = -1};
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
            note_space(r, function, token);
            if (r->is_kernel) check_parameters(r, token, has_body ? end : NULL);
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
    struct function known = launched(r, name_end - 1);
    return known.is_overloaded || known.bodies > 1 || known.is_variadic || known.has_defaults ||
           (known.is_template && spelt.arguments < known.needed);
}

static void write_launch(struct text *output, const char *shape, const char *kernel, bool deduced) {
    append_format(output, "simt::launch%s(simt::config(%s), \"", deduced ? "_deduced" : "", shape);
    for (const char *p = kernel; *p != '\0'; p++) append_format(output, "%s%c", *p == '"' || *p == '\\' ? "\\" : "", *p);
    append(output, "\", ", 3);
    append_format(output, deduced ? "[=](auto... simt_a) { %s(simt_a...); }, " : "%s)", kernel);
    if (deduced)
        append_format(output,
                      "[](auto... simt_a) -> const void * { if constexpr (requires { "
                      "static_cast<void (*)(decltype(simt_a)...)>(%s); }) return (const void *)"
                      "static_cast<void (*)(decltype(simt_a)...)>(%s); else return nullptr; })",
                      kernel, kernel);
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
    if (start + 1 == token) note_use(r, start, LAUNCH);
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
