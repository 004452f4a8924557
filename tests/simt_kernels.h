/* Kernels that use one feature of a CUDA device each (test_simt.c says what they must compute), and kernels that commit
 * one error each. The run_...() functions launch and do not wait; pointers are to device memory. */
#ifndef SIMT_KERNELS_H
#define SIMT_KERNELS_H

#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

struct extent {
    unsigned x, y, z;
};

/* ---- indices: what thread number i of the grid saw; blocks x fastest, and threads within a block likewise -------- */
struct seen {
    struct extent thread, block, block_size, grid_size;
    unsigned times; /* this element was written */
};
void run_indices(struct extent grid, struct extent block, struct seen *out);

/* ---- block-wide barriers: one block of `threads` ---- */
void run_reverse(int *data, int threads);
void run_block_sum(const int *in, int *out, int threads);
void run_rotate(int *data, int threads, int rounds);
void run_block_votes(const int *predicates, int *out, int threads); /* out[3 i]: count, or, and */

/* ---- warps ---- */
enum value_type { TYPE_INT, TYPE_UNSIGNED, TYPE_FLOAT, TYPE_DOUBLE, TYPE_LONG_LONG };
enum shuffle { SHUFFLE_INDEX, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR };
/* For each amount below `amounts`: out[amount * threads + i] is what thread i got. Each warp's mask names the lanes
 * that it has. SHUFFLE_INDEX reads lane 5 * lane + amount. */
void run_shuffle(enum shuffle kind, enum value_type type, const void *in, void *out, int threads, int width,
                 int amounts);
void run_broadcast(const int *in, int *out, int threads);  /* lane 0 of each warp to all its lanes */
void run_half_warps(const int *in, int *out, int threads); /* sums over 16 lanes, each half in a branch of its own */
void run_syncwarp(int *data, int threads, int rounds); /* each round: the next lane's value, through shared memory */
void run_votes(const int *predicates, unsigned *out, int threads); /* out[3 i]: any, all, ballot */
void run_votes_of_odd_lanes(const int *predicates, unsigned *out); /* one warp; the same, by odd lanes only */

/* MATCHES values per thread: match_any, match_all of values and of ones, its predicates, then reductions. One block. */
enum {
    MATCH_ANY,
    MATCH_ALL,
    MATCH_ALL_PREDICATE,
    MATCH_ALL_OF_ONES,
    MATCH_ALL_OF_ONES_PREDICATE,
    REDUCE_ADD,
    REDUCE_MIN,
    REDUCE_MAX,
    REDUCE_ADD_UNSIGNED,
    REDUCE_MIN_UNSIGNED,
    REDUCE_MAX_UNSIGNED,
    REDUCE_AND,
    REDUCE_OR,
    REDUCE_XOR,
    MATCHES
};
void run_matches(const int *in, int *out, int threads);

/* ---- atomics ---- */
enum {
    CELL_ADD,
    CELL_SUB,
    CELL_MIN,
    CELL_MAX,
    CELL_AND,
    CELL_OR,
    CELL_XOR,
    CELL_EXCHANGE,
    CELL_REPLACED, /* the sum of what the exchanges returned */
    CELL_CAS,      /* adds 3 by compare-and-swap */
    CELLS
};
/* cells: CELLS values for the grid, or for each block when they are kept in shared memory. tickets[t] counts the
 * threads to whom the addition of 1 to CELL_ADD returned t. */
void run_atomics_int(int *cells, int *tickets, int blocks, int threads, int on_shared);
void run_atomics_unsigned(unsigned *cells, int *tickets, int blocks, int threads, int on_shared);
void run_atomics_long(unsigned long long *cells, int *tickets, int blocks, int threads, int on_shared);
/* cells: sum of thread numbers / 4 by atomicAdd, latest exchange, sum of what exchanges returned */
void run_atomics_float(float *cells, int blocks, int threads, int on_shared);
void run_atomics_double(double *cells, int blocks, int threads, int on_shared);
void run_count(int *count, int blocks, int threads);
void run_last_block(const int *in, int n, int *partial_sums, unsigned *blocks_done, int *out, int blocks);
void run_spin_lock(int *lock, int *count, int blocks, int threads);

/* ---- shared memory ---- */
void run_transpose(const float *in, float *out); /* 32 x 32 */
void run_many_arrays(const int *in, int *out);   /* 32 threads; out[i] = in[31 - i] + 10 in[i ^ 1] + sum of all */
void run_dependent_sizes(int *out);              /* 4 x 64 sums of squares below 8, 16, 32, 64 */
void run_aligned_arrays(float *out, unsigned *misplaced); /* 64 elements copied by float4 */
void run_repeated_site(int *out);                         /* 64 elements; one declaration reached from two calls */
cudaError_t allow_dynamic_shared(int bytes);              /* of run_dynamic_shared() */
void run_dynamic_shared(int *out, size_t bytes);          /* out[i] = 7 * (count - 1 - i) for all ints that fit */
void run_dynamic_parts(double *out, int n);               /* n <= 256: doubles, then ints, in one dynamic array */
void run_dynamic_and_static(int *out, int n);             /* n <= 256 */
void run_big_static(float *out, size_t dynamic_bytes);    /* 16 KB of static shared memory as well */

