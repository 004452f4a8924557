/* rewrite INPUT OUTPUT: turn preprocessed CUDA C++ (g++ -E) into C++ for the simulated device. Few constructs need it,
 * everything else is left to simt_device.h:
 *
 *     kernel<<<grid, block>>>(a, b)      ->  simt::launch(simt::config(grid, block), "kernel", kernel)(a, b)
 *     __shared__ float tile[32][33];     ->  auto &tile = simt::static_shared<float[32][33]>(...);
 *     extern __shared__ float tile[];    ->  float *tile = (float *)simt_dynamic_shared();
 *     __launch_bounds__(128) k() {       ->  k() { simt_launch_bounds(128);
 *     cudaFree(p);                       ->  simt::ignored("cudaFree") = cudaFree(p);
 *     __device__ int counter;            ->  __attribute__((section("simt_device"))) int counter;
 *                                            (or simt_constant or simt_managed, as its words say)
 *
 * A __shared__ declaration outside of any function becomes one at the head of each device function that names the variable.
 * A kernel template whose arguments the launch leaves to be deduced is called from a generic lambda. Text of system headers
 * (flag 3 of a line marker) stays as it is, and so do all line numbers.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char *data;
    size_t length, room;
};

static struct text output;
static char file_name[1024]; /* of the source, as the line marker spells it */
static int line_number = 1;

static void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%d: error: ", file_name, line_number);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static void append(struct text *text, const char *data, size_t length) {
    if (text->length + length + 1 > text->room) {
        text->room = 2 * (text->length + length + 1);
        text->data = realloc(text->data, text->room);
        if (text->data == NULL) die("out of memory");
    }
    memcpy(text->data + text->length, data, length);
    text->length += length;
    text->data[text->length] = '\0';
}

static void append_string(struct text *text, const char *string) { append(text, string, strlen(string)); }

static void emit(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void emit(const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *line = malloc((size_t)length + 1);
    if (line == NULL) die("out of memory");
    vsnprintf(line, (size_t)length + 1, format, again);
    append(&output, line, (size_t)length);
    free(line);
    va_end(arguments);
    va_end(again);
}

static struct text read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    struct text text = {0};
    char buffer[65536];
    size_t got;
    while ((got = fread(buffer, 1, sizeof buffer, file)) > 0) append(&text, buffer, got);
    fclose(file);
    append(&text, "", 0);
    return text;
}

/* ---- reading C++ --------------------------------------------------------------------------------------------------- */

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static const char *input_start;

static bool starts_word(const char *p, const char *word) {
    size_t length = strlen(word);
    return strncmp(p, word, length) == 0 && (p == input_start || !is_word(p[-1])) && !is_word(p[length]);
}

static bool is_line_marker(const char *p) {
    return p[0] == '#' && p[1] == ' ' && isdigit((unsigned char)p[2]) && (p == input_start || p[-1] == '\n');
}

/* The end of the string, character literal or line of the preprocessor that starts at p; p itself when none does. */
static const char *skip_literal(const char *p) {
    if (p[0] == '#' && (p == input_start || p[-1] == '\n')) return p + strcspn(p, "\n");
    if (p[0] == 'R' && p[1] == '"' && (p == input_start || !is_word(p[-1]) || strchr("uUL8", p[-1]) != NULL)) {
        const char *parenthesis = strchr(p, '(');
        if (parenthesis == NULL || parenthesis - p > 20) die("raw string that cannot be read");
        char closing[24];
        snprintf(closing, sizeof closing, ")%.*s\"", (int)(parenthesis - p - 2), p + 2);
        const char *end = strstr(parenthesis, closing);
        if (end == NULL) die("raw string without an end");
        return end + strlen(closing);
    }
    if (p[0] != '"' && p[0] != '\'') return p;
    if (p[0] == '\'' && p > input_start && isxdigit((unsigned char)p[-1]) && isxdigit((unsigned char)p[1])) {
        const char *word = p; /* the digits 1'000, or the literal u'a' */
        while (word > input_start && (is_word(word[-1]) || word[-1] == '\'')) word--;
        if (isdigit((unsigned char)*word)) return p + 1;
    }
    const char *end = p + 1;
    while (*end != p[0]) {
        if (*end == '\0' || *end == '\n') return p + 1;
        end += *end == '\\' && end[1] != '\0' ? 2 : 1;
    }
    return end + 1;
}

static const char *skip_space(const char *p) {
    for (;;) {
        while (isspace((unsigned char)*p)) p++;
        if (!is_line_marker(p)) return p;
        p += strcspn(p, "\n");
    }
}

/* The first of the characters `wanted` outside of literals and of any bracket opened after p; NULL when there is none. */
static const char *find_outside_brackets(const char *p, const char *wanted) {
    int depth = 0;
    while (*p != '\0') {
        if (depth == 0 && strchr(wanted, *p) != NULL) return p;
        const char *past = skip_literal(p);
        if (past != p) {
            p = past;
            continue;
        }
        if (strchr("([{", *p) != NULL) depth++;
        if (strchr(")]}", *p) != NULL) depth--;
        if (depth < 0) return NULL;
        p++;
    }
    return NULL;
}

/* Past the bracket that closes the one at p. */
static const char *skip_brackets(const char *p) {
    const char closing[] = {*p == '(' ? ')' : *p == '[' ? ']' : '}', '\0'};
    const char *end = find_outside_brackets(p + 1, closing);
    if (end == NULL) die("%c without %s", *p, closing);
    return end + 1;
}

