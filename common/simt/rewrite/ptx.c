/* Inline PTX, read by its grammar and written as C++.
 *
 *     asm("add.s32 %0, %1, 4;" : "=r"(y) : "r"(x));
 *     ->  (simt_ptx::put((y), simt_ptx::add_<simt_ptx::mods<>, simt_ptx::s32>(simt_ptx::get<simt_ptx::s32>((x)), ...)));
 *
 * Where the asm declares registers, has labels or predicates, its instructions become statements, a label a label, a branch a goto:
 *
 *     .reg .pred p; again: f p, [%0]; @!p bra again;  ->  ({ bool simt_p_0{}; simt_again: ...; if (!simt_p_0) goto simt_again; })
 */
#include "ptx.h"
#include "ptx.h"

/* .reg .pred p, q, r<4>; */
static void declare_registers(struct statement *s, struct slice list) {
    list = trim(list);
    struct slice type = {list.p, list.p};
    while (type.end < list.end && !isspace((unsigned char)*type.end)) type.end++;
    const struct ptx_type *of = type.p < type.end ? find_ptx_type(type.p + 1, (size_t)(type.end - type.p - 1)) : NULL;
    if (of == NULL || *type.p != '.' || of->bits > 64)
        die(&s->r->source, "inline PTX with registers of type %.*s", (int)(type.end - type.p), type.p);
    for (list.p = type.end; list.p < list.end;) {
        struct slice name = trim(cut(&list, ","));
        if (s->register_count == MOST_REGISTERS) die(&s->r->source, "inline PTX with more than %d registers", MOST_REGISTERS);
        const char *range = memchr(name.p, '<', (size_t)(name.end - name.p));
        struct ptx_register *own = &s->registers[s->register_count];
        *own =
            (struct ptx_register){{name.p, range != NULL ? range : name.end}, of, range != NULL ? atoi(range + 1) : 0, false};
        for (const char *p = own->name.p; p < own->name.end; p++)
            if (!is_name(*p)) die(&s->r->source, "inline PTX: %.*s is no name of a register", (int)(name.end - name.p), name.p);
        for (int i = 0; i < (range != NULL ? own->count : 1); i++) {
            append_format(&s->before, "[[maybe_unused]] simt_ptx::%s ", of->name);
            append_register(&s->before, s, s->register_count, i);
            append_format(&s->before, "{}; ");
        }
        s->register_count++;
    }
}

static void append_label(struct text *out, struct slice name) {
    append_format(out, "simt_");
    for (; name.p < name.end; name.p++) append(out, is_word(*name.p) ? name.p : "_", 1);
}

/* @p or @!p before an instruction; past it. */
static const char *write_predicate(struct statement *s, struct slice *instruction) {
    struct slice predicate = {instruction->p + 1, instruction->p + 1};
    while (predicate.end < instruction->end && (is_name(*predicate.end) || *predicate.end == '!')) predicate.end++;
    s->instruction = *instruction;
    append_format(&s->body, "if (");
    write_value(s, predicate, type_named("pred"), READ, false);
    append_format(&s->body, ") ");
    return (trim((struct slice){predicate.end, instruction->end})).p;
}

static bool starts_with(struct slice s, const char *word) {
    size_t length = strlen(word);
    return (size_t)(s.end - s.p) >= length && memcmp(s.p, word, length) == 0 &&
           (s.p + length == s.end || !is_name(s.p[length]));
}

static void write_statement(struct statement *s, struct slice at) {
    if (starts_with(at, ".reg")) {
        declare_registers(s, (struct slice){at.p + 4, at.end});
        return;
    }
    if (starts_with(at, ".pragma") || starts_with(at, ".loc")) return;
    if (*at.p == '@') at.p = write_predicate(s, &at);
    if (starts_with(at, "bra")) {
        struct slice target = at;
        while (target.p < target.end && !isspace((unsigned char)*target.p)) target.p++;
        target = trim(target);
        if (s->target_count == MOST_REGISTERS) die(&s->r->source, "inline PTX with more than %d branches", MOST_REGISTERS);
        s->targets[s->target_count++] = target;
        append_format(&s->body, "goto ");
        append_label(&s->body, target);
    } else {
        write_instruction(s, at);
    }
    append_format(&s->body, s->are_statements ? "; " : ", ");
}

/* The end of what begins at p: a comment, a label, a brace, or an instruction with its ;. */
static const char *write_next(struct statement *s, const char *p) {
    const char *end = p;
    if (strncmp(p, "//", 2) == 0) return p + strcspn(p, "\n");
    if (strncmp(p, "/*", 2) == 0) return (end = strstr(p, "*/")) != NULL ? end + 2 : p + strlen(p);
    while (is_name(*end)) end++;
    const char *colon = end + strspn(end, " \t\n");
    if (end > p && *colon == ':' && colon[1] != ':') {
        if (s->label_count == MOST_REGISTERS) die(&s->r->source, "inline PTX with more than %d labels", MOST_REGISTERS);
        s->labels[s->label_count++] = (struct slice){p, end};
        append_label(&s->body, (struct slice){p, end});
        append_format(&s->body, ": ; ");
        return colon + 1;
    }
    end = p + strcspn(p, ";");
    if (*end == '\0') die(&s->r->source, "inline PTX: a ; is missing after %s", p);
    write_statement(s, trim((struct slice){p, end}));
    return end + 1;
}

