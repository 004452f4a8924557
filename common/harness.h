/* The program around a step: options, inputs, check, time, report. */
#ifndef HARNESS_H
#define HARNESS_H

#include "attention.h"

/* The body of main(): returns the exit status. 0 every check passed, 1 a result is wrong, 2 bad usage or an unsupported
 * size, 3 the device failed. For a step without a forward pass, `forward` makes the O and L that its backward pass needs. */
int harness_main(const struct step *step, const struct step *forward, int argc, char **argv);

#endif
