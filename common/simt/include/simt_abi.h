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
/* PTX's scopes: whose threads an operation on memory orders, or is atomic with. SIMT_NO_SCOPE: none, or the whole device. */
enum simt_scope { SIMT_NO_SCOPE, SIMT_CTA, SIMT_CLUSTER, SIMT_DEVICE };
enum simt_ordering { SIMT_FENCE, SIMT_RELEASE, SIMT_ACQUIRE };
void simt_fence(enum simt_scope scope, enum simt_ordering of); /* a fence, or the one in an operation that orders */
void simt_set_scope(
    enum simt_scope scope); /* of what the thread does with memory from now on, where it is atomic or volatile */
void simt_give_way(void);   /* let others run for a while: by a thread that may be waiting for one of them */
long long simt_clock(void); /* nanoseconds of this CPU thread */
void simt_trap(void);
int simt_on_host(void);              /* and not in a kernel */
unsigned simt_multiprocessors(void); /* of each device */
int simt_is_shared(const void *pointer);
size_t simt_shared_address(const void *pointer); /* within the block's shared memory, as PTX counts */
void *simt_shared_pointer(size_t address);
/* Of XORWOW's five words, after n steps or n * 2^67, the words 2 part and 2 part + 1: curand_kernel.h. No pointer crosses. */
uint64_t simt_xorwow_skip(unsigned v0, unsigned v1, unsigned v2, unsigned v3, unsigned v4, unsigned long long n, int sequences,
                          int part);

/* extern __shared__, declared at a multiple of `alignment`, and the array of one __shared__ declaration, which has `extents`
 * of its own: of four dimensions at most, and a 0 after them. */
void *simt_dynamic_shared(size_t alignment);
void *simt_static_shared(const size_t *extents, size_t bytes, size_t alignment, const char *name, const char *file, int line);

void simt_note_stream(const void *stream); /* work is enqueued there */
void simt_default_stream_per_thread(void); /* from now on NULL is cudaStreamPerThread */
int simt_launch_error(void);               /* a cudaError_t: of this host thread's last launch; the caller returns it */
void simt_launch_kernel(const void *kernel, const char *name, struct uint3 grid, struct uint3 block, struct uint3 cluster,
                        size_t dynamic_shared_bytes, int cooperative, const void *stream, void (*run)(void *arguments),
                        void *arguments, size_t arguments_bytes);

/* At the head of a kernel: the launch is refused where a block has more; so many blocks share a multiprocessor, or 0: not said. */
void simt_launch_bounds(unsigned threads, unsigned blocks, unsigned cluster);
void simt_grid_constant(const void *parameter, size_t bytes); /* there, too: it is one, which the TMA may read */
void simt_cluster_dims(unsigned x, unsigned y, unsigned z); /* also there: the launch begins again with clusters of this size */
void simt_ignored_error(int error, const char *call, const char *file,
                        int line); /* reported, unless the program reads the error */

int simt_current_device(void);
int simt_device_attribute(int attribute, int device); /* below 0: it has none of this number */
void simt_name_variable(const char *name);            /* of the pointer that this host thread's next allocation is stored to */

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
/* 8 bits: e5m2 or e4m3, to nearest even. What is too large becomes the largest number where it saturates; else infinity, in e4m3 NaN. */
uint8_t simt_fp8_from_double(double x, int is_e5m2, int saturates) __attribute__((const));
float simt_fp8_to_float(uint8_t bits, int is_e5m2) __attribute__((const));
/* One operation, rounded as told; its operands are exact as long doubles. */
enum simt_operation { SIMT_SUM, SIMT_DIFFERENCE, SIMT_PRODUCT, SIMT_QUOTIENT, SIMT_FUSED, SIMT_ROOT, SIMT_CONVERT };
float simt_rounded_float(enum simt_operation operation, enum simt_rounding rounding, long double a, long double b,
                         long double c);
double simt_rounded_double(enum simt_operation operation, enum simt_rounding rounding, long double a, long double b,
                           long double c);

/* ---- warp collectives: by number, since no pointer to a function crosses from a kernel ---------------------------------------
 * Lanes hand over values and get one back; or they only meet. collectives/collectives.h tells what each of them is. */
/* clang-format off */
enum simt_exchanged {
    simt_shfl, simt_shfl_up, simt_shfl_down, simt_shfl_xor, simt_ballot, simt_any, simt_all, simt_elect, simt_match_any,
    simt_match_all, simt_reduce_add, simt_reduce_min, simt_reduce_max, simt_reduce_min_signed, simt_reduce_max_signed,
    simt_reduce_and, simt_reduce_or, simt_reduce_xor, SIMT_EXCHANGED
};
/* clang-format on */
/* `lane`: of a shuffle, whose value to read. */
uint64_t simt_exchange(enum simt_exchanged how, unsigned mask, uint64_t value, int lane, const char *file, int line);
enum simt_meeting { simt_syncwarp, simt_wmma_load, simt_wmma_store, SIMT_MEETINGS };
void simt_meet(enum simt_meeting why, unsigned mask, const char *file, int line);

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
enum simt_mma_type { simt_mma_half, simt_mma_bfloat16, simt_mma_tf32, SIMT_MMA_TYPES };
struct simt_floats simt_mma(enum simt_mma_type type, float c0, float c1, float c2, float c3, uint32_t a0, uint32_t a1,
                            uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1, const char *file, int line);
