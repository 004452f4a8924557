/* One instruction of PTX, written as the call of a function of simt_ptx.h.
 *
 * Invariant: an instruction is written only when a form in ptx_table.c has its opcode, its modifiers in their order, and operands
 * of its kinds and sizes; any other is an error here, as in the assembler. */
#include "ptx.h"

/* What the modifiers of an instruction say. */
struct match {
    const struct form *form;
    struct slice opcode;
    struct text modifiers; /* simt_ptx::m_rn, ... */
    const struct ptx_type *types[MOST_TYPES];
    int type_count, number; /* of the # */
};

/* ---- forms: which one has this name ------------------------------------------------------------------------------------------- */

/* The alternatives of one word of a form's modifiers: which is the token? Its text, or NULL. */
static const char *find_alternative(struct slice word, struct slice token, struct match *match) {
    for (struct slice rest = word, alternative; rest.p < rest.end;) {
        alternative = cut(&rest, "|");
        bool is_told = *alternative.p != '-';
        struct slice plain = {alternative.p + !is_told, alternative.end};
        const char *hash = memchr(plain.p, '#', (size_t)(plain.end - plain.p));
        if (hash != NULL) { /* m64n#k16 */
            char *past;
            long number =
                strncmp(plain.p, token.p, (size_t)(hash - plain.p)) == 0 ? strtol(token.p + (hash - plain.p), &past, 10) : 0;
            if (number < 8 || number > 256 || number % 8 != 0 ||
                !same((struct slice){hash + 1, plain.end}, (struct slice){past, token.end}))
                continue;
            match->number = (int)number;
            return alternative.p;
        }
        if (!same(plain, token)) continue;
        const struct ptx_type *type = find_ptx_type(token.p, (size_t)(token.end - token.p));
        if (is_told && type != NULL && match->type_count < MOST_TYPES) match->types[match->type_count++] = type;
        if (is_told && type == NULL) {
            append_format(&match->modifiers, "%ssimt_ptx::m_", match->modifiers.length > 0 ? ", " : "");
            for (const char *p = token.p; p < token.end; p++) append(&match->modifiers, *p == ':' ? "_" : p, 1);
        }
        return alternative.p;
    }
    return NULL;
}

/* As the assembler does, modifiers are taken in any order, but of mbarrier, and types in theirs. */
static bool match_modifiers(const char *modifiers, struct slice name, bool in_order, struct match *match) {
    enum { MOST_TOKENS = 24 };
    struct slice tokens[MOST_TOKENS], rest = {modifiers, modifiers + strlen(modifiers)};
    int count = 0, left;
    while (name.p < name.end && count < MOST_TOKENS) tokens[count++] = cut(&name, ".");
    left = count;
    while (rest.p < rest.end) {
        struct slice word = cut(&rest, " ");
        if (word.p == word.end) continue; /* two blanks */
        bool is_optional = *word.p == '?', is_found = false, is_type = false;
        word.p += is_optional;
        for (int i = 0; i < count && !is_found; i++) {
            if (tokens[i].p == NULL) continue;
            bool is_another = find_ptx_type(tokens[i].p, (size_t)(tokens[i].end - tokens[i].p)) != NULL;
            is_found = !(is_type && is_another) && find_alternative(word, tokens[i], match) != NULL;
            is_type |= is_another;
            if (is_found) tokens[i].p = NULL, left--;
            if (in_order) break;
        }
        if (!is_found && !is_optional) return false;
    }
    return left == 0;
}

/* Is the instruction of this form, by its name? */
static bool match_form(const struct form *form, struct slice name, struct match *match) {
    for (struct slice rest = {form->opcodes, form->opcodes + strlen(form->opcodes)}; rest.p < rest.end;) {
        struct slice opcode = cut(&rest, " ");
        size_t length = (size_t)(opcode.end - opcode.p);
        struct slice modifiers = {name.p + length, name.end};
        if ((size_t)(name.end - name.p) < length || memcmp(name.p, opcode.p, length) != 0) continue;
        if (modifiers.p < modifiers.end && *modifiers.p++ != '.') continue;
        *match = (struct match){.form = form, .opcode = opcode};
        append(&match->modifiers, "", 0);
        if (match_modifiers(form->modifiers, modifiers, *name.p == 'm' && name.p[1] == 'b', match)) return true;
    }
    return false;
}

/* ---- operands ----------------------------------------------------------------------------------------------------------------- */