/* Past alignas(...), __attribute__((...)) or __launch_bounds__(...); p itself when neither stands there. */
static const char *skip_attribute(const char *p) {
    if (!starts_word(p, "alignas") && !starts_word(p, "__attribute__") && !starts_word(p, "__launch_bounds__")) return p;
    const char *parenthesis = skip_space(p + strcspn(p, "( \t\n"));
    return *parenthesis == '(' ? skip_brackets(parenthesis) : p;
}

/* `# 12 "file" 1 3`: take note of it. Returns whether the text that follows is a system header's. */
static bool read_line_marker(const char *p) {
    char *end;
    line_number = (int)strtol(p + 2, &end, 10);
    size_t length = 0;
    const char *name = end + strspn(end, " \"");
    for (; name[length] != '"' && name[length] != '\n' && name[length] != '\0'; length++)
        if (length + 1 < sizeof file_name) file_name[length] = name[length];
    file_name[length < sizeof file_name ? length : sizeof file_name - 1] = '\0';
    const char *flags = name + length, *stop = p + strcspn(p, "\n");
    for (; flags < stop; flags++)
        if (flags[0] == ' ' && flags[1] == '3') return true;
    return false;
}

/* What a program includes but the simulated device has not; this machine's own CUDA toolkit may have it. */
static void refuse_header(const char *marker, bool from_system) {
    static const char *const refused[] = {"/thrust/",  "/cub/",     "/nv/target", "/cuda/std/",  "/cutlass/", "/cute/",  "/cudnn",
                                          "/curand",   "/cufft",    "/cusparse",  "/cusolver",   "/nvrtc",    "/npp",    "/nccl",
                                          "/nvml",     "/cuda_gl_interop.h", "/torch/", "/texture_"};
    const char *name = strchr(marker, '"'), *end = name != NULL ? strchr(name + 1, '"') : NULL;
    if (end == NULL || from_system || end[1] != ' ' || end[2] != '1' || strncmp(end + 3, " 3", 2) != 0) return;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *found = strstr(name, refused[i]);
        if (found == NULL || found > end) continue;
        die("#include <%.*s>: the simulated device does not have it", (int)(end - found - 1), found + 1);
    }
}

/* After a construct of several lines became one: tell the compiler which line follows. */
static void catch_up(const char *from, const char *to) {
    int before = line_number;
    char name[sizeof file_name];
    memcpy(name, file_name, sizeof name);
    for (; from < to; from++) {
        if (is_line_marker(from)) {
            read_line_marker(from);
            from += strcspn(from, "\n");
            if (from >= to) break;
        } else if (*from == '\n') {
            line_number++;
        }
    }
    if (line_number != before || strcmp(name, file_name) != 0) emit("\n# %d \"%s\"\n", line_number, file_name);
}

/* Text on one line, without line markers. */
static struct text one_line(const char *from, const char *to) {
    struct text text = {0};
    append(&text, "", 0);
    while (from < to) {
        const char *past = is_line_marker(from) ? from + strcspn(from, "\n") : from;
        if (past != from) {
            from = past;
            continue;
        }
        past = skip_literal(from);
        if (past == from) past = from + 1;
        append(&text, isspace((unsigned char)*from) ? " " : from, (size_t)(past - from));
        from = past;
    }
    while (text.length > 0 && isspace((unsigned char)text.data[text.length - 1])) text.data[--text.length] = '\0';
    return text;
}

/* ---- kernels and their launches ------------------------------------------------------------------------------------ */

/* What the declarations of a function's name say. */
static struct function {
    char *name;
    int needed;   /* template parameters without a default */
    int bodies;   /* definitions: more than one are overloads */
    int commas;   /* between its parameters */
    bool is_template, is_variadic;
    bool has_defaults; /* of parameters, which a pointer to the function does not know */
    bool is_overloaded;
} *functions;
static size_t function_count, function_room;

static struct function *find_function(const char *name, size_t length) {
    for (size_t i = function_count; i-- > 0;)
        if (strncmp(functions[i].name, name, length) == 0 && functions[i].name[length] == '\0') return &functions[i];
    return NULL;
}

static struct function *add_function(const char *name, size_t length) {
    if (function_count == function_room) {
        function_room = 2 * function_room + 64;
        functions = realloc(functions, function_room * sizeof *functions);
    }
    char *copy = strndup(name, length);
    if (functions == NULL || copy == NULL) die("out of memory");
    functions[function_count] = (struct function){.name = copy, .commas = -1};
    return &functions[function_count++];
}

/* Past the > that closes the < at p; NULL when there is none. Counts the arguments between. */
static const char *skip_angles(const char *p, int *arguments, int *defaults, bool *variadic) {
    int depth = 0;
    *arguments = 0;
    bool any = false;
    for (const char *q = p; *q != '\0' && *q != ';'; q++) {
        const char *past = skip_literal(q);
        if (past != q) {
            any = true;
            q = past - 1;
        } else if (strchr("([{", *q) != NULL) {
            any = true;
            q = skip_brackets(q) - 1;
        } else if (*q == '<') {
            depth++;
        } else if (*q == '>' && q[-1] != '-') {
            if (--depth == 0) {
                if (any) ++*arguments;
                return q + 1;
            }
        } else if (*q == ',' && depth == 1) {
            ++*arguments;
        } else if (*q == '=' && depth == 1 && defaults != NULL) {
            ++*defaults;
        } else if (strncmp(q, "...", 3) == 0 && variadic != NULL) {
            *variadic = true;
        } else if (!isspace((unsigned char)*q)) {
            any = true;
        }
    }
    return NULL;
}