/* The same of 8-bit integers: A (rows, depth) of rows / 8 depth / 16 registers, B (depth, 8), C, one after another. */
struct simt_words {
    uint32_t r[10];
};
struct simt_registers simt_mma_integers(int rows, int depth, int is_A_signed, int is_B_signed, int saturates,
                                        struct simt_words operands, const char *file, int line);
void simt_wmma_check(const void *matrix, size_t row_bytes); /* the alignment that it needs */

/* ---- Hopper: barriers with transaction counts, tensor maps, products of a warpgroup -----------------------------------------
 * Addresses of shared memory are as PTX counts them. collectives/ says in each file what its instructions promise. */

/* mbarriers by their PTX instructions. arrive(): `count` arrivals, 0 too, and `bytes` that copies will bring in this phase. */
void simt_transaction_init(size_t barrier, unsigned count);
void simt_transaction_arrive(size_t barrier, unsigned count, unsigned bytes, const char *what, const char *file, int line);
void simt_transaction_wait(size_t barrier, unsigned parity, const char *file, int line);
int simt_transaction_test(size_t barrier, unsigned parity, const char *file, int line); /* does not wait */
unsigned simt_transaction_phase(size_t barrier); /* the number of the one that is not over */
void simt_transaction_bind(size_t barrier, int arrives, const char *file,
                           int line); /* cp.async.mbarrier.arrive: arrives: .noinc */
void simt_fence_mbarrier_init(void);
void simt_fence_tensor_map(const void *map); /* fence.proxy.tensormap::generic.acquire */
void simt_fence_proxy(void);

/* ld.acquire and red.release.add of global memory, by which blocks order their accesses. */
uint32_t simt_load_acquire(const void *word, enum simt_scope scope, const char *file, int line);
void simt_reduce_release(void *word, uint32_t value, enum simt_scope scope);

void simt_named_barrier(int number, int threads, int waits, const char *file, int line);
/* The threads of the running one's tile of 64 to 512 meet; what they brought in this round, which is returned, is there until the
 * tile has met again. */
unsigned simt_tile_meet(unsigned size, uint64_t value, const char *file, int line);
uint64_t simt_tile_value(unsigned size, unsigned round, unsigned rank);
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

/* C (64, N) = A (64, 16) B (16, N), or with `add` C += A B, of 8-bit numbers A (64, 32) and B (32, N); A of registers, or by its
 * descriptor. `count` of the thread's accumulators lie in order from C on. `A_array`: where the registers of A lie, if in order in an array of the kernel, or NULL. */
enum simt_wgmma_types { SIMT_F16, SIMT_BF16, SIMT_E4M3_E4M3, SIMT_E4M3_E5M2, SIMT_E5M2_E4M3, SIMT_E5M2_E5M2 }; /* of A, of B */
void simt_wgmma(enum simt_wgmma_types types, int _N, float *_C, int count, uint64_t _A, struct simt_registers A_registers,
                const uint32_t *A_array, int from_registers, uint64_t _B, int add, int scale_A, int scale_B, int transpose_A,
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
/* Of two floats or four in global memory; returns what they were. */
struct simt_floats simt_atomic_add_floats(float *address, int count, float a, float b, float c, float d);

/* cp.async: copy 4, 8 or 16 bytes to shared memory, the last zero_bytes of them zeros instead; close a group; wait until
 * at most `groups` of this thread's groups are under way. */
void simt_async_copy(void *to_shared, const void *from_global, size_t bytes, size_t zero_bytes);
void simt_async_commit(void);
void simt_async_wait(unsigned groups, const char *file, int line);

/* mbarriers: 8 bytes of shared memory. `what`: what the kernel calls, for messages. arrive() returns the number of the phase
 * at which it arrived, whose end wait() waits for and test() asks about; `drop`: one arrival less is expected from the next
 * phase on. bind(): what this thread has copied so far, committed or not, arrives with the phase. */
void simt_mbarrier_init(void *barrier, unsigned expected);
unsigned simt_mbarrier_arrive(void *barrier, unsigned count, int drop, const char *what, const char *file, int line);
void simt_mbarrier_wait(void *barrier, unsigned phase, const char *file, int line);
int simt_mbarrier_test(void *barrier, unsigned phase);
unsigned simt_mbarrier_phase(void *barrier, unsigned parity); /* the one that is not over, or the one before */
void simt_async_bind(void *barrier);

__END_DECLS

#ifdef __cplusplus
namespace simt {
struct in_scope { /* what the thread does until the end of the C++ scope has this one of PTX */
    explicit in_scope(enum simt_scope scope) { ::simt_set_scope(scope); }
    ~in_scope() { ::simt_set_scope(SIMT_NO_SCOPE); }
};
} // namespace simt
#endif
