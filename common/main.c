/* The program of one step; the build names the step. */
#include "harness.h"

extern const struct step STEP;

int main(int argc, char **argv) { return harness_main(&STEP, argc, argv); }