/* The declaration [p, end) is a function's, perhaps; end is at its ; or {. */
static void note_function(const char *p, const char *end, bool has_body) {
    int needed = 0;
    bool variadic = false, is_template = false;
    for (p = skip_space(p); p < end; p = skip_space(p)) {
        const char *past = skip_attribute(p);
        if (starts_word(p, "template")) {
            int arguments = 0, defaults = 0;
            past = skip_space(p + 8);
            if (*past != '<' || (past = skip_angles(past, &arguments, &defaults, &variadic)) == NULL) return;
            needed = arguments - defaults;
            is_template = arguments > 0;
        } else if (*p == '=') {
            return;
        } else if (past == p && *p == '(') {
            const char *name_end = p;
            while (isspace((unsigned char)name_end[-1])) name_end--;
            const char *name = name_end;
            while (is_word(name[-1])) name--;
            if (name == name_end) return;
            struct function *function = find_function(name, (size_t)(name_end - name));
            if (function == NULL) function = add_function(name, (size_t)(name_end - name));
            const char *parameters_end = skip_brackets(p);
            int commas = *skip_space(p + 1) == ')' ? -2 : 0;
            for (const char *q = p + 1; q < parameters_end; q++) {
                function->has_defaults |= *q == '=';
                commas += *q == ',';
            }
            function->is_overloaded |= function->commas != -1 && function->commas != commas;
            function->commas = commas;
            function->bodies += has_body;
            function->is_variadic |= variadic;
            if (is_template) {
                function->is_template = true;
                function->needed = needed;
            }
            return;
        } else if (past == p) {
            past = p + 1;
        }
        p = past;
    }
}

/* Where the expression that names the kernel starts in what has been written so far: words, ::, ., ->, and brackets. */
static size_t kernel_start(void) {
    const char *text = output.data;
    size_t i = output.length;
    for (;;) {
        while (i > 0 && isspace((unsigned char)text[i - 1])) i--;
        if (i > 0 && text[i - 1] == '>' && (i < 2 || text[i - 2] != '-')) {
            int depth = 0, brackets = 0;
            do {
                i--;
                if (strchr(")]", text[i]) != NULL) brackets++;
                if (strchr("([", text[i]) != NULL) brackets--;
                if (text[i] == '>' && brackets == 0) depth++;
                if (text[i] == '<' && brackets == 0) depth--;
            } while (i > 0 && depth > 0);
            while (i > 0 && isspace((unsigned char)text[i - 1])) i--;
        }
        while (i > 0 && (text[i - 1] == ')' || text[i - 1] == ']')) {
            int depth = 0;
            do {
                i--;
                if (strchr(")]", text[i]) != NULL) depth++;
                if (strchr("([", text[i]) != NULL) depth--;
            } while (i > 0 && depth > 0);
        }
        while (i > 0 && is_word(text[i - 1])) i--;
        size_t before = i;
        while (before > 0 && isspace((unsigned char)text[before - 1])) before--;
        if (before >= 2 && (strncmp(text + before - 2, "::", 2) == 0 || strncmp(text + before - 2, "->", 2) == 0)) {
            i = before - 2;
            if (i == 0 || !(is_word(text[i - 1]) || strchr(">)]", text[i - 1]) != NULL)) return i;
        } else if (before >= 1 && text[before - 1] == '.') {
            i = before - 1;
        } else {
            return i;
        }
    }
}

/* At the <<< that opens a launch's shape: where the shape starts; else NULL. `<< <` is one too. */
static const char *launch_opening(const char *p) {
    if (p[0] != '<' || p[1] != '<') return NULL;
    const char *third = skip_space(p + 2);
    return *third == '<' && third[1] != '<' ? third + 1 : NULL;
}

/* The > > > that closes the shape. */
static const char *launch_closing(const char *p, const char **end) {
    for (; p != NULL; p++) {
        p = find_outside_brackets(p, ">;");
        if (p == NULL || *p == ';') return NULL;
        if (p[-1] == '-') continue;
        const char *second = skip_space(p + 1), *third = *second == '>' ? skip_space(second + 1) : second;
        if (*second != '>' || *third != '>') continue;
        if (third[1] == '>') continue; /* foo<int>>>>: the first one closes a template's arguments */
        *end = third + 1;
        return p;
    }
    return NULL;
}

/* Take what has been written from `start` on, as one line, and leave only its line ends. */
static struct text take_back(size_t start) {
    struct text taken = one_line(output.data + start, output.data + output.length);
    size_t length = start;
    for (size_t i = start; i < output.length; i++)
        if (output.data[i] == '\n') output.data[length++] = '\n';
    output.length = length;
    output.data[length] = '\0';
    return taken;
}

