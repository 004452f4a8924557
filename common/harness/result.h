/* What one program found out, and the JSON line that says it. */
#pragma once

#include "options.h"
#include "run.h"

struct result {
    struct verdict verdict;
    bool ok;
    double host_seconds;                             /* of the passes asked for, on the host's clock */
    struct timing time, forward_time, backward_time; /* of all that was asked for; of each pass when both were */
};

/* The line for --json, without its end; the caller's to free. NULL when there is no memory. `kernel` is the fingerprint of
 * the step's source. */
char *json_line(const struct step *step, const char *kernel, const struct run *run, const struct options *options,
                const struct result *result);

/* The line for --describe: what the step is and takes, likewise. */
char *describe_step(const struct step *step, const char *kernel);
