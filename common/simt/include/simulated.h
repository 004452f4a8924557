/* Functions of the simulated device that CUDA does not have. They are weak: NULL in a program that is linked with the CUDA
 * runtime. Who may be compiled for a card includes this header by its path: the others of the folder stand in for the toolkit's. */
#pragma once

#include <stdio.h>

#define SIMT_WEAK __attribute__((weak))

__BEGIN_DECLS

/* What the simulated device wrote to standard error about the last kernel that failed ("" when none did).
 * The text stays valid until the next failure or cudaDeviceReset(). */
const char *simt_last_report(void) SIMT_WEAK;

/* Write the text of a message; to a terminal, with lines no longer than it is wide. */
void simt_print(FILE *to, const char *text) SIMT_WEAK;

/* Call an allocation by a name in messages (the text must live as long as the allocation), and say how large its
 * elements are and whether kernels may only read it. */
void simt_name_memory(const void *pointer, const char *name, size_t element_bytes, int read_only) SIMT_WEAK;

/* Run the blocks of later launches in another order; 0 is the natural one. */
void simt_shuffle_blocks(unsigned seed) SIMT_WEAK;

/* From now on all threads of a block go on in step, access by access, as the warps of a card about do; races
 * inside of a block and unwritten values are not looked for. For the results and the counts of a kernel in which a race has
 * been found. */
void simt_run_in_step(void) SIMT_WEAK;

/* For problems that are too large to run whole: of `parts` equal parts of the blocks of each later launch
 * only part number `part` runs, from 0. One part is all; of no parts none runs and no memory is cleared, so that a launch is
 * only judged, and pointers may be NULL. */
void simt_run_part(unsigned parts, unsigned part) SIMT_WEAK;

/* Device memory that holds zeros and takes up room only where it is touched, however much is free. NULL when
 * the address space is too small. What kernels leave unwritten in it is not noticed. cudaFree() releases it. */
void *simt_reserve(size_t bytes) SIMT_WEAK;

/* Let launch, cudaMemset, cudaMemcpyAsync or cudaMallocAsync number `number` from now on fail (1: the next one; 0:
 * none). Returns the number of calls that were left before the failure set by the previous call. */
unsigned simt_fail_call(unsigned number) SIMT_WEAK;

/* How many launches, calls of cudaMemset, of cudaMemcpyAsync and of cudaMallocAsync there were. */
unsigned long simt_calls(void) SIMT_WEAK;

/* How often work was enqueued on the default stream, cudaMemset() and cudaMemcpy() included. */
unsigned long simt_default_stream_uses(void) SIMT_WEAK;

/* How often the host waited for the device, by cudaMemcpy() or a function that synchronises. */
unsigned long simt_waits(void) SIMT_WEAK;

/* Count what kernels do to memory, in one block of every `every`, from now on. */
void simt_meter_start(unsigned every) SIMT_WEAK;
void simt_meter_stop(void) SIMT_WEAK;

/* Everything counted since the start, as JSON (the caller frees it), or as a table, with_source: beside the kernels'
 * source lines. */
char *simt_meter_json(void) SIMT_WEAK;
void simt_meter_print(FILE *file, int with_source) SIMT_WEAK;

/* Write geometry, accesses and barriers of these blocks of every launch from now on to `file`, as JSON;
 * common/simt/trace/trace.c says what it holds. `blocks` is a list as in "0,3" (blockIdx.x fastest; NULL: block 0); false when it
 * is none. With no file, only the list is judged. The stop ends the text. */
int simt_trace_start(FILE *file, const char *blocks) SIMT_WEAK;
void simt_trace_stop(void) SIMT_WEAK;

__END_DECLS
