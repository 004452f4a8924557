/* The program of one step; the build names the step, and the one that makes O and L for a backward pass. */
#include "harness.h"

extern const struct step STEP, FORWARD;

int main(int argc, char **argv) { return harness_main(&STEP, &FORWARD, argc, argv); }
