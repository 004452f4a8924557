/* Texts: read from files, and their lines. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { MOST_BYTES = 1 << 20 }; /* of a file */

/* A regular file of at most 1 MB without zero bytes, "-": standard input. NULL, and the reason in errno, where it is not one. */
char *read_text(const char *path);

/* The same of a file that somebody hands in, which must not be a link: it could name what only the grader may read. */
char *read_submission(const char *path);
const char *why_unreadable(int error);

const char *line_end(const char *at);     /* where the next line begins */
const char *line_start(const char *line); /* past its blanks */
int lines_between(const char *begin, const char *end);
size_t word_length(const char *at);                                 /* of letters, digits and _ */
bool is_word_of(const char *name, size_t length, const char *text); /* text: NULL: it has none */

/* The next line, at or after `at`, whose text begins with `begin`; NULL when there is none. */
const char *find_line(const char *at, const char *begin);
