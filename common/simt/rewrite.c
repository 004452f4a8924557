/* rewrite FILE.cu OUTPUT NAME: turn CUDA C++ into C++ for the simulated device. Three constructs need it, everything else
 * is left to simt_device.h:
 *
 *     kernel<T><<<grid, block>>>(a, b)   ->  simt::launch(simt::config(grid, block), kernel<T>, ...)(a, b)
 *     __shared__ float tile[32][33];     ->  auto &tile = simt::static_shared<float[32][33]>(...);
 *     extern __shared__ float tile[];    ->  float *tile = (float *)simt_dynamic_shared();
 *     __device__ int counter;            ->  SIMT_DEVICE_VARIABLE int counter;
 *
 * Comments, strings and line numbers stay as they are; NAME is what error messages call the file.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char *data;
    size_t length, room;
};

static const char *input_name;
static int line_number = 1;

static void die(const char *what) {
    fprintf(stderr, "%s:%d: %s\n", input_name, line_number, what);
    exit(1);
}

static void append(struct text *text, const char *data, size_t length) {
    if (length > 1 << 30) die("the file is too large");
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

static struct text read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    struct text text = {0};
    char buffer[4096];
    size_t got;
    while ((got = fread(buffer, 1, sizeof buffer, file)) > 0) append(&text, buffer, got);
    fclose(file);
    append(&text, "", 0);
    return text;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* The end of the comment, string or character literal that starts at p; p itself when none does. */
static const char *skip_literal(const char *p) {
    if (p[0] == '/' && p[1] == '/') return p + strcspn(p, "\n");
    if (p[0] == '/' && p[1] == '*') {
        const char *end = strstr(p + 2, "*/");
        if (end == NULL) die("comment without an end");
        return end + 2;
    }
    if (p[0] == 'R' && p[1] == '"') {
        const char *parenthesis = strchr(p, '(');
        if (parenthesis == NULL || parenthesis - p > 20) die("raw string that cannot be read");
        char closing[24];
        snprintf(closing, sizeof closing, ")%.*s\"", (int)(parenthesis - p - 2), p + 2);
        const char *end = strstr(parenthesis, closing);
        if (end == NULL) die("raw string without an end");
        return end + strlen(closing);
    }
    if (p[0] != '"' && p[0] != '\'') return p;
    const char *end = p + 1;
    while (*end != p[0]) {
        if (*end == '\0' || *end == '\n') return p + 1; /* a lone quote, as in the digits 1'000 */
        end += *end == '\\' && end[1] != '\0' ? 2 : 1;
    }
    return end + 1;
}

static void count_lines(const char *from, const char *to) {
    for (; from < to; from++) line_number += *from == '\n';
}

