/* A file that a program writes for others. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct output {
    FILE *file;
    char *path, *part; /* part: what becomes `path` when it is whole; NULL: written in its place */
};

/* Open `path`, "-" for standard output. A regular file is replaced when all is written, what a link names in the link's place;
 * anything else (a device, a pipe) is written to. False, and errno, where that cannot be done. */
bool output_open(struct output *output, const char *path);

/* False, and errno, where something could not be written; then a regular file is as it was. */
bool output_close(struct output *output);
