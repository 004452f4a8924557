/* The step that a test program is linked with; the build names it. */
#include "attention.h"

extern const struct step STEP;
extern const struct step *const step_under_test;
const struct step *const step_under_test = &STEP;
extern const bool is_last_rung;
const bool is_last_rung = IS_LAST_RUNG;
