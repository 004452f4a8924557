/* The trace of chosen blocks. Knows the meter's requests. */
#ifndef SIMT_TRACE_H
#define SIMT_TRACE_H

#include "machine.h"

#include <stdio.h>

/* simt_trace_start() and simt_trace_stop() of cuda_runtime.h. */
bool trace_start(FILE *file, const char *blocks);
void trace_stop(void);

bool trace_start_block(struct worker *worker);                                /* is it watched? */
void trace_event(struct worker *worker, int warp, const struct place *place); /* of a watched block; warp -1: a barrier */
void trace_launch_done(const struct launch *launch);                          /* nothing without a trace */

#endif
