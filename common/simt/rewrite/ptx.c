/* Inline PTX.
 *
 *     asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));     ->  (simt_ptx::ex2_approx_f32((y), (x)));
 *
 * Where the asm declares registers of its own, its instructions become statements, and a loop back to a label a do-while:
 *
 *     .reg .pred p; again: f p, [%0]; @!p bra again;        ->  ({ bool simt_p{}; do { simt_ptx::f(simt_p, (x)); } while (!simt_p); })
 *
 * Invariant: an instruction or a register is written only when simt_ptx.h, which the program includes before its own text,
 * defines a function of its name; any other is an error here. */
#include "rewrite.h"
#include <ctype.h>
#include <stdlib.h>

enum { MOST_OPERANDS = 140, MOST_REGISTERS = 10 }; /* wgmma with 256 columns has 128 accumulators */

struct operands {
    struct text expressions[MOST_OPERANDS];
    int count;
    struct {
        const char *name;
        size_t length;
    } registers[MOST_REGISTERS]; /* that the asm declares */
    int register_count;
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

static const struct token *find_ptx_name(const struct rewriter *r, const char *name) {
    size_t i = 0;
    while (i < r->ptx_name_count && !is(r->ptx_names[i], name)) i++;
    return i < r->ptx_name_count ? r->ptx_names[i] : NULL;
}

/* A special register: %laneid, or %%laneid as it stands beside operands. Past its name. */
static const char *rewrite_register(struct rewriter *r, const char *p) {
    size_t length = 0;
    char name[40];
    for (p += p[1] == '%' ? 2 : 1; (is_word(*p) || *p == '.') && length < sizeof name - 1; p++)
        name[length++] = *p == '.' ? '_' : *p;
    name[length] = '\0';
    if (find_ptx_name(r, name) == NULL) die(&r->source, "PTX register %%%s: the simulated device does not have it", name);
    append_format(&r->output, "simt_ptx::%s()", name);
    return p;
}

static size_t word_length(const char *p) {
    size_t length = 0;
    while (is_word(p[length])) length++;
    return length;
}

/* A word among the operands: _ is a result that nobody wants; a register that the asm has declared; else as it stands. */
static void rewrite_word(struct rewriter *r, const char *word, size_t length, const struct operands *operands) {
    if (length == 1 && *word == '_') {
        append_format(&r->output, "simt_ptx::sink{}");
        return;
    }
    for (int i = 0; i < operands->register_count; i++)
        if (operands->registers[i].length == length && memcmp(operands->registers[i].name, word, length) == 0)
            append_format(&r->output, "simt_");
    append(&r->output, word, length);
}

/* Before operands in braces, of which the first is %N, BASE[...] say: does the array belong to a caller? */
static void rewrite_brace(struct rewriter *r, const char *p, const struct operands *operands) {
    p += strspn(p, " \t\n");
    long number = *p == '%' && isdigit((unsigned char)p[1]) ? strtol(p + 1, NULL, 10) : operands->count;
    const char *text = number < operands->count ? operands->expressions[number].data : "";
    text += strspn(text, " ");
    size_t length = word_length(text);
    bool is_element = length > 0 && !isdigit((unsigned char)*text) && text[length] == '[' && text[strlen(text) - 1] == ']';
    if (is_element)
        append_format(&r->output, "simt_ptx::in_braces<simt_ptx::of_caller<decltype(%.*s), decltype((%s))>>(", (int)length,
                      text, text);
    else
        append_format(&r->output, "simt_ptx::in_braces<false>(");
}

/* One operand as PTX writes it: %0, [%0 + 16], a number, %%laneid, p. Several of them in braces come apart before; `grouped`: the
 * function takes those in braces as one. */
static void rewrite_operand(struct rewriter *r, const char *p, const char *end, const struct operands *operands, bool grouped) {
    while (p < end) {
        if (grouped && strchr("{}", *p) != NULL) {
            if (*p++ == '{')
                rewrite_brace(r, p, operands);
            else
                append(&r->output, ")", 1);
        } else if (strchr("[]{}|", *p) != NULL) { /* | stands between two results */
            append(&r->output, *p++ == '|' ? "," : " ", 1);
        } else if (*p == '%' && isdigit((unsigned char)p[1])) {
            char *past;
            long number = strtol(p + 1, &past, 10);
            if (number >= operands->count) die(&r->source, "inline PTX names an operand %%%ld that is not there", number);
            append_format(&r->output, "(%s)", operands->expressions[number].data);
            p = past;
        } else if (*p == '%') { /* nvcc takes one of the two %, too */
            p = rewrite_register(r, p);
        } else if (is_word(*p) && !isdigit((unsigned char)*p)) {
            size_t length = word_length(p);
            rewrite_word(r, p, length, operands);
            p += length;
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

static void rewrite_instruction(struct rewriter *r, const char *p, const char *end, const struct operands *operands,
                                bool passes_place) {
    const char *name_end = p + strcspn(p, " \t\n;");
    if (name_end > end) name_end = end;
    char name[100];
    instruction_name(name, sizeof name, p, name_end);
    const struct token *function = find_ptx_name(r, name);
    if (function == NULL)
        die(&r->source, "PTX instruction %.*s: the simulated device does not have it", (int)(name_end - p), p);
    const struct token *parameters_end = skip_brackets(&r->source, function + 1);
    bool grouped = names_word(function, parameters_end, "accumulators");
    append_format(&r->output, "simt_ptx::%s(", name);
    for (const char *q = name_end; q < end;) {
        const char *comma = memchr(q, ',', (size_t)(end - q)), *stop = comma != NULL ? comma : end;
        rewrite_operand(r, q, stop, operands, grouped);
        if (stop < end) append(&r->output, ", ", 2);
        q = stop + 1;
    }
    if (passes_place && names_word(function, parameters_end, "__builtin_LINE"))
        append_format(&r->output, "%ssimt_file, simt_line", name_end < end ? ", " : "");
    append(&r->output, ")", 1);
}

/* .reg .pred p, q; */
static void declare_registers(struct rewriter *r, const char *p, const char *end, struct operands *operands) {
    static const struct {
        const char *ptx, *type;
    } types[] = {{".pred", "bool"},    {".b16", "unsigned short"},     {".u16", "unsigned short"},
                 {".b32", "unsigned"}, {".u32", "unsigned"},           {".s32", "int"},
                 {".f32", "float"},    {".b64", "unsigned long long"}, {".u64", "unsigned long long"}};
    p += strspn(p, " \t\n");
    size_t length = strcspn(p, " \t\n"), t = 0, count = sizeof types / sizeof *types;
    while (t < count && (strlen(types[t].ptx) != length || memcmp(types[t].ptx, p, length) != 0)) t++;
    if (t == count) die(&r->source, "inline PTX with registers of type %.*s", (int)length, p);
    for (p += length; p < end; p++) {
        if (!is_word(*p)) continue;
        if (operands->register_count == MOST_REGISTERS)
            die(&r->source, "inline PTX with more than %d registers", MOST_REGISTERS);
        length = word_length(p);
        operands->registers[operands->register_count].name = p;
        operands->registers[operands->register_count++].length = length;
        append_format(&r->output, "[[maybe_unused]] %s simt_%.*s{}; ", types[t].type, (int)length, p);
        p += length;
    }
}

/* A label, past its colon, or NULL. */
static const char *skip_label(const char *p) {
    size_t length = word_length(p);
    return length > 0 && p[length] == ':' && p[length + 1] != ':' ? p + length + 1 : NULL;
}

/* @p bra again; or @!p bra again; back to a label: the loop ends where it is not taken. */
static void rewrite_branch(struct rewriter *r, const char *p, const char *end, const struct operands *operands, int *loops) {
    bool negated = p[1] == '!';
    const char *name = p + 1 + negated, *bra = name + word_length(name);
    bra += strspn(bra, " \t\n");
    if (strncmp(bra, "bra", 3) != 0 || bra > end || *loops == 0)
        die(&r->source, "inline PTX: of predicated instructions the simulated device has branches back to a label only");
    append_format(&r->output, negated ? "} while (!" : "} while (");
    rewrite_word(r, name, word_length(name), operands);
    append_format(&r->output, "); ");
    --*loops;
}

/* All instructions of an asm statement: one expression, or statements where it declares registers. */
static void rewrite_instructions(struct rewriter *r, const char *code, struct operands *operands, bool passes_place) {
    bool statements = strstr(code, ".reg") != NULL;
    const char *between = statements ? "({ " : "(";
    int loops = 0;
    for (const char *p = code; *(p += strspn(p, " \t\n{};")) != '\0';) {
        const char *label = statements ? skip_label(p) : NULL;
        if (label != NULL) {
            append_format(&r->output, "%sdo { ", between);
            between = "", p = label, loops++;
            continue;
        }
        bool is_comment = strncmp(p, "//", 2) == 0;
        const char *stop = p + strcspn(p, is_comment ? "\n" : ";"), *last = stop;
        while (isspace((unsigned char)last[-1])) last--;
        if (!is_comment) {
            append_format(&r->output, "%s", between);
            between = statements ? "" : ", ";
            if (strncmp(p, ".reg", 4) == 0)
                declare_registers(r, p + 4, last, operands);
            else if (*p == '@' && statements)
                rewrite_branch(r, p, last, operands, &loops);
            else
                rewrite_instruction(r, p, last, operands, passes_place);
            if (statements) append_format(&r->output, "; ");
        }
        p = stop;
    }
    if (loops > 0) die(&r->source, "inline PTX with a label to which no branch leads back");
    append_format(&r->output, "%s", statements ? "})" : *between == '(' ? "((void)0)" : ")");
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
    rewrite_instructions(r, code.data, &operands, token->passes_place);
    catch_up(r, token, end - 1);
    return end;
}

/* ---- wrappers -----------------------------------------------------------------------------------------------------------
 * A function of a header around one asm statement stands for an instruction: messages and counts name the line that calls it.
 * "artificial" says so in the debugging information, which report/lines.c reads. Where the instruction takes a place, the
 * function has two parameters more, by default the place of its call. */

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
