/* How long a pass takes on a card: CUDA events, L2 flushed before each run, median and quartiles of many. */
#pragma once

#include "run.h"

struct timing {
    double median, p25, p75; /* milliseconds; median 0: nothing was timed */
};

/* Time these passes of a step, one after the other, `repeat` times after `warmup` untimed ones. */
cudaError_t time_passes(struct run *run, const struct step *step, struct passes passes, int warmup, int repeat,
                        struct timing *timing);
