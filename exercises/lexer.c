#include "task.h"

#include "text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Words that leave the language of kernels: another assembler, other storage, attributes that switch the detectors off.
 * A word that ends with * stands for all that begin so. */
static const struct {
    const char *words, *why;
} refused[] = {
    {"asm __asm*", "inline assembly is not part of any task"},
    {"__attribute* __declspec", "attributes are not allowed here"},
    {"__builtin* __atomic* __sync_*", "built-in functions of the compiler are not allowed: use CUDA's"},
    {"__tsan* __sanitizer*", "this is the detectors' own"},
    {"__host__", "a hole holds device code only: __host__ __device__"},
    {"_Pragma", "use #pragma unroll"},
    {"simt*", "this is the simulated device's own"},
    {"cuda*", "a hole holds device code only: the runtime API is called by the host"},
    {"launch", "a hole holds device code only: kernels are launched by the host"},
    {"extern", "a hole declares nothing of other files"},
    {"thread_local", "a kernel keeps nothing between launches"},
    {"namespace", "a hole opens no namespace"},
    {"operator", "a hole allocates nothing and has no literals of its own"},
    {"import module", "a hole imports nothing"},
    {"friend", "a hole makes no other names"},
    {"virtual", "no task needs virtual functions"},
    {"goto", "no task needs goto"},
};

static const char *why_refused(const char *word, size_t length) {
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        for (const char *known = refused[i].words; *known != '\0'; known += strspn(known, " ")) {
            size_t letters = strcspn(known, " *");
            bool prefix = known[letters] == '*';
            if ((prefix ? length >= letters : length == letters) && strncmp(word, known, letters) == 0) return refused[i].why;
            known += letters + prefix;
        }
    }
    return NULL;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }
static const char *past_blanks(const char *at) { return at + strspn(at, " \t\r\n"); }

/* `word` at `at`, and where the text after it goes on; else NULL. */
static const char *past_word(const char *at, const char *word) {
    size_t length = strlen(word);
    return strncmp(at, word, length) == 0 && !is_word(at[length]) ? past_blanks(at + length) : NULL;
}

/* Where the scan is, and what it must remember. */
struct scan {
    const char *at, *why;
    char open[256]; /* brackets that are not closed; # for the line of a macro */
    int depth;
    bool line_begins; /* nothing but blanks on this line so far */
    const char *last; /* token */
};

/* What would make g++ read something else than this scan does, in a comment or a literal too: with none of these in a
 * text, its lines and tokens are what they seem. */
static const char *why_hidden(const char *at) {
    unsigned char c = (unsigned char)*at;
    if ((c < ' ' && strchr("\t\n", c) == NULL && !(c == '\r' && at[1] == '\n')) || c == 0x7f) return "a control character";
    const char *next = at + 1 + (c == '\\' ? strspn(at + 1, " \t\r") : 0);
    if (c == '\\' && (*next == '\n' || *next == '\0')) return "a line ends with a backslash";
    if (c == '?' && at[1] == '?' && at[2] != '\0' && strchr("=/'()!<>-", at[2]) != NULL) return "no digraphs or trigraphs";
    return NULL;
}

/* Words that are refused as a rule, where they mean something that kernels have. */
static bool is_allowed_here(const struct scan *scan, const char *at, const char *next) {
    static const char *const built_in[] = {"__builtin_assume", "__builtin_assume_aligned", "__builtin_expect"};
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
        if (past_word(at, built_in[i]) != NULL) return true;
    if (past_word(at, "extern") != NULL) return past_word(next, "__shared__") != NULL;
    if (past_word(at, "__host__") != NULL)
        return past_word(scan->last, "__device__") != NULL || past_word(next, "__device__") != NULL;
    if (past_word(at, "operator") != NULL)
        return past_word(next, "new") == NULL && past_word(next, "delete") == NULL && *next != '"';
    if (past_word(at, "namespace") == NULL) return past_word(at, "cuda") != NULL && *next == ':';
    while (is_word(*next)) next++;
    return past_word(scan->last, "using") != NULL || *past_blanks(next) == '=';
}

static void scan_word(struct scan *scan, char *word, size_t room) {
    size_t length = 0;
    while (is_word(scan->at[length])) length++;
    scan->why = why_refused(scan->at, length);
    if (scan->why != NULL && is_allowed_here(scan, scan->at, past_blanks(scan->at + length))) scan->why = NULL;
    if (scan->why != NULL) snprintf(word, room, "%.*s: ", (int)(length < 40 ? length : 40), scan->at);
    scan->at += length;
}