/* Find `wanted` outside of literals and of any bracket opened after p. */
static const char *find_outside_brackets(const char *p, const char *wanted) {
    int depth = 0;
    while (*p != '\0') {
        if (depth == 0 && strncmp(p, wanted, strlen(wanted)) == 0) return p;
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

/* Where the kernel's name, with namespaces and template arguments, starts in what has been written so far. */
static size_t kernel_start(const struct text *output) {
    size_t i = output->length;
    while (i > 0 && isspace((unsigned char)output->data[i - 1])) i--;
    if (i > 0 && output->data[i - 1] == '>') {
        int depth = 0;
        do {
            i--;
            if (output->data[i] == '>') depth++;
            if (output->data[i] == '<') depth--;
        } while (i > 0 && depth > 0);
    }
    while (i > 0 && (is_word(output->data[i - 1]) || output->data[i - 1] == ':')) i--;
    return i;
}

static const char *rewrite_launch(struct text *output, const char *p) {
    size_t start = kernel_start(output);
    struct text kernel = {0}, quoted = {0};
    append(&kernel, output->data + start, output->length - start);
    if (kernel.length == 0) die("<<< without a kernel before it");
    for (size_t i = 0; i < kernel.length; i++) {
        if (kernel.data[i] == '\n') die("keep a kernel's name and its <<< on one line");
        if (kernel.data[i] == '"' || kernel.data[i] == '\\') append(&quoted, "\\", 1);
        append(&quoted, &kernel.data[i], 1);
    }
    const char *shape = p + 3, *end = find_outside_brackets(shape, ">>>");
    if (end == NULL) die("<<< without >>>");
    output->length = start;
    append_string(output, "simt::launch(simt::config(");
    append(output, shape, (size_t)(end - shape));
    append_string(output, "), (const void *)(");
    append_string(output, kernel.data);
    append_string(output, "), \"");
    append_string(output, quoted.data);
    append_string(output, "\", [=](auto... simt_arguments) { ");
    append_string(output, kernel.data);
    append_string(output, "(simt_arguments...); })");
    free(kernel.data);
    free(quoted.data);
    count_lines(p, end);
    return end + 3;
}

/* One declarator, "tile[32][33]", of a __shared__ declaration of the given type. */
static void rewrite_shared_array(struct text *output, const char *type, const char *declarator, size_t length,
                                 bool is_extern) {
    size_t name_end = 0;
    while (length > 0 && isspace((unsigned char)*declarator)) declarator++, length--;
    while (name_end < length && is_word(declarator[name_end])) name_end++;
    if (name_end == 0) die("a __shared__ declaration that cannot be read: write __shared__ TYPE NAME[SIZE];");
    char name[200];
    snprintf(name, sizeof name, "%.*s", (int)name_end, declarator);
    if (memchr(declarator, '=', length) != NULL) die("a __shared__ variable cannot have an initial value");
    if (is_extern) {
        append_string(output, type);
        append_string(output, " *");
        append_string(output, name);
        append_string(output, " = (");
        append_string(output, type);
        append_string(output, " *)simt_dynamic_shared();");
        return;
    }
    append_string(output, "auto &");
    append_string(output, name);
    append_string(output, " = simt::static_shared<");
    append_string(output, type);
    append(output, declarator + name_end, length - name_end);
    append_string(output, ">([] {}, \"");
    append_string(output, name);
    append_string(output, "\");");
}

static const char *skip_space(const char *p) {
    while (isspace((unsigned char)*p)) p++;
    return p;
}

/* Keep the line numbers when a declaration of several lines becomes one. */
static void append_newlines(struct text *output, const char *from, const char *to) {
    for (; from < to; from++)
        if (*from == '\n') append(output, "\n", 1);
}

/* p is after the word __shared__. */
static const char *rewrite_shared(struct text *output, const char *p, bool is_extern) {
    const char *end = find_outside_brackets(p, ";");
    if (end == NULL) die("a __shared__ declaration without a semicolon");
    const char *start = p;
    p = skip_space(p);
    while (strncmp(p, "__align__", 9) == 0 || strncmp(p, "alignas", 7) == 0) {
        const char *parenthesis = strchr(p, '('); /* simt_static_shared() aligns every array to 128 bytes */
        p = parenthesis != NULL ? find_outside_brackets(parenthesis + 1, ")") : NULL;
        if (p == NULL) die("an alignment that cannot be read");
        p = skip_space(p + 1);
    }
    /* The type ends before the first name that is followed by [ , or ; */
    const char *first_end = p;
    int angle = 0;
    for (; first_end < end; first_end++) {
        if (*first_end == '<') angle++;
        if (*first_end == '>') angle--;
        if (angle == 0 && (*first_end == '[' || *first_end == ',')) break;
    }
    while (first_end > p && isspace((unsigned char)first_end[-1])) first_end--;
    const char *name = first_end;
    while (name > p && is_word(name[-1])) name--;
    struct text type = {0};
    append(&type, p, (size_t)(name - p));
    while (type.length > 0 && isspace((unsigned char)type.data[type.length - 1])) type.data[--type.length] = '\0';
    if (type.length == 0) die("a __shared__ declaration that cannot be read: write __shared__ TYPE NAME[SIZE];");

    for (const char *declarator = name; declarator != NULL && declarator < end;) {
        const char *comma = find_outside_brackets(declarator, ",");
        const char *stop = comma != NULL && comma < end ? comma : end;
        rewrite_shared_array(output, type.data, declarator, (size_t)(stop - declarator), is_extern);
        declarator = stop + 1;
    }
    free(type.data);
    count_lines(start, end);
    append_newlines(output, start, end);
    return end + 1;
}

/* The word __device__ or __constant__ at p, in front of a variable, not of a function: no parenthesis before its end. A
 * constant needs no rewriting; it lies where kernels may read it. */
static bool is_device_variable(const char *p) {
    for (p += strcspn(p, " \t\n"); *p != '\0';) {
        const char *past = skip_literal(p);
        if (past != p) {
            p = past;
        } else if (strncmp(p, "__align__", 9) == 0 || strncmp(p, "alignas", 7) == 0) {
            const char *parenthesis = strchr(p, '(');
            p = parenthesis != NULL ? find_outside_brackets(parenthesis + 1, ")") : NULL;
            if (p == NULL) return false;
            p++;
        } else if (strchr("({", *p) != NULL || strncmp(p, "const", 5) == 0) {
            return false;
        } else if (strchr("=;[", *p) != NULL) {
            return true;
        } else {
            p++;
        }
    }
    return false;
}

/* Remove a trailing "extern" from the output; false when there is none. */
static bool take_back_extern(struct text *output) {
    size_t end = output->length;
    while (end > 0 && isspace((unsigned char)output->data[end - 1])) end--;
    if (end < 6 || strncmp(output->data + end - 6, "extern", 6) != 0) return false;
    if (end > 6 && is_word(output->data[end - 7])) return false;
    memset(output->data + end - 6, ' ', 6);
    return true;
}

static bool starts_word(const char *text, const char *p, const char *word) {
    size_t length = strlen(word);
    return strncmp(p, word, length) == 0 && (p == text || !is_word(p[-1])) && !is_word(p[length]);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s FILE.cu OUTPUT.cpp NAME\n", argv[0]);
        return 2;
    }
    input_name = argv[3];
    struct text input = read_file(argv[1]), output = {0};
    append_string(&output, "#include <cuda_runtime.h>\n#line 1 \"");
    append_string(&output, argv[3]);
    append_string(&output, "\"\n");
    const char *p = input.data;
    while (*p != '\0') {
        const char *past = skip_literal(p);
        if (past != p) {
            append(&output, p, (size_t)(past - p));
            count_lines(p, past);
            p = past;
        } else if (strncmp(p, "<<<", 3) == 0) {
            p = rewrite_launch(&output, p);
        } else if (starts_word(input.data, p, "__device__") && is_device_variable(p)) {
            append_string(&output, "SIMT_DEVICE_VARIABLE");
            p += strlen("__device__");
        } else if (starts_word(input.data, p, "__constant__") && is_device_variable(p)) {
            append_string(&output, "SIMT_DEVICE_VARIABLE");
            p += strlen("__constant__");
        } else if (starts_word(input.data, p, "__shared__")) {
            p = rewrite_shared(&output, p + 10, take_back_extern(&output));
        } else {
            line_number += *p == '\n';
            append(&output, p++, 1);
        }
    }
    FILE *file = fopen(argv[2], "wb");
    if (file == NULL || fwrite(output.data, 1, output.length, file) != output.length || fclose(file) != 0) {
        perror(argv[2]);
        return 1;
    }
    free(input.data);
    free(output.data);
    return 0;
}
