/* fingerprint SOURCE.cu OUTPUT.c [FOLDER]...: write a C file that holds a fingerprint of a kernel's source, so that a
 * measurement can be told from one of another kernel. The fingerprint covers the tokens of the file and of the device
 * headers (.cuh) that it includes, looked for beside it and in the folders; comments and white space do not count. */
#include "fnv.h"
#include "status.h"

#include <ctype.h>
#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PATH = 1000 };

static uint64_t hash = FNV_START;
static char **seen;
static int seen_count;
static char *const *folders;
static int folder_count;

static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) err(EXIT_USAGE, "%s", path);
    char *text = NULL;
    size_t room = 0;
    ssize_t length = getdelim(&text, &room, '\0', file);
    if (length < 0 && (text == NULL || ferror(file))) err(EXIT_USAGE, "%s", path);
    if (length < 0) *text = '\0'; /* an empty file */
    fclose(file);
    return text;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }
static void add(char c) { hash = fnv_add(hash, &c, 1); }
static void add_file(const char *path);

/* The header that a line includes, when it is one of the project's device headers. */
static void follow_include(const char *from, const char *line) {
    char name[200], path[MAX_PATH];
    if (sscanf(line, "#include \"%199[^\"]\"", name) != 1 || strstr(name, ".cuh") == NULL) return;
    const char *slash = strrchr(from, '/');
    for (int i = -1; i < folder_count; i++) {
        if (i < 0)
            snprintf(path, sizeof path, "%.*s%s", slash != NULL ? (int)(slash - from + 1) : 0, from, name);
        else
            snprintf(path, sizeof path, "%s/%s", folders[i], name);
        if (access(path, R_OK) != 0) continue;
        add_file(path);
        return;
    }
}

/* One token boundary is one space where two words, or two signs, would otherwise run together. */
static void add_tokens(const char *path, const char *text) {
    char last = '\n';
    bool space = false, directive = false;
    for (const char *at = text; *at != '\0'; at++) {
        if (at[0] == '/' && at[1] == '/') {
            at += strcspn(at, "\n") - 1;
            space = true;
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            if (end == NULL) return;
            at = end + 1;
            space = true;
        } else if (*at == '\n' && directive) {
            directive = false;
            add(last = '\n');
        } else if (isspace((unsigned char)*at) || (at[0] == '\\' && at[1] == '\n')) {
            space = true;
        } else {
            if (*at == '#') {
                directive = true;
                follow_include(path, at);
            }
            if (space && last != '\n' && is_word(*at) == is_word(last)) add(' ');
            space = false;
            add(last = *at);
            if (*at != '"') continue;
            for (at++; *at != '\0' && *at != '"'; at++) { /* a string, as it stands */
                add(*at);
                if (*at == '\\' && at[1] != '\0') add(*++at);
            }
            if (*at == '\0') return;
            add(last = '"');
        }
    }
}

static void add_file(const char *path) {
    for (int i = 0; i < seen_count; i++)
        if (strcmp(seen[i], path) == 0) return;
    seen = realloc(seen, ((size_t)seen_count + 1) * sizeof *seen);
    if (seen == NULL || (seen[seen_count++] = strdup(path)) == NULL) err(EXIT_USAGE, "%s", path);
    char *text = read_file(path);
    add_tokens(path, text);
    free(text);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fputs("usage: fingerprint SOURCE.cu OUTPUT.c [FOLDER]...\n", stderr);
        return EXIT_USAGE;
    }
    folders = argv + 3;
    folder_count = argc - 3;
    add_file(argv[1]);
    FILE *output = fopen(argv[2], "w");
    if (output == NULL) err(EXIT_USAGE, "%s", argv[2]);
    fprintf(output, "extern const char kernel_fingerprint[];\nconst char kernel_fingerprint[] = \"%016" PRIx64 "\";\n", hash);
    if (fclose(output) != 0) err(EXIT_USAGE, "%s", argv[2]);
    return 0;
}
