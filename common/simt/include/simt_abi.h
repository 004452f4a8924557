/* What compiled kernels call of the simulated device's runtime: C on both sides. */
#pragma once

#include <stddef.h>
#include <stdint.h>

__BEGIN_DECLS

struct uint3 {
    unsigned x, y, z;
};

unsigned simt_lane(void) __attribute__((const));
unsigned simt_active_mask(const char *file, int line); /* the lanes that come to this line together */
void simt_fence(void);                                 /* __threadfence() and __threadfence_block() */
void simt_give_way(void);   /* let others run for a while: by a thread that may be waiting for one of them */
long long simt_clock(void); /* nanoseconds of this CPU thread */
void simt_trap(void);
int simt_is_shared(const void *pointer);
size_t simt_shared_address(const void *pointer); /* within the block's shared memory, as PTX counts */
void *simt_shared_pointer(size_t address);

/* extern __shared__, and the array of one __shared__ declaration, which has `extents` of its own: of four dimensions at most,
 * and a 0 after them. */
void *simt_dynamic_shared(void);
void *simt_static_shared(const size_t *extents, size_t bytes, size_t alignment, const char *name, const char *file, int line);

void simt_note_stream(const void *stream); /* work is enqueued there */
int simt_launch_error(void);               /* a cudaError_t: of this host thread's last launch; the caller returns it */
void simt_launch_kernel(const void *kernel, const char *name, struct uint3 grid, struct uint3 block, struct uint3 cluster,
                        size_t dynamic_shared_bytes, int cooperative, void (*run)(void *arguments), void *arguments,
                        size_t arguments_bytes);

void simt_launch_bounds(unsigned threads); /* at the head of a kernel: the launch is refused where a block has more */
void simt_cluster_dims(unsigned x, unsigned y, unsigned z); /* also there: the launch begins again with clusters of this size */
void simt_ignored_error(int error, const char *call, const char *file,
                        int line); /* reported, unless the program reads the error */

/* Returns the number of threads whose predicate was not 0. */
int simt_block_barrier(const char *name, int predicate, const char *file, int line);
/* All blocks of a cooperative launch wait for one another. */
void simt_grid_barrier(const char *name, const char *file, int line);
int simt_is_cooperative(void);

/* ---- float16 and bfloat16 ---- */
enum simt_rounding { SIMT_NEAREST, SIMT_TOWARD_ZERO, SIMT_UP, SIMT_DOWN };
float simt_half_to_float(uint16_t bits) __attribute__((const));
float simt_bfloat16_to_float(uint16_t bits) __attribute__((const));
uint16_t simt_half_from_float(float x) __attribute__((const)); /* to nearest even */
uint16_t simt_bfloat16_from_float(float x) __attribute__((const));
uint16_t simt_half_from_double(double x, enum simt_rounding rounding) __attribute__((const));
uint16_t simt_bfloat16_from_double(double x, enum simt_rounding rounding) __attribute__((const));

/* ---- warp collectives --------------------------------------------------------------------------------------------------
 * A shuffle, a vote or an mma.sync is a name and a function that combines. Every lane of `mask` calls simt_meet() with its
 * operand and with room for its result; when all of them that have not returned from the kernel are at the same source line,
 * combine() is called once. NULL: the lanes only meet. */
struct simt_lanes {
    unsigned mask, present; /* mask: the lanes that the call names; present: the lanes among them that reached the call */
    const void *operand[32];
    void *result[32]; /* of lanes that are not present: NULL, as the operand is */
    void *first_lane; /* the runtime's */
};
/* Flags: all 32 lanes must take part; accesses to memory of lanes that have met here are not ordered by that. */
enum { SIMT_ALL_LANES = 1, SIMT_ORDERS_NOTHING = 2 };
struct simt_collective {
    const char *name; /* "__shfl_sync()", for messages */
    void (*combine)(const struct simt_lanes *lanes);
    int flags;
};
/* Both pointers may lead into the calling function's variables. A function of a kernel file that makes such variables needs
 * __attribute__((no_sanitize("thread"))), or the meter counts them as the thread's local memory. */
void simt_meet(const struct simt_collective *collective, unsigned mask, const void *operand, void *result, const char *file,
               int line);