/* #pragma unroll, and #define and #undef of a name in capitals. */
static void scan_directive(struct scan *scan) {
    const char *rest = scan->at + 1 + strspn(scan->at + 1, " \t"), *unroll = past_word(rest, "pragma");
    bool defines = past_word(rest, "define") != NULL || past_word(rest, "undef") != NULL;
    if (unroll != NULL && (unroll = past_word(unroll, "unroll")) != NULL) {
        while (*rest != '\n' && *rest != '\0' && strncmp(rest, "//", 2) != 0)
            if (!is_word(*rest) && strchr(" \t\r()+-*:<>?,", *rest) == NULL)
                scan->why = "#pragma unroll takes a number", rest += strcspn(rest, "\n");
            else
                rest++;
    } else if (defines && scan->line_begins && scan->depth < (int)sizeof scan->open) {
        rest += strcspn(rest, " \t\n");
        rest += strspn(rest, " \t");
        size_t length = isupper((unsigned char)*rest) ? strspn(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") : 0;
        if (length == 0 || is_word(rest[length])) scan->why = "a macro's name has capitals only";
        rest += length;
        scan->open[scan->depth++] = '#';
    } else {
        scan->why = "no preprocessor lines but #pragma unroll, #define and #undef";
    }
    if (!scan->line_begins) scan->why = "no # inside a line";
    scan->at = rest;
}

static void scan_bracket(struct scan *scan) {
    static const char *const attributes[] = {"maybe_unused", "nodiscard", "likely", "unlikely", "fallthrough"};
    char c = *scan->at++;
    if (strchr(")]}", c) != NULL) {
        char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
        if (scan->depth == 0 || scan->open[--scan->depth] != wanted) scan->why = "a bracket closes what this hole did not open";
        return;
    }
    if (c == '[' && *scan->last == '[') { /* also with blanks or comments between */
        scan->why = "attributes are not allowed here";
        for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
            const char *past = past_word(past_blanks(scan->at), attributes[i]);
            if (past != NULL && *past == ']' && *past_blanks(past + 1) == ']') scan->why = NULL;
        }
    }
    if (scan->depth == (int)sizeof scan->open)
        scan->why = "brackets are nested too deeply";
    else
        scan->open[scan->depth++] = c;
}

/* Past a string or character literal. */
static void scan_literal(struct scan *scan, const char *text) {
    if (scan->at > text && scan->at[-1] == 'R') scan->why = "no raw strings";
    for (char quote = *scan->at++; *scan->at != quote; scan->at++) {
        if (*scan->at == '\\' && scan->at[1] != '\0') scan->at++;
        if (*scan->at == '\0' || *scan->at == '\n') {
            scan->why = "a string or character does not end on its line";
            return;
        }
    }
    scan->at++;
}

static void scan_token(struct scan *scan, const char *text, char *word, size_t room) {
    const char *at = scan->at;
    if (is_word(*at) && !isdigit((unsigned char)*at))
        scan_word(scan, word, room);
    else if (isdigit((unsigned char)*at)) /* 1'000 and 1e+5 too */
        while (is_word(*scan->at) || *scan->at == '.' || (*scan->at == '\'' && is_word(scan->at[1])) ||
               (strchr("+-", *scan->at) != NULL && *scan->at != '\0' && strchr("eEpP", scan->at[-1]) != NULL))
            scan->at++;
    else if (*at == '#')
        scan_directive(scan);
    else if (*at == '"' || *at == '\'')
        scan_literal(scan, text);
    else if (strchr("([{)]}", *at) != NULL)
        scan_bracket(scan);
    else if ((unsigned char)*at >= 0x80 || strchr("\\`$@", *at) != NULL)
        scan->why = "this character is no part of a kernel";
    else if (strncmp(at, "%:", 2) == 0 || strncmp(at, "<%", 2) == 0 || strncmp(at, "%>", 2) == 0 || strncmp(at, "<:", 2) == 0 ||
             strncmp(at, ":>", 2) == 0)
        scan->why = "no digraphs or trigraphs";
    else
        scan->at++;
    scan->last = at;
}

bool is_device_code(const char *text, int line, char *why, size_t room) {
    struct scan scan = {.at = text, .line_begins = true, .last = ""};
    char word[48] = "";
    while (*scan.at != '\0' && (scan.why = why_hidden(scan.at)) == NULL) scan.at++;
    if (scan.why == NULL) scan.at = text;
    while (*scan.at != '\0' && scan.why == NULL) {
        const char *began = scan.at;
        if (*began == '\n' && scan.depth > 0 && scan.open[scan.depth - 1] == '#') scan.depth--; /* the macro ends */
        if (strchr(" \t\r\n", *began) != NULL) {
            scan.at++;
        } else if (began[0] == '/' && began[1] == '/') {
            scan.at += strcspn(began, "\n");
        } else if (began[0] == '/' && began[1] == '*') {
            const char *end = strstr(began + 2, "*/");
            if (end == NULL) scan.why = "a comment does not end in its hole";
            if (end != NULL) scan.at = end + 2;
            if (scan.depth > 0 && scan.open[scan.depth - 1] == '#') scan.why = "no comment inside a macro";
            scan.line_begins = false;
        } else {
            scan_token(&scan, text, word, sizeof word);
            scan.line_begins = false;
        }
        if (*began == '\n') scan.line_begins = true;
    }
    if (scan.why == NULL && scan.depth > 0) scan.why = "a bracket is not closed in this hole";
    if (scan.why != NULL) snprintf(why, room, "line %d: %s%s", line + lines_between(text, scan.at), word, scan.why);
    return scan.why == NULL;
}