/* A number: 1, -1, 0x1fU, 0f3F800000, 1.5, as C++ has it. */
static bool write_number(struct text *out, struct slice s) {
    const char *digits = s.p + (s.p < s.end && (*s.p == '-' || *s.p == '~'));
    if (digits == s.end || !isdigit((unsigned char)*digits)) return equals(s, "WARP_SZ") ? (append(out, "32", 2), true) : false;
    bool is_single = digits[0] == '0' && (digits[1] | 32) == 'f', is_double = digits[0] == '0' && (digits[1] | 32) == 'd';
    if (is_single || is_double) {
        if (s.end - digits != (is_single ? 10 : 18) || digits != s.p) return false;
        append_format(out, "0x%.*s%s", (int)(s.end - digits - 2), digits + 2, is_single ? "u" : "ull");
        return true;
    }
    for (const char *p = digits; p < s.end; p++)
        if (!is_word(*p) && *p != '.' && !((*p == '+' || *p == '-') && (p[-1] | 32) == 'e')) return false;
    append(out, s.p, (size_t)(s.end - s.p));
    return true;
}

/* Has a register of this class and size the right type? `wider`: it may be larger than what the instruction takes. */
static bool fits(char class, int bits, const struct ptx_type *type, bool wider) {
    if (type == NULL) return true;
    if ((class == 'p') != (type->class == 'p')) return false;
    int wanted = type->bits < 16 ? 16 : type->bits;
    if (class != 'p' && (wider ? bits < wanted : bits != wanted)) return false;
    return class == 'b' || type->class == 'b' || (class == 'f') == (type->class == 'f');
}

const struct ptx_type *type_named(const char *name) { return find_ptx_type(name, strlen(name)); }

/* %3 or %[name], past it, or -1. */
static int operand_number(const struct statement *s, struct slice *at) {
    if (at->p + 1 >= at->end || *at->p != '%') return -1;
    if (isdigit((unsigned char)at->p[1])) {
        char *past;
        long number = strtol(at->p + 1, &past, 10);
        if (number >= s->count) refuse(s, "there is no operand %%%ld", number);
        at->p = past;
        return (int)number;
    }
    const char *end = at->p[1] == '[' ? memchr(at->p, ']', (size_t)(at->end - at->p)) : NULL;
    if (end == NULL) return -1;
    for (int i = 0; i < s->count; i++)
        if (s->operands[i].name.p != NULL && same(s->operands[i].name, (struct slice){at->p + 2, end}))
            return at->p = end + 1, i;
    refuse(s, "there is no operand %.*s", (int)(end + 1 - at->p), at->p);
}

/* A register that the asm has declared: its number, and of a range which. */
static int find_register(const struct statement *s, struct slice name, long *index) {
    for (int i = s->register_count - 1; i >= 0; i--) {
        const struct ptx_register *of = &s->registers[i];
        if (of->is_closed) continue;
        long length = of->name.end - of->name.p;
        if (of->count == 0 && same(of->name, name)) return i;
        if (of->count == 0 || name.end - name.p <= length || memcmp(of->name.p, name.p, (size_t)length) != 0) continue;
        char *past;
        *index = strtol(name.p + length, &past, 10);
        if (past == name.end && *index < of->count) return i;
    }
    return -1;
}

void append_register(struct text *out, const struct statement *s, int number, long index) {
    append_format(out, "simt_");
    for (const char *p = s->registers[number].name.p; p < s->registers[number].name.end; p++)
        append(out, is_word(*p) ? p : "_", 1);
    append_format(out, "_%d", number);
    if (s->registers[number].count > 0) append_format(out, "_%ld", index);
}