/* All instructions of an asm statement. Scopes end the names of their registers. */
static void write_instructions(struct statement *s, const char *code) {
    int open[MOST_REGISTERS], depth = 0;
    for (const char *p = code; *(p += strspn(p, " \t\n;")) != '\0';) {
        if (*p == '{') {
            if (depth == MOST_REGISTERS) die(&s->r->source, "inline PTX with braces nested too deep");
            open[depth++] = s->register_count;
            p++;
        } else if (*p == '}') {
            if (depth == 0) die(&s->r->source, "inline PTX: } without {");
            for (int i = open[--depth]; i < s->register_count; i++) s->registers[i].is_closed = true;
            p++;
        } else {
            p = write_next(s, p);
        }
    }
    if (depth > 0) die(&s->r->source, "inline PTX: { without }");
    for (int i = 0, found; i < s->target_count; i++) {
        for (found = 0; found < s->label_count && !same(s->labels[found], s->targets[i]);) found++;
        if (found == s->label_count)
            die(&s->r->source, "inline PTX: a branch to %.*s, which is no label of this asm",
                (int)(s->targets[i].end - s->targets[i].p), s->targets[i].p);
    }
}

/* Concatenated string literals, unescaped, with %% as % and %= as the number of the asm; past them. */
static const struct token *read_strings(const struct token *token, struct text *code) {
    int number = token->line;
    append(code, "", 0);
    for (token = skip_markers(token);; token = skip_markers(token + 1)) {
        bool is_raw = *token->text == 'R' && token->kind == LITERAL;
        if (*token->text != '"' && !is_raw) return token;
        const char *p = token->text + 1, *end = token->end - 1;
        if (is_raw) { /* R"x(...)x" */
            p = strchr(token->text, '(') + 1;
            end = token->end - (p - token->text - 1);
        }
        for (; p < end; p++) {
            bool is_escaped = *p == '\\' && !is_raw;
            p += is_escaped;
            if (*p == '%' && p + 1 < end && (p[1] == '%' || p[1] == '=')) {
                if (*++p == '=')
                    append_format(code, "%d", number);
                else
                    append(code, "%", 1);
                continue;
            }
            append(code, is_escaped && *p == 'n' ? "\n" : is_escaped && *p == 't' ? "\t" : p, 1);
        }
    }
}

/* Outputs and inputs, [name] "=f"(y) : "f"(x). What follows them is of no concern. */
static void read_operands(struct statement *s, const struct token *token) {
    const struct source *source = &s->r->source;
    for (int section = 0; is(token, ":") && section < 2; section++) {
        token = skip_markers(token + 1);
        while (*token->text == '"' || is(token, "[")) {
            struct slice name = {0};
            if (is(token, "[")) {
                name = (struct slice){token[1].text, token[1].end};
                token = skip_markers(skip_brackets(source, token));
            }
            const struct token *expression = skip_markers(token + 1);
            if (*token->text != '"' || !is(expression, "(") || s->count == MOST_OPERANDS)
                die(source, "inline PTX whose operands cannot be read");
            const char *constraint = token->text + 1 + strspn(token->text + 1, "=+&");
            if (strchr("rlhfdn", *constraint) == NULL)
                die(source, "inline PTX: the simulated device does not have the constraint %.*s",
                    (int)(token->end - token->text), token->text);
            token = skip_brackets(source, expression);
            struct text *text = &s->operands[s->count].expression;
            append_line(text, expression->end, token[-1].text);
            s->operands[s->count].name = name;
            s->operands[s->count].constraint = *constraint;
            s->operands[s->count++].is_copied = section == 1 && *constraint != 'n';
            token = skip_markers(token);
            if (is(token, ",")) token = skip_markers(token + 1);
        }
    }
}

/* With several instructions an input must be read before the first writes an output, which may be the same variable. Not where a
 * product of a warpgroup names the registers of A in place. */
static void copy_inputs(struct statement *s, const char *code) {
    bool copies = s->are_statements && strstr(code, "wgmma.mma_async") == NULL;
    for (int i = 0; i < s->count; i++) {
        s->operands[i].is_copied &= copies;
        if (s->operands[i].is_copied)
            append_format(&s->before, "[[maybe_unused]] const auto simt_in_%d = (%s); ", i, s->operands[i].expression.data);
    }
}

static bool has_statements(const char *code) {
    const char *semicolon = strchr(code, ';');
    return strstr(code, ".reg") != NULL || strchr(code, '@') != NULL ||
           (semicolon != NULL && strchr(semicolon + 1, ';') != NULL);
}

const struct token *rewrite_asm(struct rewriter *r, const struct token *token) {
    const struct token *t = skip_markers(token + 1);
    while (is(t, "volatile") || is(t, "__volatile__") || is(t, "__volatile") || is(t, "inline")) t = skip_markers(t + 1);
    if (!is(t, "(")) die(&r->source, "asm without (");
    const struct token *end = skip_brackets(&r->source, t);
    struct text code = {0};
    struct statement *s = resize(NULL, sizeof *s);
    *s = (struct statement){.r = r, .passes_place = token->passes_place};
    append(&s->before, "", 0);
    append(&s->body, "", 0);
    t = read_strings(t + 1, &code);
    read_operands(s, t);
    s->are_statements |= has_statements(code.data);
    copy_inputs(s, code.data);
    write_instructions(s, code.data);
    if (s->uses_carry) append_format(&s->before, "unsigned simt_carry = 0; ");
    if (s->are_statements || s->uses_carry || s->label_count > 0) {
        append_format(&r->output, "({ ");
        for (int i = 0; i < s->label_count; i++) {
            append_format(&r->output, "__label__ ");
            append_label(&r->output, s->labels[i]);
            append_format(&r->output, "; ");
        }
        append_format(&r->output, "%s%s})", s->before.data, s->body.data);
    } else if (s->body.length > 0) {
        append_format(&r->output, "(%.*s)", (int)s->body.length - 2, s->body.data); /* without its last comma */
    } else {
        append_format(&r->output, "((void)0)");
    }
    catch_up(r, token, end - 1);
    return end;
}
