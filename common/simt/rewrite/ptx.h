/* What the files that read inline PTX share: ptx.c the statements, ptx_instruction.c one instruction, ptx_table.c what there is. */
#pragma once

#include "rewrite.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct form {
    const char *opcodes, *modifiers, *operands, *function; /* NULL: named as the opcode */
};
extern const struct form ptx_forms[];

/* class: b bits, u and s integers, f floating point, p predicate. */
struct ptx_type {
    const char *name;
    int bits;
    char class;
};
extern const struct ptx_type ptx_types[];
const struct ptx_type *find_ptx_type(const char *name, size_t length);

/* A special register, of 32 bits or 64, and what it is in C++. */
struct special_register {
    const char *name, *expression;
    int bits;
};
extern const struct special_register special_registers[];

/* ---- reading ---- */

enum {
    MOST_OPERANDS = 160,
    MOST_REGISTERS = 100,
    MOST_PARTS = 140,
    MOST_TYPES = 4
}; /* wgmma with 256 columns has 128 accumulators */

struct slice {
    const char *p, *end;
};

/* Of a range, r<4>, `count` are declared, else it is 0. */
struct ptx_register {
    struct slice name;
    const struct ptx_type *type;
    int count;
    bool is_closed; /* its scope is over */
};

struct statement {
    struct rewriter *r;
    struct {
        struct text expression;
        struct slice name;
        char constraint;
        bool is_copied;
    } operands[MOST_OPERANDS];
    struct ptx_register registers[MOST_REGISTERS];
    struct slice labels[MOST_REGISTERS], targets[MOST_REGISTERS];
    int count, register_count, label_count, target_count;
    struct text before, body; /* declarations, instructions */
    struct slice instruction; /* this one: its name */
    bool are_statements, passes_place, uses_carry;
};

static inline bool equals(struct slice s, const char *text) {
    size_t length = (size_t)(s.end - s.p);
    return strlen(text) == length && memcmp(s.p, text, length) == 0;
}

static inline bool same(struct slice a, struct slice b) {
    return a.end - a.p == b.end - b.p && memcmp(a.p, b.p, (size_t)(a.end - a.p)) == 0;
}

static inline struct slice trim(struct slice s) {
    while (s.p < s.end && isspace((unsigned char)*s.p)) s.p++;
    while (s.p < s.end && isspace((unsigned char)s.end[-1])) s.end--;
    return s;
}

static inline bool is_name(char c) { return is_word(c) || c == '$' || c == '%'; }

/* The part of `rest` before the next of `separators` outside of brackets and braces; `rest` begins after it. */
static inline struct slice cut(struct slice *rest, const char *separators) {
    struct slice part = *rest;
    int depth = 0;
    for (part.end = rest->p; part.end < rest->end; part.end++) {
        depth += (*part.end == '[' || *part.end == '{') - (*part.end == ']' || *part.end == '}');
        if (depth == 0 && strchr(separators, *part.end) != NULL) break;
    }
    rest->p = part.end < rest->end ? part.end + 1 : rest->end;
    return part;
}

_Noreturn static inline void refuse(const struct statement *s, const char *format, ...) {
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    die(&s->r->source, "PTX instruction %.*s: %s", (int)(s->instruction.end - s->instruction.p), s->instruction.p, text);
}

/* ---- ptx_instruction.c ---- */

enum access { READ, WRITE, IN_PLACE };
const struct ptx_type *type_named(const char *name);
void append_register(struct text *out, const struct statement *s, int number, long index);
void write_value(struct statement *s, struct slice value, const struct ptx_type *type, enum access access, bool wider);
void write_instruction(struct statement *s, struct slice instruction); /* an error where no form has it */
