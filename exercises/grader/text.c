#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *read_regular(const char *path, int flags) {
    struct stat status;
    int descriptor = strcmp(path, "-") == 0
                         ? dup(STDIN_FILENO)
                         : open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags); /* it does not wait for a pipe */
    if (descriptor < 0) return NULL;
    bool regular = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    FILE *file = regular ? fdopen(descriptor, "rb") : NULL;
    if (file == NULL) {
        close(descriptor);
        errno = S_ISDIR(status.st_mode) ? EISDIR : ENODEV;
        return NULL;
    }
    char *text = calloc(1, MOST_BYTES + 2);
    size_t length = text == NULL ? 0 : fread(text, 1, MOST_BYTES + 1, file);
    bool failed = ferror(file) != 0;
    fclose(file);
    if (text == NULL || failed || length > MOST_BYTES || memchr(text, '\0', length) != NULL) {
        if (!failed) errno = length > MOST_BYTES ? EFBIG : EILSEQ;
        free(text);
        return NULL;
    }
    return text;
}

char *read_text(const char *path) { return read_regular(path, 0); }
char *read_submission(const char *path) { return read_regular(path, O_NOFOLLOW); }

const char *why_unreadable(int error) {
    return error == EILSEQ   ? "it holds zero bytes"
           : error == EFBIG  ? "it is too large: a kernel file has at most 1 MB"
           : error == ELOOP  ? "it is a symbolic link: give the file itself"
           : error == ENODEV ? "it is no regular file"
           : error == EISDIR ? "it is a folder"
           : error == ENOENT ? "No such file or directory; ./run.sh start makes it"
                             : strerror(error);
}

const char *line_end(const char *at) {
    at += strcspn(at, "\n");
    return *at == '\n' ? at + 1 : at;
}
const char *line_start(const char *line) { return line + strspn(line, " \t"); }

const char *find_line(const char *at, const char *begin) {
    for (; *at != '\0'; at = line_end(at))
        if (strncmp(line_start(at), begin, strlen(begin)) == 0) return at;
    return NULL;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }
size_t word_length(const char *at) {
    size_t length = 0;
    while (is_word(at[length])) length++;
    return length;
}

bool is_word_of(const char *name, size_t length, const char *text) {
    for (const char *at = text; text != NULL && (at = memmem(at, strlen(at), name, length)) != NULL; at++)
        if ((at == text || !is_word(at[-1])) && !is_word(at[length])) return true;
    return false;
}

int lines_between(const char *begin, const char *end) {
    int lines = 0;
    for (; begin < end; begin++) lines += *begin == '\n';
    return lines;
}
