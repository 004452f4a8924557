/* The program around a step: options, inputs, check, time, report. */
#pragma once

#include "attention.h"

/* The body of main(): returns the exit status. 0 every check passed, 1 a result is wrong, 2 bad usage or an unsupported
 * size, 3 the device failed. `program` is the name that the build gave, which the step must have, too; `kernel` is the
 * fingerprint of its source. */
int harness_main(const struct step *step, const char *program, const char *kernel, int argc, char **argv);