static const char *rewrite_launch(const char *shape) {
    struct text kernel = take_back(kernel_start()), quoted = {0};
    if (kernel.length == 0) die("<<< without a kernel before it");
    append(&quoted, "", 0);
    for (size_t i = 0; i < kernel.length; i++) {
        if (kernel.data[i] == '"' || kernel.data[i] == '\\') append(&quoted, "\\", 1);
        append(&quoted, &kernel.data[i], 1);
    }
    const char *past = NULL, *closing = launch_closing(shape, &past);
    if (closing == NULL) die("<<< without >>>");
    struct text shape_text = one_line(shape, closing);

    /* The name without namespaces and template arguments, and how many of these the launch spells out. */
    size_t name_end = strcspn(kernel.data, "<"), name = 0;
    int spelt = 0;
    if (kernel.data[name_end] == '<') {
        input_start = kernel.data;
        skip_angles(kernel.data + name_end, &spelt, NULL, NULL);
    }
    while (name_end > 0 && isspace((unsigned char)kernel.data[name_end - 1])) name_end--;
    for (name = name_end; name > 0 && is_word(kernel.data[name - 1]); name--) {}
    const struct function *known = find_function(kernel.data + name, name_end - name);
    bool deduced = known != NULL && (known->is_overloaded || known->bodies > 1 || known->is_variadic ||
                                     known->has_defaults || (known->is_template && spelt < known->needed));

    if (deduced)
        emit("simt::launch_deduced(simt::config(%s), \"%s\", [=](auto... simt_a) { %s(simt_a...); }, "
             "[](auto... simt_a) -> const void * { if constexpr (requires { "
             "static_cast<void (*)(decltype(simt_a)...)>(%s); }) return (const void *)"
             "static_cast<void (*)(decltype(simt_a)...)>(%s); else return nullptr; })",
             shape_text.data, quoted.data, kernel.data, kernel.data, kernel.data);
    else
        emit("simt::launch(simt::config(%s), \"%s\", %s)", shape_text.data, quoted.data, kernel.data);
    free(shape_text.data);
    free(kernel.data);
    free(quoted.data);
    return past;
}

/* ---- shared memory ------------------------------------------------------------------------------------------------- */

/* A __shared__ variable declared outside of any function. */
static struct shared_variable {
    char *name, *declaration; /* as it becomes at the head of a function */
} *file_shared;
static size_t file_shared_count;
static unsigned type_number;

static void remember_shared(const char *name, const char *declaration) {
    file_shared = realloc(file_shared, (file_shared_count + 1) * sizeof *file_shared);
    if (file_shared == NULL) die("out of memory");
    file_shared[file_shared_count++] = (struct shared_variable){strdup(name), strdup(declaration)};
}

/* One declarator, "tile[32][33]" or "*p", of a __shared__ declaration of the given type. */
static void rewrite_shared_declarator(const char *type, const char *declarator, const char *end, bool is_extern,
                                      bool at_file_scope) {
    struct text full_type = {0}, declaration = {0};
    append_string(&full_type, type);
    for (declarator = skip_space(declarator); declarator < end && (*declarator == '*' || *declarator == '&');
         declarator = skip_space(declarator + 1))
        append_string(&full_type, " *");
    const char *name_end = declarator;
    while (name_end < end && is_word(*name_end)) name_end++;
    if (name_end == declarator) die("a __shared__ declaration that cannot be read: write __shared__ TYPE NAME[SIZE];");
    char name[200];
    snprintf(name, sizeof name, "%.*s", (int)(name_end - declarator), declarator);
    const char *initial = find_outside_brackets(name_end, "=;,{");
    if (initial != NULL && initial < end && *initial != ';' && *initial != ',')
        die("the __shared__ variable %s cannot have an initial value: one thread must store it, before a barrier", name);
    struct text extents = one_line(name_end, end);
    char *open = strchr(extents.data, '[');
    if (is_extern && open != NULL) {
        char *rest = strchr(open, ']') + 1; /* of the dimensions after the first */
        append_string(&declaration, "[[maybe_unused]] std::add_pointer_t<");
        append_string(&declaration, full_type.data);
        append_string(&declaration, rest);
        append_string(&declaration, "> ");
        append_string(&declaration, name);
        append_string(&declaration, " = (std::add_pointer_t<");
        append_string(&declaration, full_type.data);
        append_string(&declaration, rest);
        append_string(&declaration, ">)simt_dynamic_shared();");
    } else if (is_extern) {
        append_string(&declaration, "[[maybe_unused]] auto &");
        append_string(&declaration, name);
        append_string(&declaration, " = *(");
        append_string(&declaration, full_type.data);
        append_string(&declaration, " *)simt_dynamic_shared();");
    } else {
        append_string(&declaration, "[[maybe_unused]] auto &");
        append_string(&declaration, name);
        append_string(&declaration, " = simt::static_shared<");
        append_string(&declaration, full_type.data);
        append_string(&declaration, extents.data);
        append_string(&declaration, ">(");
        if (at_file_scope) {
            append_string(&declaration, "simt_site_");
            append_string(&declaration, name);
            append_string(&declaration, "{}");
            emit("struct simt_site_%s {};", name);
        } else {
            append_string(&declaration, "[] {}");
        }
        append_string(&declaration, ", \"");
        append_string(&declaration, name);
        append_string(&declaration, "\");");
    }
    if (at_file_scope)
        remember_shared(name, declaration.data);
    else
        append_string(&output, declaration.data);
    free(extents.data);
    free(full_type.data);
    free(declaration.data);
}

