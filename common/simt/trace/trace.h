/* The trace of chosen blocks. Knows the meter's requests. */
#ifndef SIMT_TRACE_H
#define SIMT_TRACE_H

#include <stdbool.h>
#include <stdio.h>

/* simt_trace_start() and simt_trace_stop() of cuda_runtime.h. */
bool trace_start(FILE *file, const char *blocks);
void trace_stop(void);

#endif
