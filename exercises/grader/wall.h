/* The wall around what a submission makes run: the compiler, the linker and the program. docs/teaching.md, "Walls", says what
 * each wall keeps out. */
#pragma once

#include "process.h"

#include <seccomp.h>

/* filter.c: the system calls that the calling process may make behind a wall. The compiler may make all but those of a list; a
 * program only those of another, and start itself only by `program`, a descriptor that closes then; -1: by execve(), where
 * nothing else can be started. */
scmp_filter_ctx make_filter(bool compiles, int program);

enum wall { BUBBLEWRAP, LANDLOCK, NO_WALL };

/* What a program finds behind the wall, beside the system's libraries, and for a compiler its programs and headers. */
struct confinement {
    const char *const *readable; /* files, and folders with all that is in them; ends with NULL */
    const char *writable;        /* a folder; NULL: none */
    bool compiles;               /* it may start programs, and reads the system's headers */
};

/* The best wall that works here, found out once, or the one that EXERCISES_WALL names if it works. */
enum wall wall_in_use(void);

/* Says on standard error what is missing where there is no wall: a warning, or with `needed` a refusal. False: refused. */
bool wall_is_enough(bool needed);

/* run_program() behind the wall that is in use, with an environment of its own. argv[0] is a path. */
struct outcome run_behind_wall(const char *const argv[], struct limits limits, int results,
                               const struct confinement *confinement);
