/* What a program can ask of the simulated device and not of a card. The functions are weak: NULL in a program that is
 * linked with the CUDA runtime. common/simt/include/cuda_runtime.h says what each does. */
#ifndef SIMULATED_H
#define SIMULATED_H

#include <stdio.h>

#define ON_SIMULATED_DEVICE __attribute__((weak))

extern void simt_name_memory(const void *pointer, const char *name, size_t element_bytes, int read_only) ON_SIMULATED_DEVICE;
extern void simt_shuffle_blocks(unsigned seed) ON_SIMULATED_DEVICE;
extern void simt_run_in_step(void) ON_SIMULATED_DEVICE;
extern void simt_run_part(unsigned parts, unsigned part) ON_SIMULATED_DEVICE;
extern void *simt_reserve(size_t bytes) ON_SIMULATED_DEVICE;
extern unsigned simt_fail_call(unsigned number) ON_SIMULATED_DEVICE;
extern unsigned long simt_calls(void) ON_SIMULATED_DEVICE;
extern unsigned long simt_default_stream_uses(void) ON_SIMULATED_DEVICE;
extern unsigned long simt_waits(void) ON_SIMULATED_DEVICE;
extern void simt_meter_start(unsigned every) ON_SIMULATED_DEVICE;
extern void simt_meter_stop(void) ON_SIMULATED_DEVICE;
extern char *simt_meter_json(void) ON_SIMULATED_DEVICE;
extern void simt_meter_print(FILE *file, int with_source) ON_SIMULATED_DEVICE;

/* Write geometry, accesses and barriers of these blocks ("0,3"; NULL: block 0) of every launch from now on to `file`; the
 * stop ends the JSON text. The start returns false where the list makes no sense. */
extern int simt_trace_start(FILE *file, const char *blocks) ON_SIMULATED_DEVICE;
extern void simt_trace_stop(void) ON_SIMULATED_DEVICE;

#endif
