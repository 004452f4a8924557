/* Inline PTX.
 *
 *     asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));     ->  (simt_ptx::ex2_approx_f32((y), (x)));
 *
 * Invariant: an instruction or a register is written only when simt_ptx.h, which the program includes before its own text,
 * defines a function of its name; any other is an error here. */
#include "rewrite.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
            if (number >= operands->count) die(&r->source, "inline PTX names an operand %%%ld that is not there", number);
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