/* One value: %0, a register, a number. READ: as a value of the type; WRITE: a variable that may be another; IN_PLACE: the variable. */
void write_value(struct statement *s, struct slice value, const struct ptx_type *type, enum access access, bool wider) {
    value = trim(value);
    bool is_negated = value.p < value.end && *value.p == '!';
    if (is_negated) value = trim((struct slice){value.p + 1, value.end});
    if (is_negated && (type == NULL || type->class != 'p' || access != READ)) refuse(s, "! stands before predicates only");
    struct text out = {0};
    struct slice rest = value;
    long index = 0;
    int number = operand_number(s, &rest), in = -1;
    if (number >= 0 && rest.p == rest.end) {
        char constraint = s->operands[number].constraint;
        bool is_number = constraint == 'n' && access == READ;
        int bits = constraint == 'h' ? 16 : constraint == 'l' || constraint == 'd' ? 64 : 32;
        if (!is_number && !fits(constraint == 'f' || constraint == 'd' ? 'f' : 'b', bits, type, wider))
            refuse(s, "%%%d, which is \"%c\", has not the type that stands there", number, constraint);
        if (s->operands[number].is_copied && access == READ)
            append_format(&out, "simt_in_%d", number);
        else
            append_format(&out, "(%s)", s->operands[number].expression.data);
    } else if (equals(value, "_") && access == WRITE) {
        append_format(&out, "simt_ptx::sink{}");
    } else if ((in = find_register(s, value, &index)) >= 0) {
        const struct ptx_type *own = s->registers[in].type;
        if (!fits(own->class, own->bits, type, wider))
            refuse(s, "register %.*s, which is .%s, has not the type that stands there", (int)(value.end - value.p), value.p,
                   own->name);
        append_register(&out, s, in, index);
    } else {
        const struct special_register *special = special_registers;
        while (special->name != NULL && !equals(value, special->name)) special++;
        if (special->name != NULL && access == READ && fits('u', special->bits, type, wider))
            append_format(&out, "%s", special->expression);
        else if (access != READ || !write_number(&out, value))
            refuse(s, "%.*s is no operand that it takes", (int)(value.end - value.p), value.p);
    }
    if (access == READ && type != NULL)
        append_format(&s->body, "%ssimt_ptx::get<simt_ptx::%s>(%s)", is_negated ? "!" : "", type->name, out.data);
    else
        append(&s->body, out.data, out.length);
}

static bool says(const struct statement *s, const char *word) {
    return memmem(s->instruction.p, (size_t)(s->instruction.end - s->instruction.p), word, strlen(word)) != NULL;
}

/* [%0 + 16]: a base and a number of bytes. An address of shared memory has 32 bits or 64, another 64. */
static void write_address(struct statement *s, struct slice address) {
    struct slice base = address, offset = {0};
    const char *plus = memchr(address.p, '+', (size_t)(address.end - address.p));
    if (plus != NULL) base.end = plus, offset = trim((struct slice){plus + 1, address.end});
    append_format(&s->body, "simt_ptx::address(");
    write_value(s, base, says(s, "shared") || says(s, "matrix") ? NULL : type_named("b64"), READ, false);
    append(&s->body, ")", 1);
    if (offset.p == NULL) return;
    append_format(&s->body, " + (long)");
    write_value(s, offset, NULL, READ, false);
}

/* Before an array in braces, of which the first is %N, BASE[...] say: does the array belong to a caller? */
static void write_brace(struct statement *s, struct slice first) {
    int number = operand_number(s, &first);
    const char *text = number >= 0 ? s->operands[number].expression.data : "";
    text += strspn(text, " ");
    size_t length = 0;
    while (is_word(text[length])) length++;
    bool is_element = length > 0 && !isdigit((unsigned char)*text) && text[length] == '[' && text[strlen(text) - 1] == ']';
    if (is_element)
        append_format(&s->body, "simt_ptx::in_braces<simt_ptx::of_caller<decltype(%.*s), decltype((%s))>>(", (int)length, text,
                      text);
    else
        append_format(&s->body, "simt_ptx::in_braces<false>(");
}

static struct slice unwrap(struct slice s, char open, char close) {
    s = trim(s);
    return s.end - s.p >= 2 && *s.p == open && s.end[-1] == close ? trim((struct slice){s.p + 1, s.end - 1})
                                                                  : (struct slice){0};
}

/* A kind of operand, as the form says it: the letter, whether it may be wider, its type. */
static const struct ptx_type *type_of(const struct match *match, struct slice kind, int parts) {
    const char *colon = memchr(kind.p, ':', (size_t)(kind.end - kind.p));
    const struct ptx_type *first = match->type_count > 0 ? match->types[0] : NULL;
    if (colon == NULL) return first;
    struct slice name = {colon + 1, kind.end - (kind.end[-1] == '?')};
    char wide[8];
    if (equals(name, "1") || equals(name, "2")) return match->types[name.p[0] - '1'];
    if (equals(name, "w") || equals(name, "e")) {
        snprintf(wide, sizeof wide, "%c%d", first->class,
                 *name.p == 'w' ? 2 * first->bits : first->bits / (parts > 0 ? parts : 1));
        return type_named(wide);
    }
    return find_ptx_type(name.p, (size_t)(name.end - name.p));
}

static int count_parts(struct slice list) {
    int count = 0;
    for (; list.p < list.end; count++) cut(&list, ",");
    return count;
}

