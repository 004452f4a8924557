/* Two kernel files side by side: what ./run.sh try prints. */
#ifndef COMPARE_H
#define COMPARE_H

#include "inputs.h"

struct compared {
    const char *label, *shown; /* in the table's head, and in messages */
    const char *file;          /* whose text is compiled */
    const char *origin;        /* a file in the folder where its own headers are */
};

/* Build both, run both with the meter, print a table. `with_ragged`: what is called right is right at a second, ragged size, too. Returns 0 when yours is right, 1 when it is wrong or does not compile,
 * 2 when it refuses the size, 3 when the device found a fault in it. The pass and the data type are those of your struct step. */
int compare(const struct compared *before, const struct compared *yours, struct problem problem, bool with_ragged);

#endif
