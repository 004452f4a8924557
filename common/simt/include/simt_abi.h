/* What compiled kernels call of the simulated device's runtime: C on both sides. */
#ifndef SIMT_ABI_H
#define SIMT_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct uint3 {
    unsigned x, y, z;
};

/* Built-in variables: constant within a thread, so the compiler may keep them in registers. */
struct uint3 simt_thread_index(void) __attribute__((const));
struct uint3 simt_block_index(void) __attribute__((const));
struct uint3 simt_block_size(void) __attribute__((const));
struct uint3 simt_grid_size(void) __attribute__((const));
unsigned simt_lane(void) __attribute__((const));
unsigned simt_active_mask(void);
void simt_fence(void); /* __threadfence() */

/* extern __shared__, and the array of one __shared__ declaration (columns: of a two-dimensional one, else 0). */
void *simt_dynamic_shared(void);
void *simt_static_shared(const void *declaration, size_t bytes, const char *name, size_t element_bytes, size_t columns,
                         const char *file, int line);

void simt_launch_kernel(const void *kernel, const char *name, const unsigned grid[3], const unsigned block[3],
                        size_t dynamic_shared_bytes, void (*run)(void *arguments), void *arguments,
                        size_t arguments_bytes);

/* Returns the number of threads whose predicate was not 0. */
int simt_block_barrier(const char *name, int predicate, const char *file, int line);

enum simt_warp_operation { SIMT_SYNCWARP, SIMT_SHUFFLE, SIMT_BALLOT };
/* A shuffle returns the value of source_lane, a ballot the lanes whose value was not 0. */
uint64_t simt_warp_collective(enum simt_warp_operation operation, const char *name, unsigned mask, uint64_t value,
                              int source_lane, const char *file, int line);

enum simt_atomic_operation {
    SIMT_ADD,
    SIMT_MIN,
    SIMT_MAX,
    SIMT_AND,
    SIMT_OR,
    SIMT_XOR,
    SIMT_EXCHANGE,
    SIMT_COMPARE_AND_SWAP
};
enum simt_atomic_type { SIMT_INT, SIMT_UNSIGNED, SIMT_LONG, SIMT_FLOAT, SIMT_DOUBLE };
/* Returns the bits of the value before. */
uint64_t simt_atomic(enum simt_atomic_operation operation, enum simt_atomic_type type, void *address, uint64_t operand,
                     uint64_t compare);

/* Add four floats to those at a multiple of 16 bytes: one request, four additions. */
void simt_reduce_add4(float *address, const float operand[4]);

/* cp.async: copy 4, 8 or 16 bytes to shared memory, the last zero_bytes of them zeros instead; close a group; wait until
 * at most `groups` of this thread's groups are under way. */
void simt_async_copy(void *to_shared, const void *from_global, size_t bytes, size_t zero_bytes);
void simt_async_commit(void);
void simt_async_wait(unsigned groups);

#ifdef __cplusplus
}
#endif

#endif