/* Of ld, st, ldmatrix and stmatrix: as many values as the name says. */
static void check_width(const struct statement *s, const struct match *match, struct slice list) {
    int wanted = says(s, ".v4") || says(s, ".x4") ? 4 : says(s, ".v2") || says(s, ".x2") ? 2 : 1;
    bool has_width = equals(match->opcode, "ld") || equals(match->opcode, "st") || equals(match->opcode, "ldu") ||
                     says(s, "dmatrix") || says(s, "stmatrix");
    if (has_width && count_parts(list) != wanted) refuse(s, "it has %d values in braces", wanted);
    if (says(s, ".v4") && match->types[0]->bits == 64) refuse(s, "it is wider than 16 bytes");
}

/* The parts of {a, b}, or what stands without braces, one by one. */
static void write_parts(struct statement *s, const struct match *match, struct slice kind, struct slice list,
                        enum access access) {
    bool wider = kind.p[1] == '>';
    const struct ptx_type *type = type_of(match, kind, count_parts(list));
    if (*kind.p == 'D' || *kind.p == 'b') check_width(s, match, list);
    for (const char *between = ""; list.p < list.end; between = ", ") {
        append_format(&s->body, "%s", between);
        write_value(s, cut(&list, ","), type, access, wider);
    }
}

/* x or x|y: two results, the second may be missing. */
static void write_two(struct statement *s, const struct match *match, struct slice kind, struct slice operand) {
    struct slice second = operand, first = cut(&second, "|");
    bool is_setp = equals(match->opcode, "setp");
    const struct ptx_type *type = is_setp ? type_named("pred") : type_of(match, kind, 0);
    write_value(s, first, type, WRITE, false);
    append(&s->body, ", ", 2);
    if (second.p < second.end)
        write_value(s, second, type_named("pred"), WRITE, false);
    else
        append_format(&s->body, "simt_ptx::sink{}");
}

static void write_operand(struct statement *s, const struct match *match, struct slice kind, struct slice operand) {
    struct slice braces = unwrap(operand, '{', '}'), brackets = unwrap(operand, '[', ']');
    char letter = *kind.p;
    if (letter == 'A' && braces.p != NULL) {
        write_brace(s, braces);
        write_parts(s, &(struct match){0}, (struct slice){"A", "A" + 1}, braces, IN_PLACE);
        append(&s->body, ")", 1);
    } else if (letter == 'm' && brackets.p != NULL) {
        write_address(s, brackets);
    } else if (letter == 't' && brackets.p != NULL) {
        struct slice map = cut(&brackets, ","), coordinates = unwrap(brackets, '{', '}');
        if (count_parts(coordinates) != kind.p[1] - '0') refuse(s, "its coordinates are not %c numbers in braces", kind.p[1]);
        write_address(s, map);
        append(&s->body, ", ", 2);
        write_parts(s, match, (struct slice){"v:b32", "v:b32" + 5}, coordinates, READ);
    } else if (letter == 'p') {
        write_value(s, operand, type_named("pred"), READ, false);
    } else if (letter == 'Q') {
        write_two(s, match, kind, operand);
    } else if (letter == 'v' || letter == 'b') {
        if (letter == 'v' && braces.p == NULL)
            refuse(s, "%.*s must be a list in braces", (int)(operand.end - operand.p), operand.p);
        write_parts(s, match, kind, braces.p != NULL ? braces : operand, READ);
    } else if (letter == 'a' && brackets.p == NULL && braces.p == NULL) {
        write_value(s, operand, type_of(match, kind, 0), READ, kind.p[1] == '>');
    } else {
        refuse(s, "%.*s is no operand that it takes", (int)(operand.end - operand.p), operand.p);
    }
}

/* ---- instructions -------------------------------------------------------------------------------------------------------------- */

/* Do the operands have the kinds of the form? Only what tells forms of one name apart. */
static bool match_operands(const char *kinds, struct slice operands, bool has_hint) {
    struct slice rest = {kinds + (*kinds == '@'), kinds + strlen(kinds)};
    while (rest.p < rest.end) {
        struct slice kind = cut(&rest, " "), before = operands;
        if (*kind.p == 'c') continue;
        if (*kind.p == 'h' && !has_hint) continue;
        if (operands.p >= operands.end) return kind.end[-1] == '?' && *kind.p != 'h';
        struct slice operand = cut(&operands, ",");
        bool in_braces = unwrap(operand, '{', '}').p != NULL, in_brackets = unwrap(operand, '[', ']').p != NULL;
        if ((*kind.p == 'm' || *kind.p == 't') != in_brackets || ((*kind.p == 'A' || *kind.p == 'v') && !in_braces) ||
            (strchr("adpQs", *kind.p) != NULL && in_braces)) {
            if (kind.end[-1] != '?') return false;
            operands = before;
        }
        if (*kind.p == 's' && !equals(trim(operand), "_")) return false;
    }
    return operands.p >= operands.end;
}

