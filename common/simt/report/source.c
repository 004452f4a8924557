/* What the text of a source line says about a race in it. The text may be absent. */
#include "report.h"

#include <ctype.h>
#include <pthread.h>
#include <regex.h>

/* A line as source_line() names it, without comments, and with blanks only where two words would touch. NULL: it cannot be read. */
static char *read_line(const char *where) {
    static const char *const folders[] = {"", SOURCE_ROOT "/", BINARY_ROOT "/"}; /* which lines.c leaves out */
    const char *end = strstr(where, ", called at ");
    const char *colon = memrchr(where, ':', end != NULL ? (size_t)(end - where) : strlen(where));
    char path[600], *text = NULL;
    FILE *file = NULL;
    for (int i = 0; i < 3 && file == NULL && colon != NULL; i++) {
        snprintf(path, sizeof path, "%s%.*s", folders[i], (int)(colon - where), where);
        file = fopen(path, "r");
    }
    size_t room = 0, length = 0;
    for (int left = file != NULL ? atoi(colon + 1) : 0; left > 0; left--)
        if (getline(&text, &room, file) < 0) free(text), text = NULL, left = 0;
    if (file != NULL) fclose(file);
    if (text == NULL) return NULL;
    for (const char *p = text; *p != '\0' && strncmp(p, "//", 2) != 0; p++)
        if (!isspace((unsigned char)*p) ||
            (length > 0 && isalnum((unsigned char)p[1]) && isalnum((unsigned char)text[length - 1])))
            text[length++] = *p;
    text[length] = '\0';
    return text;
}

/* Updates, as regular expressions, and which of their groups is the operator; 0: the line does not tell. */
#define WORD "[A-Za-z0-9_]+"
#define OP "([-+*/%&|^]|<<|>>)="
#define STEP "([+][+]|--)"
#define START "(^|[{} )])"                                         /* of a statement */
#define OPERAND "([*]*[A-Za-z_][A-Za-z0-9_.>-]*(\\[[^;{}=]*\\])*)" /* of two groups */
#define NAME "(^|[^A-Za-z0-9_.])(" WORD ")\\[[^=;]*"               /* of an array, an element of which is assigned to */
#define LEFT "(^|[^A-Za-z0-9_.])" OPERAND "="
static const struct {
    const char *pattern;
    int group;
    const char *shown; /* NULL: the operator, as it stands there */
} updates[] = {
    {NAME OP "([^;]*[^A-Za-z0-9_.])?\\2\\[", 0, NULL}, /* which of its elements does the race mean? */
    {NAME "=([^;]*[^A-Za-z0-9_.])?\\2\\[[^;]*[^A-Za-z0-9_.]\\2\\[", 0, NULL},
    {"[])]" OP, 1, NULL},
    {"[])]" STEP, 1, NULL},
    {STEP "[A-Za-z0-9_.>(*-]*\\[", 1, NULL},
    {"([*.>])" WORD OP, 2, NULL},
    {"([.>])" WORD STEP, 2, NULL},
    {LEFT "\\2([-+*/%&|^])", 4, "x = x %c y"},
    {LEFT "[^;]*([+*&|^])\\2;", 4, "x = y %c x"},
    {LEFT "[^;]*(max|min)[^;]*[(,]\\2[,)]", 4, "="},
    {LEFT "([^;]*[^A-Za-z0-9_.;])?\\2[^A-Za-z0-9_.[]", 1, "="},
    {"([(<>])" OPERAND "([<>][^;]*)?[)]\\2=", 1, "="}, /* if (m[i] < v) m[i] = v; */
    {START WORD OP, 2, NULL},
    {START WORD STEP ";", 2, NULL},
    {START STEP WORD ";", 2, NULL},
};

static const char *atomic_for(const char *operation) {
    static const char *const atomics[][2] = {
        {"+", "atomicAdd"}, {"-", "atomicSub (for floating point atomicAdd of the negative value)"},
        {"&", "atomicAnd"}, {"max", "atomicMax (for floating point a loop around atomicCAS)"},
        {"|", "atomicOr"},  {"min", "atomicMin (for floating point a loop around atomicCAS)"},
        {"^", "atomicXor"}, {"(", "atomicMax or atomicMin (for floating point a loop around atomicCAS)"}};
    for (size_t i = 0; i < sizeof atomics / sizeof *atomics; i++)
        if (strncmp(operation, atomics[i][0], strlen(atomics[i][0])) == 0) return atomics[i][1];
    return "a loop around atomicCAS";
}

struct question {
    const char *where;
    char *text;
    size_t room;
    enum update answer;
};

static bool matches(const char *pattern, const char *line, regmatch_t groups[5]) {
    regex_t compiled;
    if (regcomp(&compiled, pattern, REG_EXTENDED) != 0) return false;
    bool found = regexec(&compiled, line, 5, groups, 0) == 0;
    regfree(&compiled);
    return found;
}

static void *find_update(void *data) {
    struct question *q = data;
    regmatch_t groups[5];
    char *line = read_line(q->where), shown[20];
    size_t i = 0, count = line != NULL ? sizeof updates / sizeof *updates : 0;
    while (i < count && !matches(updates[i].pattern, line, groups)) i++;
    if (i == count) {
        if (line != NULL && matches("(\\]|[*]" WORD ")=[^=]", line, groups)) q->answer = NO_UPDATE;
    } else if (updates[i].group > 0) {
        regmatch_t at = groups[updates[i].group];
        const char *operation = line + at.rm_so;
        if (updates[i].shown == NULL)
            snprintf(shown, sizeof shown, "%.*s%s", (int)(at.rm_eo - at.rm_so), operation,
                     operation[0] == operation[1] && strchr("+-", *operation) ? "" : "=");
        else
            snprintf(shown, sizeof shown, updates[i].shown, *operation);
        snprintf(q->text, q->room,
                 "`%s` reads and writes: use %s, or the update of one thread is lost; if only one thread is meant to "
                 "update this element, look at the index",
                 shown, atomic_for(operation));
        q->answer = UPDATE;
    }
    free(line);
    return NULL;
}

enum update source_update(const char *where, char *text, size_t room) {
    struct question question = {where, text, room, UPDATE_UNKNOWN};
    pthread_t thread;
    if (pthread_create(&thread, NULL, find_update, &question) == 0) pthread_join(thread, NULL);
    return question.answer;
}
