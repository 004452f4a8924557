/* Where submissions are compiled, and what must end with the grader. */
#ifndef FOLDER_H
#define FOLDER_H

#include <sys/types.h>

/* Where programs are built: EXERCISES_FOLDER for somebody who cannot write to the build folder. */
const char *scratch_folder(void);

/* A folder in it of this process alone, as an absolute path. A watcher, a process of its own, removes it with all that is in
 * it when this process ends, by whatever signal. What the watcher could not remove is removed later, by forget_old(). */
const char *own_folder(void);

/* The watcher ends this group of processes, too; 0: none. */
void watch_group(pid_t group);

/* Wait until the watcher is done: for handlers of signals, before they end this process. */
void leave_folder(void);

/* Remove what earlier processes left in scratch_folder() more than ten minutes ago. */
void forget_old(void);

#endif