/* Take the word out of a type, where it stands as a whole word; false when it does not. */
static bool take_word(struct text *type, const char *word) {
    input_start = type->data;
    for (char *p = type->data; (p = strstr(p, word)) != NULL; p++)
        if (starts_word(p, word)) {
            memset(p, ' ', strlen(word));
            return true;
        }
    return false;
}

/* p is after the word __shared__, `prefix` what stands before it in its statement. */
static const char *rewrite_shared(struct text *prefix, const char *p, bool at_file_scope) {
    const char *start = p, *base = input_start;
    const char *end = find_outside_brackets(p, ";");
    if (end == NULL) die("a __shared__ declaration without a semicolon");
    struct text type = {0};
    append_string(&type, prefix->data);
    append(&type, " ", 1);
    /* The type ends before the first name that is followed by [ , = { or ; */
    const char *first_end = p = skip_space(p);
    int angle = 0;
    while (first_end < end) {
        const char *past = skip_attribute(first_end); /* simt_static_shared() aligns every array to 128 bytes */
        if (past != first_end) {
            struct text part = one_line(p, first_end);
            append_string(&type, part.data);
            append(&type, " ", 1);
            free(part.data);
            p = first_end = skip_space(past);
            continue;
        }
        if (*first_end == '(' || (*first_end == '{' && (strstr(type.data, "struct") != NULL ||
                                                        strncmp(p, "struct", 6) == 0 || strncmp(p, "union", 5) == 0))) {
            first_end = skip_brackets(first_end);
            continue;
        }
        if (*first_end == '<') angle++;
        if (*first_end == '>') angle--;
        if (angle == 0 && strchr("[,={", *first_end) != NULL) break;
        first_end++;
    }
    while (first_end > p && isspace((unsigned char)first_end[-1])) first_end--;
    const char *name = first_end;
    while (name > p && is_word(name[-1])) name--;
    struct text part = one_line(p, name);
    append_string(&type, part.data);
    free(part.data);
    bool is_extern = take_word(&type, "extern");
    take_word(&type, "static");
    take_word(&type, "__device__");
    input_start = base;
    while (name > p && isspace((unsigned char)name[-1])) name--;
    size_t stars = 0;
    while (type.length > 0 && strchr(" \t*", type.data[type.length - 1]) != NULL) {
        stars += type.data[type.length - 1] == '*';
        type.data[--type.length] = '\0';
    }
    for (const char *q = name; stars > 0; stars--) {
        while (q[-1] != '*') q--;
        name = --q;
    }
    if (strspn(type.data, " ") == type.length)
        die("a __shared__ declaration that cannot be read: write __shared__ TYPE NAME[SIZE];");
    char alias[60] = "";
    if (strchr(type.data, '{') != NULL) {
        snprintf(alias, sizeof alias, "simt_shared_type_%u", type_number++);
        emit("typedef %s %s; ", type.data, alias);
    }
    for (const char *declarator = name; declarator < end;) {
        const char *comma = find_outside_brackets(declarator, ",;");
        const char *stop = comma != NULL && comma < end ? comma : end;
        rewrite_shared_declarator(alias[0] != '\0' ? alias : type.data, declarator, stop, is_extern, at_file_scope);
        declarator = stop + 1;
    }
    free(type.data);
    catch_up(start, end + 1);
    return end + 1;
}

/* ---- __device__ and __constant__ variables --------------------------------------------------------------------------- */

/* The word __device__ or __constant__ ends at p; the declaration starts at `start`. Is it that of a variable that the
 * program may change? (A constant needs no section: it lies where kernels may read it.) */
static bool is_device_variable(const char *start, const char *p) {
    bool is_const = false, is_type = false;
    for (const char *q = start; q < p; q++) {
        if (starts_word(q, "constexpr")) return false;
        is_const |= starts_word(q, "const");
    }
    while (*p != '\0') {
        const char *past = skip_attribute(p);
        if (past == p) past = skip_literal(p);
        if (past != p) {
            p = past;
        } else if (starts_word(p, "operator") || starts_word(p, "constexpr") || *p == '(' || *p == ')') {
            return false;
        } else if (*p == '{' && is_type) {
            p = skip_brackets(p);
        } else if (*p == '<') {
            int ignored;
            past = skip_angles(p, &ignored, NULL, NULL);
            p = past != NULL ? past : p + 1;
        } else if (strchr("=;[{", *p) != NULL) {
            return !is_const;
        } else {
            is_type |= starts_word(p, "struct") || starts_word(p, "union") || starts_word(p, "class");
            if (starts_word(p, "const")) is_const = true;
            if (*p == '*') is_const = false;
            p++;
        }
    }
    return false;
}

/* The section of such a variable: memory/place.c tells its kind by it. Its words stand before and behind p, in any order. */
static const char *section_of(const char *start, const char *p) {
    const char *end = p + strcspn(p, "=;[{(");
    for (; start < end; start++) {
        if (starts_word(start, "__constant__")) return "simt_constant";
        if (starts_word(start, "__managed__")) return "simt_managed";
    }
    return "simt_device";
}

/* ---- inline PTX ------------------------------------------------------------------------------------------------------ */

/* The names that simt_ptx.h defines, from its text, which the program includes before its own. */
static struct text ptx_names;