/* simt_meet() with a struct simt_value as operand and 8 bytes as result, which is returned. */
struct simt_value {
    uint64_t value;
    int lane; /* of a shuffle: whose value to read */
};
uint64_t simt_exchange(const struct simt_collective *collective, unsigned mask, uint64_t value, int lane, const char *file,
                       int line);
/* By combine(), which must return after it: the launch fails with "FILE:LINE: NAME: lane N ..." and this text. */
void simt_refuse_lane(const struct simt_lanes *lanes, unsigned lane, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

extern const struct simt_collective simt_syncwarp, simt_shfl, simt_shfl_up, simt_shfl_down, simt_shfl_xor, simt_ballot,
    simt_any, simt_all, simt_elect, simt_match_any, simt_match_all, simt_reduce_add, simt_reduce_min, simt_reduce_max,
    simt_reduce_min_signed, simt_reduce_max_signed, simt_reduce_and, simt_reduce_or, simt_reduce_xor;

/* ---- tensor cores: all 32 lanes take part --------------------------------------------------------------------------------
 * Fragments travel by value, so that a kernel's variables stay registers. 8 x 8 matrices have elements of 16 bits, and rows of
 * 16 bytes that begin at multiples of 16 bytes in shared memory. Lane 8 i + r gives the address of row r of matrix i; register i
 * of lane l holds elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 of matrix i, or with `transposed` of its column l / 4. */
struct simt_registers {
    uint32_t r[4];
};
struct simt_floats {
    float x[4];
};
struct simt_registers simt_ldmatrix(size_t address, int matrices, int transposed, const char *file, int line);
void simt_stmatrix(size_t address, int matrices, int transposed, uint32_t r0, uint32_t r1, uint32_t r2, uint32_t r3,
                   const char *file, int line);
/* The matrices that these registers hold, transposed. */
struct simt_registers simt_movmatrix(uint32_t r0, uint32_t r1, uint32_t r2, uint32_t r3, const char *file, int line);
/* mma.sync: returns C + A B, C 16 x 8 in fp32; A 16 x 16 and B 16 x 8 of 16 bits, or A 16 x 8 and B 8 x 8 in TF32. */
struct simt_floats simt_mma(const struct simt_collective *mma, float c0, float c1, float c2, float c3, uint32_t a0, uint32_t a1,
                            uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1, const char *file, int line);
extern const struct simt_collective simt_mma_half, simt_mma_bfloat16, simt_mma_tf32, simt_wmma_load, simt_wmma_store;
void simt_wmma_check(const void *matrix, size_t row_bytes); /* the alignment that it needs */

/* ---- waiting until a condition holds: cp.async groups, mbarriers ---- */
struct simt_condition {
    const char *name;                                      /* "__pipeline_wait_prior()", for messages */
    int (*holds)(void *data);                              /* also called while the thread waits, from outside of it */
    void (*describe)(void *data, char *text, size_t room); /* what is missing, in words; may be NULL */
};
/* The caller has set the thread's last_pc. */
void simt_wait_until(const struct simt_condition *condition, void *data, const char *file, int line);

/* ---- Hopper: barriers with transaction counts, tensor maps, products of a warpgroup -----------------------------------------
 * Addresses of shared memory are as PTX counts them. collectives/ says in each file what its instructions promise. */

/* mbarriers by their PTX instructions. arrive(): `count` arrivals, 0 too, and `bytes` that copies will bring in this phase. */
void simt_transaction_init(size_t barrier, unsigned count);
void simt_transaction_arrive(size_t barrier, unsigned count, unsigned bytes, const char *what, const char *file, int line);
void simt_transaction_wait(size_t barrier, unsigned parity, const char *file, int line);
void simt_fence_mbarrier_init(void);
void simt_fence_proxy(void);

/* ld.acquire and red.release.add of global memory, by which blocks order their accesses. */
uint32_t simt_load_acquire(const void *word, const char *file, int line);
void simt_reduce_release(void *word, uint32_t value);

void simt_named_barrier(int number, int threads, int waits, const char *file, int line);
void simt_set_registers(const char *what, int registers);

/* mask: the blocks of the cluster that receive it; TO_OWN_BLOCK: without .multicast::cluster. */
enum { SIMT_TO_OWN_BLOCK = -1 };
void simt_tensor_load(size_t to, const void *map, int rank, int at0, int at1, int at2, int at3, int at4, size_t barrier,
                      int mask);
void simt_tensor_store(const void *map, int rank, int at0, int at1, int at2, int at3, int at4, size_t from);
/* The same of `bytes` bytes that lie one behind the other; `adds`: floats are added to those at `to`. */
void simt_bulk_load(size_t to, const void *from, unsigned bytes, size_t barrier);
void simt_bulk_store(void *to, size_t from, unsigned bytes, int adds);
void simt_bulk_commit(void);
void simt_bulk_wait(unsigned groups, int read_only); /* read_only: .read */

/* C (64, N) = A (64, 16) B (16, N), or with `add` C += A B; A of registers, or by its descriptor. `count` of the thread's
 * accumulators lie in order from C on. `A_array`: where the registers of A lie, if in order in an array of the kernel, or NULL. */
void simt_wgmma(int is_bfloat16, int N, float *C, int count, uint64_t A, struct simt_registers A_registers,
                const uint32_t *A_array, int from_registers, uint64_t B, int add, int scale_A, int scale_B, int transpose_A,
                int transpose_B, const char *file, int line);
void simt_wgmma_fence(void);
void simt_wgmma_commit(const char *file, int line);
void simt_wgmma_wait(unsigned groups, const char *file, int line);

/* Clusters. An address that simt_mapa() returns names shared memory of the block of that rank. */
unsigned simt_cluster_rank(void);
unsigned simt_cluster_size(void);
size_t simt_mapa(size_t address, unsigned rank);
void *simt_map_shared(const void *pointer, unsigned rank);
void simt_cluster_arrive(const char *file, int line);
void simt_cluster_wait(const char *file, int line);
void simt_remote_arrive(size_t barrier, unsigned count, unsigned bytes, const char *what, const char *file, int line);

/* clang-format off */
enum simt_atomic_operation {
    SIMT_ADD, SIMT_MIN, SIMT_MAX, SIMT_AND, SIMT_OR, SIMT_XOR, SIMT_EXCHANGE, SIMT_COMPARE_AND_SWAP, SIMT_INCREMENT, SIMT_DECREMENT
};
/* clang-format on */
enum simt_atomic_type { SIMT_INT, SIMT_UNSIGNED, SIMT_LONG, SIMT_SIGNED_LONG, SIMT_FLOAT, SIMT_DOUBLE };
/* Returns the bits of the value before. */
uint64_t simt_atomic(enum simt_atomic_operation operation, enum simt_atomic_type type, void *address, uint64_t operand,
                     uint64_t compare);

/* __ldg() reads through a cache that does not see what the same kernel stores (CUDA C++ Programming Guide, "Read-Only Data Cache
 * Load Function"). */
void simt_check_constant(const void *pointer, size_t bytes);

/* Add four floats to those at a multiple of 16 bytes: one request, four additions. */
void simt_reduce_add4(float *address, const float operand[4]);

/* cp.async: copy 4, 8 or 16 bytes to shared memory, the last zero_bytes of them zeros instead; close a group; wait until
 * at most `groups` of this thread's groups are under way. */
void simt_async_copy(void *to_shared, const void *from_global, size_t bytes, size_t zero_bytes);
void simt_async_commit(void);
void simt_async_wait(unsigned groups, const char *file, int line);

/* mbarriers: 8 bytes of shared memory. `what`: what the kernel calls, for messages. arrive() returns the number of the phase
 * at which it arrived, whose end wait() waits for and test() asks about; `drop`: one arrival less is expected from the next
 * phase on. bind(): what this thread has copied and not committed arrives with the phase. */
void simt_mbarrier_init(void *barrier, unsigned expected);
unsigned simt_mbarrier_arrive(void *barrier, unsigned count, int drop, const char *what, const char *file, int line);
void simt_mbarrier_wait(void *barrier, unsigned phase, const char *file, int line);
int simt_mbarrier_test(void *barrier, unsigned phase);
unsigned simt_mbarrier_phase(void *barrier, unsigned parity); /* the one that is not over, or the one before */
void simt_async_bind(void *barrier);

__END_DECLS
