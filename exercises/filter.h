/* The system calls that may be made behind a wall. */
#ifndef FILTER_H
#define FILTER_H

#include <linux/filter.h>
#include <stdbool.h>

/* A filter for the calling process. The compiler may make all calls but those of a list; a program only those of another,
 * and start itself only by `program`, a descriptor that closes then; -1: by execve(), where nothing else can be started. */
struct sock_fprog make_filter(bool compiles, int program);

#endif