/* ---- vectors, templates, arguments, launches ---- */
void run_vectors(const float *in, float *out, int n); /* n a multiple of 4: reversed within each four */
void run_vector_parts(float *out);                    /* 32 floats, see the test */
void run_templates(int *out);                         /* 8 ints, see the test */
struct parameters {
    int numbers[40];
    double factor;
    const int *in;
    char tag;
};
void run_parameters(struct parameters parameters, int *out, int threads);
void run_conversions(double *out); /* 4 doubles */
enum { LAUNCHES = 16 };
void run_launches(int *threads_of); /* LAUNCHES counts, see the test */
void run_on_stream(int *data, int n, int addend, cudaStream_t stream);
void run_empty(struct extent grid, struct extent block);
const char *text_with_launch(void);
void run_globals(int *out);                                 /* 64 ints */
void run_bits(const unsigned *in, int *out, int n);         /* out[3 i]: __popc, __clz, __ffs */
void run_fill_shared(int n);                                /* n floats in each of 64 blocks */

/* ---- errors: each commits one, waits and returns what the wait returned ---- */
enum fault {
    READ_PAST_END,
    WRITE_PAST_END,
    READ_BEFORE_START,
    READ_BEFORE_START_OF_SECOND,
    WRITE_FAR_AWAY,
    NULL_POINTER,
    FOREIGN_POINTER, /* the one given to commit() */
    USE_AFTER_FREE,
    ATOMIC_PAST_END,
    VECTOR_PAST_END,
    PAST_STATIC_SHARED,
    PAST_FIRST_OF_TWO_SHARED,
    PAST_DYNAMIC_SHARED,
    BEFORE_DYNAMIC_SHARED,
    MISALIGNED_VECTOR,
    READ_UNWRITTEN_GLOBAL,
    READ_UNWRITTEN_SHARED,
    HALF_AT_BARRIER,
    TWO_BARRIERS,
    EARLY_RETURN,
    RETURN_WITHOUT_ACCESS,
    BARRIERS_IN_UNEQUAL_LOOPS,
    ABSENT_LANE,
    LANE_OUTSIDE_MASK,
    CALLER_OUTSIDE_MASK,
    SHUFFLES_IN_TWO_BRANCHES,
    DIFFERENT_MASKS,
    BARRIER_MEETS_SHUFFLE,
    ENDLESS_READS,
    ENDLESS_SPIN,
    ENDLESS_SPIN_AFTER_WRITE,
    ENDLESS_BARRIERS,
    ENDLESS_SHUFFLES,
    ENDLESS_ATOMICS,
    LARGE_LOCAL_ARRAY,
    ENDLESS_RECURSION,
    DIVISION_BY_ZERO,
    TOO_MUCH_STATIC_SHARED
};
cudaError_t commit(enum fault fault, void *pointer);

/* Where simt_kernels.cu commits them. */
#define MARKED_LINES(X)                                                                                                \
    X(read_at)                                                                                                         \
    X(write_at)                                                                                                        \
    X(add_at)                                                                                                          \
    X(read_vector)                                                                                                     \
    X(past_static)                                                                                                     \
    X(past_first)                                                                                                      \
    X(dynamic_at)                                                                                                      \
    X(read_unwritten_global)                                                                                           \
    X(unwritten_shared)                                                                                                \
    X(barrier_of_half)                                                                                                 \
    X(barrier_of_all)                                                                                                  \
    X(barrier_then)                                                                                                    \
    X(barrier_else)                                                                                                    \
    X(access_before_return)                                                                                            \
    X(barrier_after_return)                                                                                            \
    X(barrier_of_most)                                                                                                 \
    X(barrier_in_loop)                                                                                                 \
    X(barrier_after_loop)                                                                                              \
    X(absent_lane)                                                                                                     \
    X(lane_outside_mask)                                                                                               \
    X(caller_outside_mask)                                                                                             \
    X(shuffle_then)                                                                                                    \
    X(shuffle_else)                                                                                                    \
    X(different_masks)                                                                                                 \
    X(endless_reads)                                                                                                   \
    X(write_before_spin)                                                                                               \
    X(spin)                                                                                                            \
    X(endless_barriers)                                                                                                \
    X(endless_shuffles)                                                                                                \
    X(endless_atomics)                                                                                                 \
    X(large_local_array)                                                                                               \
    X(endless_recursion)                                                                                               \
    X(division_by_zero)                                                                                                \
    X(too_much_static)                                                                                                 \
    X(last_of_file)
#define DECLARE_LINE(name) extern const int line_##name;
MARKED_LINES(DECLARE_LINE)

#ifdef __cplusplus
}
#endif

#endif
