#include "lexer.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Words that leave the language of kernels: another assembler, other storage, attributes that switch the detectors off.
 * A word that ends with * stands for all that begin so. */
static const struct {
    const char *word, *why;
} refused[] = {
    {"asm", "inline assembly is not part of any task"},
    {"__asm*", "inline assembly is not part of any task"},
    {"__attribute*", "attributes are not allowed here"},
    {"__declspec", "attributes are not allowed here"},
    {"__builtin*", "built-in functions of the compiler are not allowed: use CUDA's"},
    {"__atomic*", "built-in functions of the compiler are not allowed: use CUDA's"},
    {"__sync_*", "built-in functions of the compiler are not allowed: use CUDA's"},
    {"__tsan*", "this is the detectors' own"},
    {"__sanitizer*", "this is the detectors' own"},
    {"__host__", "a hole holds device code only"},
    {"_Pragma", "use #pragma unroll"},
    {"simt*", "this is the simulated device's own"},
    {"cuda*", "a hole holds device code only: the runtime API is called by the host"},
    {"launch", "a hole holds device code only: kernels are launched by the host"},
    {"launch_*", "a hole holds device code only: kernels are launched by the host"},
    {"step_*", "the rest of the program is not part of the task"},
    {"reference_*", "the rest of the program is not part of the task"},
    {"extern", "a hole declares nothing of other files"},
    {"thread_local", "a kernel keeps nothing between launches"},
    {"namespace", "a hole opens no namespace"},
    {"operator", "a hole defines no operators"},
    {"import", "a hole imports nothing"},
    {"module", "a hole imports nothing"},
    {"friend", "a hole makes no other names"},
    {"virtual", "no task needs virtual functions"},
    {"goto", "no task needs goto"},
};

static const char *why_refused(const char *word, size_t length) {
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        size_t known = strlen(refused[i].word);
        bool prefix = refused[i].word[known - 1] == '*';
        if (prefix ? length >= known - 1 && strncmp(word, refused[i].word, known - 1) == 0
                   : length == known && strncmp(word, refused[i].word, known) == 0)
            return refused[i].why;
    }
    return NULL;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Past a string or character literal that begins at `at`; NULL where its line ends before it does. */
static const char *past_literal(const char *at) {
    for (char quote = *at++; *at != quote; at++) {
        if (*at == '\\' && at[1] != '\0') at++;
        if (*at == '\0' || *at == '\n') return NULL;
    }
    return at + 1;
}

bool is_device_code(const char *text, int line, char *why, size_t room) {
    char open[256];
    int depth = 0;
    bool line_begins = true;
    const char *reason = NULL;
    char word[48] = "";
    const char *at = text;
    while (*at != '\0' && reason == NULL) {
        if (*at == '\n') {
            line++, at++, line_begins = true;
        } else if (isspace((unsigned char)*at)) {
            at++;
        } else if (at[0] == '/' && at[1] == '/') {
            at += strcspn(at, "\n");
            if (at[-1] == '\\') reason = "a comment ends with a backslash";
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            if (end == NULL) reason = "a comment does not end in its hole";
            for (; end != NULL && at < end + 2; at++) line += *at == '\n';
        } else if (*at == '#') {
            const char *rest = at + 1 + strspn(at + 1, " \t");
            if (!line_begins || strncmp(rest, "pragma", 6) != 0) reason = "no preprocessor lines but #pragma unroll";
            rest += 6 + strspn(rest + (reason == NULL ? 6 : 0), " \t");
            if (reason == NULL && strncmp(rest, "unroll", 6) != 0) reason = "no preprocessor lines but #pragma unroll";
            at += strcspn(at, "\n");
            if (at[-1] == '\\') reason = "a line ends with a backslash";
        } else if (*at == '"' || *at == '\'') {
            if (at > text && at[-1] == 'R') reason = "no raw strings";
            const char *end = past_literal(at);
            if (end == NULL && reason == NULL) reason = "a string or character does not end on its line";
            if (end != NULL) at = end;
        } else if (isdigit((unsigned char)*at)) { /* 1'000 too: its quote begins no character */
            while (is_word(*at) || *at == '.' || (*at == '\'' && is_word(at[1]))) at++;
        } else if (is_word(*at)) {
            size_t length = 0;
            while (is_word(at[length])) length++;
            snprintf(word, sizeof word, "%.*s: ", (int)(length < 40 ? length : 40), at);
            reason = why_refused(at, length);
            if (strncmp(at, "extern __shared__ ", 18) == 0) reason = NULL;
            at += length;
        } else if (strchr("([{", *at) != NULL) {
            if (at[0] == '[' && at[1] == '[') reason = "attributes are not allowed here";
            if (depth == sizeof open)
                reason = "brackets are nested too deeply";
            else
                open[depth++] = *at;
            at++;
        } else if (strchr(")]}", *at) != NULL) {
            char wanted = *at == ')' ? '(' : *at == ']' ? '[' : '{';
            if (depth == 0 || open[--depth] != wanted) reason = "a bracket closes what this hole did not open";
            at++;
        } else if ((unsigned char)*at >= 0x80 || *at == '\\' || *at == '`' || *at == '$' || *at == '@') {
            reason = "this character is no part of a kernel";
        } else if (strncmp(at, "%:", 2) == 0 || strncmp(at, "<%", 2) == 0 || strncmp(at, "%>", 2) == 0 ||
                   strncmp(at, "<:", 2) == 0 || strncmp(at, ":>", 2) == 0 || strncmp(at, "\?\?", 2) == 0) {
            reason = "no digraphs or trigraphs";
        } else {
            at++;
        }
        if (reason == NULL) word[0] = '\0';
        if (reason == NULL && at > text && at[-1] != '\n' && !isspace((unsigned char)at[-1])) line_begins = false;
    }
    if (reason == NULL && depth > 0) reason = "a bracket is not closed in this hole";
    if (reason != NULL) snprintf(why, room, "line %d: %s%s", line, word, reason);
    return reason == NULL;
}