static void write_call(struct statement *s, const struct match *match) {
    append_format(&s->body, "simt_ptx::");
    const char *name = match->form->function != NULL ? match->form->function : match->opcode.p;
    for (size_t i = 0, end = match->form->function != NULL ? strlen(name) : (size_t)(match->opcode.end - match->opcode.p);
         i < end; i++)
        append(&s->body, is_word(name[i]) ? name + i : "_", 1);
    append_format(&s->body, "_<simt_ptx::mods<%s>", match->modifiers.data);
    for (int i = 0; i < match->type_count; i++) append_format(&s->body, ", simt_ptx::%s", match->types[i]->name);
    if (match->number > 0) append_format(&s->body, ", %d", match->number);
    append_format(&s->body, ">(");
}

/* cp.async copies 4, 8 or 16 bytes, .cg 16. */
static void check_copy(const struct statement *s, struct slice operands) {
    cut(&operands, ",");
    cut(&operands, ",");
    struct slice bytes = trim(cut(&operands, ","));
    if (bytes.p < bytes.end && isdigit((unsigned char)*bytes.p) && !equals(bytes, "16") &&
        (says(s, ".cg") || (!equals(bytes, "4") && !equals(bytes, "8"))))
        refuse(s, "it does not copy %.*s bytes", (int)(bytes.end - bytes.p), bytes.p);
}

void write_instruction(struct statement *s, struct slice instruction) {
    struct slice name = {instruction.p, instruction.p};
    while (name.end < instruction.end && (is_word(*name.end) || *name.end == '.' || *name.end == ':')) name.end++;
    struct slice operands = trim((struct slice){name.end, instruction.end});
    s->instruction = name;
    if (strncmp(name.p, "tcgen05.", 8) == 0)
        refuse(s, "it is Blackwell's (compute capability 10.0): the simulated device is 9.0");
    bool is_known = false, has_hint = says(s, "cache_hint");
    struct match match = {0};
    const struct form *form = ptx_forms;
    for (; form->opcodes != NULL; form++) {
        if (*form->opcodes == '#' || !match_form(form, name, &match)) continue;
        is_known = true;
        if (match_operands(form->operands, operands, has_hint)) break;
    }
    if (form->opcodes == NULL && is_known && says(s, "wgmma.mma_async") && (says(s, ".e4m3") || says(s, ".e5m2")))
        refuse(s, "8-bit operands are K-major only: behind the two factors it takes no transposition, so not %.*s",
               (int)(operands.end - operands.p), operands.p);
    if (form->opcodes == NULL && is_known)
        refuse(s, "it does not take the operands %.*s", (int)(operands.end - operands.p), operands.p);
    if (form->opcodes == NULL) refuse(s, "the simulated device does not have it");
    struct slice rest = {form->operands, form->operands + strlen(form->operands)};
    bool takes_place = *rest.p == '@';
    rest.p += takes_place;
    if (rest.p < rest.end && (*rest.p == 'd' || *rest.p == 'D')) { /* results */
        struct slice kind = cut(&rest, " "), result = trim(cut(&operands, ",")), braces = unwrap(result, '{', '}');
        append_format(&s->body, "simt_ptx::into(");
        write_parts(s, &match, kind, braces.p != NULL ? braces : result, WRITE);
        append_format(&s->body, ") = ");
    }
    write_call(s, &match);
    if (takes_place) append_format(&s->body, s->passes_place ? "simt_ptx::here(simt_file, simt_line)" : "simt_ptx::here()");
    const char *between = takes_place ? ", " : "";
    if (equals(match.opcode, "cp.async")) check_copy(s, operands);
    while (rest.p < rest.end) {
        struct slice kind = cut(&rest, " ");
        bool is_carry = *kind.p == 'c', is_last = operands.p >= operands.end;
        if (*kind.p == 's') cut(&operands, ",");
        if (*kind.p == 's' || *kind.p == 'h' || (is_last && !is_carry)) continue;
        append_format(&s->body, is_carry ? "%ssimt_carry" : "%s", between);
        between = ", ";
        s->uses_carry |= is_carry;
        if (!is_carry) write_operand(s, &match, kind, trim(cut(&operands, ",")));
    }
    append(&s->body, ")", 1);
}
