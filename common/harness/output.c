#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool output_open(struct output *output, const char *path) {
    *output = (struct output){.file = stdout};
    if (strcmp(path, "-") == 0) return true;
    struct stat file;
    bool there = lstat(path, &file) == 0, regular = stat(path, &file) == 0 && S_ISREG(file.st_mode);
    output->path = there && regular ? realpath(path, NULL) : strdup(path);
    if (output->path == NULL) return false;
    if (regular && access(output->path, W_OK) != 0) return false;
    int descriptor = -1;
    if (regular || !there) {
        if (asprintf(&output->part, "%s.part-%d", output->path, (int)getpid()) < 0) abort();
        descriptor = open(output->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (descriptor < 0) { /* or a file in a folder that cannot be written to */
        free(output->part);
        output->part = NULL;
        descriptor = open(output->path, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC, 0666);
    }
    output->file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    return output->file != NULL;
}

bool output_close(struct output *output) {
    bool written = ferror(output->file) == 0 && fflush(output->file) == 0;
    int error = errno;
    if (output->path != NULL && fclose(output->file) != 0 && written) written = false, error = errno;
    if (output->part != NULL && written && rename(output->part, output->path) != 0) written = false, error = errno;
    if (output->part != NULL && !written) unlink(output->part);
    free(output->part), free(output->path);
    errno = error;
    return written;
}
