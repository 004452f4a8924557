/* The program of one step, which the build names. */
#include "options.h"

extern const struct step STEP;
extern const char kernel_fingerprint[];

int main(int argc, char **argv) { return harness_main(&STEP, PROGRAM, kernel_fingerprint, argc, argv); }