static void note_ptx_names(const char *text) {
    const char *p = strstr(text, "namespace simt_ptx {"), *end = p != NULL ? strstr(p, "end_of_ptx") : NULL;
    append(&ptx_names, " ", 1);
    for (; p != NULL && p < end; p++) {
        if (*p != '(' || !is_word(p[-1])) continue;
        const char *name = p;
        while (is_word(name[-1])) name--;
        append(&ptx_names, name, (size_t)(p - name));
        append(&ptx_names, " ", 1);
    }
}

/* Concatenated string literals, unescaped; past them. */
static const char *read_strings(const char *p, struct text *text) {
    append(text, "", 0);
    for (p = skip_space(p); *p == '"' || (*p == 'R' && p[1] == '"'); p = skip_space(p)) {
        const char *past = skip_literal(p);
        if (*p == 'R') die("inline PTX in a raw string: write it as a plain one");
        for (p++; p < past - 1; p++) {
            const char *c = p;
            if (*p == '\\') {
                p++;
                c = *p == 'n' ? "\n" : *p == 't' ? "\t" : p;
            }
            append(text, c, 1);
        }
        p = past;
    }
    return p;
}

/* One operand as PTX writes it: %0, [%0 + 16], a number, %%laneid. Several of them in braces come apart before. */
static void emit_ptx_operand(const char *p, const char *end, const struct text *operands, int count) {
    for (; p < end; p++) {
        if (*p == '[' || *p == ']' || *p == '{' || *p == '}') {
            emit(" ");
        } else if (*p == '%' && isdigit((unsigned char)p[1])) {
            char *past;
            long number = strtol(p + 1, &past, 10);
            if (number >= count) die("inline PTX names an operand %%%ld that is not there", number);
            emit("(%s)", operands[number].data);
            p = past - 1;
        } else if (*p == '%') { /* nvcc takes one of the two %, too */
            size_t length = 0;
            char name[40], word[44];
            for (p += p[1] == '%' ? 2 : 1; (is_word(*p) || *p == '.') && length < sizeof name - 1; p++) name[length++] = *p == '.' ? '_' : *p;
            name[length] = '\0';
            snprintf(word, sizeof word, " %s ", name);
            if (strstr(ptx_names.data, word) == NULL)
                die("PTX register %%%s: the simulated device does not have it", name);
            emit("simt_ptx::%s()", name);
            p--;
        } else {
            append(&output, p, 1);
        }
    }
}

static void emit_ptx_instruction(const char *p, const char *end, const struct text *operands, int count) {
    const char *name_end = p + strcspn(p, " \t\n;");
    if (name_end > end) name_end = end;
    char name[100], word[104];
    size_t length = 0;
    for (const char *q = p; q < name_end && length < sizeof name - 1; q++) {
        if (strncmp(q, ".L2::", 5) == 0 || strncmp(q, ".L1::", 5) == 0) { /* hints for caches */
            q += 5;
            while (q + 1 < name_end && is_word(q[0]) && q[1] != '.') q++;
            continue;
        }
        name[length++] = is_word(*q) ? *q : '_';
    }
    name[length] = '\0';
    static const char prefix[] = "ldmatrix_sync_aligned_x";
    enum { PREFIX = sizeof prefix - 1 };
    if (strncmp(name, prefix, PREFIX) == 0 && strncmp(name + PREFIX + 1, "_m8n8", 5) == 0) { /* either order is PTX */
        char number = name[PREFIX];
        memcpy(name + PREFIX - 1, "m8n8_x", 6);
        name[PREFIX + 5] = number;
    }
    snprintf(word, sizeof word, " %s ", name);
    if (strstr(ptx_names.data, word) == NULL)
        die("PTX instruction %.*s: the simulated device does not have it", (int)(name_end - p), p);
    emit("simt_ptx::%s(", name);
    for (const char *q = name_end; q < end;) {
        const char *stop = q;
        while (stop < end && *stop != ',') stop++;
        emit_ptx_operand(q, stop, operands, count);
        if (stop < end) emit(", ");
        q = stop + 1;
    }
    emit(")");
}

