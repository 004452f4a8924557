/* Words for a reader whose hole has failed to build. Nothing is refused here: what a hole may do is decided of what the compiler
 * makes of it (rewrite/main.c, confined/confine.awk, submission.c), whatever its text looks like. */
#include "task.h"

#include "text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* A word that ends with * stands for all that begin so. */
static const struct {
    const char *words, *why;
} known[] = {
    {"asm __asm*", "inline assembly is not part of any task"},
    {"__attribute* __declspec", "attributes that change what the compiler makes are not allowed here"},
    {"__builtin* __atomic* __sync_*", "built-in functions of the compiler are not allowed: use CUDA's"},
    {"__tsan* __sanitizer*", "this is the detectors' own"},
    {"simt*", "this is the simulated device's own"},
    {"cudaD* cudaE* cudaF* cudaG* cudaH* cudaL* cudaM* cudaS*",
     "a hole holds device code only: the runtime API is called by the host"},
    {"extern", "a hole declares nothing of other files"},
    {"thread_local", "a kernel keeps nothing between launches"},
    {"new delete", "a hole allocates nothing"},
    {"throw try catch", "a kernel has no exceptions"},
    {"virtual", "no task needs virtual functions"},
    {"goto", "no task needs goto"},
};

static const char *why_known(const char *word, size_t length) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (const char *at = known[i].words; *at != '\0'; at += strspn(at, "* ")) {
            size_t letters = strcspn(at, " *");
            if ((at[letters] == '*' ? length >= letters : length == letters) && strncmp(word, at, letters) == 0)
                return strncmp(word, "extern", length) == 0 && strncmp(line_start(word + length), "__shared__", 10) == 0
                           ? NULL
                           : known[i].why;
            at += letters;
        }
    return NULL;
}

/* Past a comment, a literal or a line of the preprocessor that begins at `at`, which may end at no place; else `at`. */
static const char *past_text(const char *at, bool line_begins, const char **why) {
    const char *end;
    if (at[0] == '/' && at[1] == '*') {
        end = strstr(at + 2, "*/");
        if (end == NULL) *why = "a comment does not end in its hole";
        return end == NULL ? at : end + 2;
    }
    bool is_line = (at[0] == '/' && at[1] == '/') || (*at == '#' && line_begins);
    if (!is_line && *at != '"' && *at != '\'') return at;
    for (end = at + 1; *end != '\0' && *end != '\n' && (is_line || *end != *at); end++)
        if (*end == '\\' && end[1] != '\0') end++;
    return is_line || *end != *at ? end : end + 1;
}

bool explain(const char *text, int line, char *why, size_t room) {
    const char *reason = NULL, *at = text, *past;
    char open[256];
    int depth = 0, length = 0;
    for (bool line_begins = true; *at != '\0' && reason == NULL; at = past) {
        past = past_text(at, line_begins, &reason);
        line_begins = *at == '\n' || (line_begins && isspace((unsigned char)*at));
        if (past > at) continue;
        past = at + 1;
        if (isdigit((unsigned char)*at))
            while (*past == '.' || *past == '\'' || word_length(past) > 0) past++;
        else if ((length = (int)word_length(at)) > 0) {
            past = at + length;
            reason = why_known(at, (size_t)length);
            if (reason == NULL) length = 0;
        } else if (*at != '\0' && strchr("([{", *at) != NULL && depth < (int)sizeof open) {
            open[depth++] = *at;
        } else if (*at != '\0' && strchr(")]}", *at) != NULL) {
            char wanted = *at == ')' ? '(' : *at == ']' ? '[' : '{';
            if (depth == 0 || open[--depth] != wanted) reason = "a bracket closes what this hole did not open";
        }
        if (reason != NULL) break;
    }
    if (reason == NULL && depth > 0) reason = "a bracket is not closed in this hole";
    if (reason == NULL) return false;
    snprintf(why, room, "line %d: %.*s%s%s", line + lines_between(text, at), length < 40 ? length : 40, at,
             length > 0 ? ": " : "", reason);
    return true;
}
