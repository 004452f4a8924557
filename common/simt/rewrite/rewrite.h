/* The data of a rewriting, and what its files offer each other. The text is read into tokens once; one pass over them (main.c)
 * writes the output in order. A construct that begins before the word or symbol that tells it takes its beginning back from
 * the end of the output. The program ends after one file: memory is never freed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct text {
    char *data; /* ends with '\0' */
    size_t length, room;
};

enum kind {
    START,
    END,         /* around the tokens */
    WORD,        /* a name, a keyword or a part of a number */
    LITERAL,     /* a string or a character */
    SYMBOL,      /* one character, -> or ... */
    DIRECTIVE,   /* a line of the preprocessor, #pragma for example */
    LINE_MARKER, /* # 12 "file" 1 3 */
    ENDLESS_RAW,
    UNREADABLE_RAW /* the R of a raw string without an end, or without a ( */
};

/* Blanks belong to no token: they are the text between one's end and the next one's beginning. */
struct token {
    enum kind kind;
    bool is_system; /* of a system header */
    int line;
    const char *file; /* as the line marker above spells it */
    const char *text, *end;
    size_t start;       /* of what comes of it in the output, once that is written */
    const char *before; /* goes before it there; NULL: nothing */
    bool passes_place;  /* an asm: of a wrapper that knows the line of its call */
};

struct source {
    const char *text;
    struct token *tokens;   /* tokens[-1] is START, the last one END */
    const struct token *at; /* where the pass is: messages name its line */
};

/* A function, as its declarations tell. */
struct function {
    const struct token *name;
    const char *path;  /* of its namespace */
    int needed;        /* template parameters without a default */
    int bodies;        /* definitions: more than one are overloads */
    int commas;        /* between its parameters */
    bool has_defaults; /* of parameters, which a pointer to the function does not know */
    bool is_template, is_variadic, is_overloaded;
    int declarations; /* with TYPE before the name */
    enum { HOST = 1, DEVICE = 2, KERNEL = 4, ANYWHERE = 8 } spaces;
};

/* A call, or a launch. */
struct use {
    const struct token *name;
    enum { LAUNCH, FROM_DEVICE, FROM_HOST } how;
};

/* A __shared__ variable declared outside of any function. */
struct shared_variable {
    const char *name, *path, *declaration; /* as it becomes at the head of a function */
};

struct scope {
    enum scope_kind { NAMESPACE, CLASS, FUNCTION, SHARED_FUNCTION, OTHER } kind;
    int parentheses; /* open where its brace opened */
    bool is_device;  /* in a function that runs on the device only */
    bool is_marked;  /* or there as well */
    bool is_host;    /* in a function that can only run on the host */
    bool is_template;
    const char *path; /* of the namespace that it is or lies in: ::a::b */
};
enum { DEEPEST = 1000 };

struct rewriter {
    struct source source;
    struct text output;
    struct function *functions;
    struct shared_variable *file_shared;
    struct use *uses;
    size_t function_count, file_shared_count, use_count;
    unsigned type_number; /* of the next struct without a name in shared memory */
    struct scope scopes[DEEPEST];
    int depth, parentheses;
    const struct token *declaration;   /* where the current declaration or statement starts */
    const struct token *arguments_end; /* of the launch that was rewritten last */
    struct text bounds, cluster;       /* the arguments of __launch_bounds__ and __cluster_dims__ in this declaration */
    struct text constants;             /* of its parameters that are __grid_constant__: a call each */
    bool has_own_warp_size;            /* the program has declared a warpSize */
    bool is_device;                    /* this declaration is a kernel's or a device function's */
    bool is_kernel, is_host;           /* it says __global__; it says __host__ */
    bool device_only;                  /* between #pragma simt device_only and host_too */
    bool is_submission;                /* from the first of these on: strangers' text, whatever its pragmas say */
};

/* ---- tokens.c ---- */
void *resize(void *memory, size_t bytes);
void append(struct text *text, const char *data, size_t length);
void append_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void die(const struct source *source, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool is_word(char c);
struct source tokenise(const char *text);
bool is(const struct token *token, const char *text);
bool is_same_word(const struct token *a, const struct token *b);
bool is_one_of(const struct token *token, const char *symbols);
bool touches(const struct token *token); /* the one before it */
bool names_word(const struct token *from, const struct token *end, const char *word);
const struct token *skip_markers(const struct token *token);
void check_readable(const struct source *source, const struct token *token);
/* The first of the characters `wanted` outside of any bracket opened at `token` or later; NULL when there is none. */
const struct token *find_outside_brackets(const struct source *source, const struct token *token, const char *wanted);
const struct token *skip_brackets(const struct source *source, const struct token *token);
/* The (, [, { or < that `token` closes. */
const struct token *opening(const struct token *token);
/* Past alignas(...), __attribute__((...)), __launch_bounds__(...) or __cluster_dims__(...); `token` itself when none stands there. */
const struct token *skip_attribute(const struct source *source, const struct token *token);
/* Past the > that closes the < at `token`, and what is between; NULL when there is none. */
struct angles {
    int arguments, defaults;
    bool is_variadic;
};
const struct token *skip_angles(const struct source *source, const struct token *token, struct angles *found);

/* ---- main.c ---- */
/* The text from `from` to `to`, without line markers and blanks at its end. */
void append_line(struct text *line, const char *from, const char *to);
/* Take what has been written from `start` on, as one line, and leave only its line ends. */
struct text take_back(struct rewriter *r, size_t start);
/* After what stood from `from` to `last` became one line: tell the compiler which line follows. */
void catch_up(struct rewriter *r, const struct token *from, const struct token *last);
const struct token *copy_token(struct rewriter *r, const struct token *token);

/* ---- spaces.c ---- */
void note_space(struct rewriter *r, struct function *function, const struct token *parenthesis);
void note_use(struct rewriter *r, const struct token *name, int how);
void note_call(struct rewriter *r, const struct token *name);
void check_uses(struct rewriter *r);
void check_parameters(struct rewriter *r, const struct token *parenthesis, const struct token *body);

/* ---- launch.c, shared.c, ptx.c: write a construct in place of the token, and return the first token that is left ---- */
typedef const struct token *rewriting(struct rewriter *r, const struct token *token);
rewriting rewrite_launch, rewrite_launch_call, rewrite_shared, rewrite_device, rewrite_asm;
/* How near a thing of the namespace `path` is to what the current scope means by its name; 0: it is not visible from here. */
size_t nearness(const struct rewriter *r, const char *path);
void note_function(struct rewriter *r, const struct token *token, const struct token *end, bool has_body);
bool declare_file_shared(struct rewriter *r, const struct token *brace);
/* At the [ of what may be the declaration of an array. */
void check_array(const struct rewriter *r, const struct token *bracket);
void list_ptx_instructions(void); /* on standard output */
void note_wrappers(struct rewriter *r);