/* p is after the word asm. */
static const char *rewrite_asm(const char *p) {
    const char *start = p;
    for (p = skip_space(p); starts_word(p, "volatile") || starts_word(p, "__volatile__") || starts_word(p, "inline");)
        p = skip_space(p + strcspn(p, " \t\n("));
    if (*p != '(') die("asm without (");
    const char *end = skip_brackets(p);
    struct text code = {0}, operands[30] = {{0}};
    int count = 0;
    p = read_strings(p + 1, &code);
    for (int section = 0; *p == ':' && section < 2; section++) { /* outputs, inputs; what follows is of no concern */
        for (p = skip_space(p + 1); *p == '"' || *p == '['; p = skip_space(p)) {
            if (*p == '[') die("inline PTX with named operands: write %%0, %%1");
            const char *expression = skip_space(skip_literal(p));
            if (*expression != '(' || count == 30) die("inline PTX whose operands cannot be read");
            const char *past = skip_brackets(expression);
            operands[count++] = one_line(expression + 1, past - 1);
            p = skip_space(past);
            if (*p == ',') p++;
        }
    }
    bool any = false;
    emit("(");
    for (const char *q = code.data; *q != '\0';) {
        q += strspn(q, " \t\n{};");
        const char *stop = q + strcspn(q, ";");
        if (stop == q) break;
        if (strncmp(q, "//", 2) == 0) {
            q += strcspn(q, "\n");
            continue;
        }
        const char *last = stop;
        while (last > q && isspace((unsigned char)last[-1])) last--;
        emit("%s", any ? ", " : "");
        emit_ptx_instruction(q, last, operands, count);
        any = true;
        q = stop;
    }
    emit(any ? ")" : "(void)0)");
    free(code.data);
    for (int i = 0; i < count; i++) free(operands[i].data);
    catch_up(start, end);
    return end;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------ */

enum scope { NAMESPACE, CLASS, FUNCTION, SHARED_FUNCTION, OTHER };

/* The words of the declaration [p, end) that say what the { at its end opens. */
static enum scope scope_opened(const char *p, const char *end, enum scope outer, bool is_device) {
    if (outer == FUNCTION || outer == SHARED_FUNCTION || outer == OTHER) return OTHER;
    bool parenthesis = false, class_word = false;
    for (; p < end; p++) {
        const char *past = skip_attribute(p);
        if (past != p) {
            p = past - 1;
            continue;
        }
        if (starts_word(p, "namespace")) return NAMESPACE;
        if (starts_word(p, "extern") && *skip_space(p + 6) == '"') {
            const char *rest = skip_space(skip_literal(skip_space(p + 6)));
            if (rest == end) return NAMESPACE;
        }
        if (*p == '=' && p[1] != '=') return OTHER;
        class_word |= starts_word(p, "struct") || starts_word(p, "class") || starts_word(p, "union");
        if (*p == '(') {
            parenthesis = true;
            p = skip_brackets(p) - 1;
        }
    }
    if (class_word && !parenthesis) return CLASS;
    return parenthesis || is_device ? FUNCTION : OTHER;
}

static bool names_word(const char *p, const char *end, const char *word) {
    for (; p < end; p++) {
        const char *past = skip_literal(p);
        if (past != p)
            p = past - 1;
        else if (starts_word(p, word))
            return true;
    }
    return false;
}

/* At the { of a device function: declare the file's __shared__ variables that its body names; false when there is none. */
static bool declare_file_shared(const char *declaration, const char *p) {
    bool any = false;
    const char *end = file_shared_count > 0 ? skip_brackets(p) : p;
    for (size_t i = 0; i < file_shared_count; i++) {
        if (!names_word(p, end, file_shared[i].name) || names_word(declaration, p, file_shared[i].name)) continue;
        if (!any) emit("{");
        emit(" %s", file_shared[i].declaration);
        any = true;
    }
    return any;
}

/* cudaLaunchKernel((void *)kernel, ...) is a template of simt_device.h that takes the kernel's type: where the text after the
 * cast starts, or NULL where there is none. */
static const char *skip_kernel_cast(const char *p) {
    while (is_word(*p)) p++;
    p = skip_space(p);
    if (*p++ != '(') return NULL;
    p = skip_space(p);
    if (*p++ != '(') return NULL;
    p = skip_space(p);
    if (starts_word(p, "const")) p = skip_space(p + strlen("const"));
    if (!starts_word(p, "void")) return NULL;
    p = skip_space(p + strlen("void"));
    if (*p++ != '*') return NULL;
    p = skip_space(p);
    return *p == ')' ? p + 1 : NULL;
}

/* Is the statement that starts at p (and not before: `declaration`) a call of the API whose result is dropped? */
static bool is_dropped_call(const char *declaration, const char *p) {
    if (strncmp(p, "cuda", 4) != 0 || !isupper((unsigned char)p[4]) || p != skip_space(declaration)) return false;
    while (is_word(*p)) p++;
    p = skip_space(p);
    if (*p != '(') return false;
    return *skip_space(skip_brackets(p)) == ';';
}

static void rewrite(const char *p) {
    enum { DEEPEST = 1000 };
    static struct {
        enum scope kind;
        int parentheses; /* open where its brace opened */
    } scopes[DEEPEST] = {{NAMESPACE, 0}};
    int depth = 0, parentheses = 0;
    const char *arguments_end = p; /* of the launch that was rewritten last */
    struct text bounds = {0};   /* the first argument of __launch_bounds__ in this declaration */
    const char *dropped = NULL; /* the call that is marked as dropped already */
    bool is_system = false, is_device = false, device_only = false;
    const char *declaration = p;      /* where the current declaration or statement starts */
    size_t statement = output.length; /* and where it does in the output */
    while (*p != '\0') {
        if (is_line_marker(p)) {
            const char *end = p + strcspn(p, "\n");
            refuse_header(p, is_system);
            is_system = read_line_marker(p);
            line_number--;
            append(&output, p, (size_t)(end - p));
            p = end;
            continue;
        }
        if (is_system && p >= arguments_end) { /* in a launch, the expansion of NULL */
            const char *end = strstr(p, "\n# ");
            end = end == NULL ? p + strlen(p) : end + 1;
            append(&output, p, (size_t)(end - p));
            p = end;
            if (parentheses == 0) declaration = p, statement = output.length;
            continue;
        }
        const char *past = skip_literal(p), *shape;
        bool is_border = strncmp(p, "#pragma simt ", 13) == 0; /* text between device_only and host_too: no declaration begins before it */
        if (is_border) device_only = p[13] == 'd';
        if (past != p) {
            append(&output, p, (size_t)(past - p));
            for (; p < past; p++) line_number += *p == '\n';
            if (is_border) declaration = p, statement = output.length;
        } else if (starts_word(p, "__global__")) {
            /* All that a kernel calls becomes part of it, as with nvcc. g++ puts no hook before the store of a struct that a
             * function returns, but does before the copy that is left of it once the function is inlined. */
            emit("__attribute__((flatten))");
            is_device = true;
            p += strlen("__global__");
        } else if (starts_word(p, "__device__") || starts_word(p, "__constant__") || starts_word(p, "__managed__")) {
            past = p + strcspn(p + 2, "_") + 4;
            if (is_device_variable(declaration, past))
                emit("__attribute__((section(\"%s\")))", section_of(declaration, past));
            else
                is_device = true;
            emit(" "); /* in place of each word: what stood apart must not become one token, or a comment */
            p = past;
        } else if (starts_word(p, "__launch_bounds__")) {
            past = skip_attribute(p);
            const char *first = strchr(p, '(') + 1, *comma = find_outside_brackets(first, ",");
            free(bounds.data);
            bounds = one_line(first, comma != NULL && comma < past ? comma : past - 1);
            catch_up(p, past);
            emit(" ");
            p = past;
        } else if (depth > 0 && scopes[depth].kind != NAMESPACE && scopes[depth].kind != CLASS && p != dropped &&
                   is_dropped_call(declaration, p)) {
            emit("simt::ignored(\"%.*s\") = ", (int)strcspn(p, "( \t\n"), p);
            dropped = p; /* what follows is read as it would be without */
        } else if (starts_word(p, "__host__")) {
            emit(" ");
            p += strlen("__host__");
        } else if (p < arguments_end && starts_word(p, "__null")) { /* NULL, whose type is an integer's */
            emit("nullptr");
            p += strlen("__null");
        } else if (starts_word(p, "cudaLaunchKernel") || starts_word(p, "cudaLaunchCooperativeKernel")) {
            past = skip_kernel_cast(p);
            for (; is_word(*p); p++) append(&output, p, 1);
            if (past != NULL) {
                emit("(");
                catch_up(p, past);
                p = past;
                parentheses++;
            }
        } else if (starts_word(p, "asm") || starts_word(p, "__asm__") || starts_word(p, "__asm")) {
            p = rewrite_asm(p + strcspn(p, " \t\n("));
        } else if (starts_word(p, "__noinline__") && (output.length == 0 || output.data[output.length - 1] != '(')) {
            emit(" ");
            p += strlen("__noinline__"); /* no macro: libstdc++ has the word in attributes of its own */
        } else if (starts_word(p, "__shared__")) {
            struct text prefix = take_back((size_t)(skip_space(output.data + statement) - output.data));
            bool at_file_scope = scopes[depth].kind == NAMESPACE;
            p = rewrite_shared(&prefix, p + strlen("__shared__"), at_file_scope);
            free(prefix.data);
            declaration = p;
            statement = output.length;
            is_device = false;
        } else if ((shape = launch_opening(p)) != NULL) {
            if (device_only) die("device code only here: kernels are launched by the host");
            const char *base = input_start;
            past = rewrite_launch(shape);
            input_start = base;
            const char *arguments = skip_space(past);
            if (*arguments == '(') arguments_end = skip_brackets(arguments);
            catch_up(p, past);
            p = past;
        } else if (*p == '{') {
            if (depth + 1 == DEEPEST) die("braces nested too deep");
            enum scope kind = parentheses > 0 ? OTHER : scope_opened(declaration, p, scopes[depth].kind, is_device);
            if (kind == FUNCTION) note_function(declaration, p, true);
            if (is_device && kind == FUNCTION && declare_file_shared(declaration, p)) kind = SHARED_FUNCTION;
            depth++;
            scopes[depth].kind = kind;
            scopes[depth].parentheses = parentheses;
            append(&output, p++, 1);
            if (bounds.data != NULL && (kind == FUNCTION || kind == SHARED_FUNCTION)) emit(" simt_launch_bounds(%s);", bounds.data);
            free(bounds.data);
            bounds = (struct text){0};
            declaration = p;
            statement = output.length;
            if (parentheses == 0) is_device = false;
            parentheses = 0;
        } else if (*p == '}') {
            append(&output, p++, 1);
            if (scopes[depth].kind == SHARED_FUNCTION) emit("}");
            parentheses = scopes[depth].parentheses;
            if (depth > 0) depth--;
            declaration = p;
            statement = output.length;
            if (parentheses == 0) is_device = false;
        } else if (*p == ';' && parentheses == 0) {
            if (scopes[depth].kind == NAMESPACE || scopes[depth].kind == CLASS) note_function(declaration, p, false);
            free(bounds.data); /* of a declaration */
            bounds = (struct text){0};
            append(&output, p++, 1);
            declaration = p;
            statement = output.length;
            is_device = false;
        } else {
            parentheses += *p == '(';
            parentheses -= *p == ')' && parentheses > 0;
            line_number += *p == '\n';
            append(&output, p++, 1);
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s INPUT.ii OUTPUT.ii\n", argv[0]);
        return 2;
    }
    struct text input = read_file(argv[1]);
    append(&output, "", 0);
    input_start = input.data;
    note_ptx_names(input.data);
    rewrite(input.data);
    FILE *file = fopen(argv[2], "wb");
    if (file == NULL || fwrite(output.data, 1, output.length, file) != output.length || fclose(file) != 0) {
        perror(argv[2]);
        return 1;
    }
    free(input.data);
    free(output.data);
    return 0;
}
