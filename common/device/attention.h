/* The problem that every chapter solves, and the form in which a chapter hands over its solution.
 *
 *     S = scale * Q K^T        P = softmax of each row of S        O = P V        (docs/math.md, eq. 1-3)
 *
 * The letters are the papers': Q K V O S P, L for the logsumexp of a row of S, d for the head dimension.
 * All tensors are contiguous and row-major. A "head" below means one of the batch * heads independent problems.
 */
#pragma once

#include <cuda_runtime.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MAX_HEAD_DIM = 128,
    MAX_BATCH_HEADS = 65535, /* a head is a block index in y or z, and CUDA ends those at 65535 */
};

#ifdef __CUDACC__
#define EVERYWHERE __host__ __device__
#else
#define EVERYWHERE
#endif

/* How many tiles of b cover a. */
EVERYWHERE static inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

/* The type of the elements of all tensors but L, which is always fp32. FP8: of Q, K and V, and O is BF16. Of V alone, where the problem
 * says `hadamard`. */
enum dtype { FP32, FP16, BF16, FP8, DTYPES };
enum fp8 { E4M3, E5M2 };
enum scales { OF_TENSOR, OF_HEAD, OF_BLOCK };

struct problem {
    enum dtype dtype;
    int batch, heads;
    int N_q;  /* queries in a head */
    int N_kv; /* keys and values in a head */
    int d;    /* head dimension, 1 to MAX_HEAD_DIM */

    /* Query i attends to key j where j <= i + N_kv - N_q: the mask is aligned to the bottom right corner of S, as
     * FlashAttention does since 2.1. A row that attends to no key gives O = 0 and L = -inf. */
    bool causal;

    float scale; /* usually 1 / sqrt(d) */

    /* Heads of K and V: query head h reads K and V of head h / (heads / heads_kv). Divides `heads`; 0: as many as `heads`. */
    int heads_kv;

    /* Variants (chapters 14 and 15). Zero: the problem does not have this one. A step takes the variants that its struct step names.
     *
     * In what follows, query i stands at the position of key i + N_kv - N_q, as under the causal mask; with packed sequences and
     * with lengths, i, j, N_q and N_kv are those within the sequence. Pointers lead to memory of whoever solves the problem: the
     * device's for a step, the host's for the oracle. */

    /* Query i at position x attends only to keys with x - left <= j <= x + right, both ends included (window_size of FlashAttention
     * since 2.3). Both from 0 to N_q + N_kv; larger numbers would say no more. */
    bool windowed;
    /* FP8: Q and K come in BF16, and the step rounds them to 8 bits itself: struct step's `hadamard`. */
    bool hadamard;

    int left, right;

    float softcap; /* > 0: a score s becomes softcap tanh(s / softcap), before ALiBi (Gemma 2; FlashAttention 2.6) */

    /* The score of a query at position x and key j of head h falls by slope |x - j|, with slope = 2^(-8 (h + 1) / heads), h from 0
     * (Press et al. 2022, "Train short, test long"; the distance as in FlashAttention since 2.4). Their released code has this formula
     * for n heads, the largest power of 2 up to `heads`, and for the others every second slope of 2 n heads, from the first on. */
    enum alibi { NO_ALIBI, ONE_FORMULA, RELEASED_RULE } alibi;

    /* 0 <= dropout < 1: each weight is dropped with this probability, and the others are divided by 1 - dropout; L is that of all
     * weights. Which ones: dropout_words() in variants.cuh. */
    float dropout;
    unsigned long long dropout_seed;

    /* Q and K are rotated by their positions before the product, and rounded to their type (Su et al. 2021, "RoFormer"). Pair c of
     * the d / 2 pairs turns by position * 10000^(-2 c / d); it has columns 2 c and 2 c + 1, or c and c + d / 2. d must be even. */
    enum rotary { NOT_ROTARY, INTERLEAVED, HALVED } rotary;

    /* Devices 0 to devices - 1 share the work, each some of the rows (chapter 17). 0 and 1: the current one does it all. It stands where
     * the struct has room: 8 bytes more among a kernel's parameters, and nvcc 13.0 spills registers of 11e and 11f on sm_80. */
    int devices;

    /* Packed sequences: sequence s has rows starts[s] to starts[s + 1] - 1 of each head, queries and keys alike, and attends to
     * itself only. batch is 1, N_q and N_kv are starts[sequences]. */
    const int *starts; /* (sequences + 1), from 0 on, not falling; NULL: no packed sequences */
    int sequences;
    int longest; /* rows of the longest sequence */

    /* A cache in pages: K and V are (page_count, kv_heads(), page_size, d), and key j of sequence b lies in row j % page_size of page
     * pages[b * pages_per_sequence() + j / page_size]. Sequence b has lengths[b] keys, at most N_kv. */
    const int *lengths; /* (batch) */
    const int *pages;   /* (batch, pages_per_sequence()); NULL: no pages */
    int page_size;      /* keys, a power of 2 from 16 to 256 */
    int page_count;

    /* FP8 (chapter 16): the type of Q, K and V, and which of their rows share a scale. A number x of a row stands for x times the
     * row's scale; struct tensors has a scale for each SCALE_ROWS rows of a head, whichever are equal. */
    enum fp8 fp8;
    enum scales scales;
};

enum { SCALE_ROWS = 128 };
EVERYWHERE static inline int scale_blocks(int rows) { return ceil_div(rows, SCALE_ROWS); } /* of a head */

static inline int pages_per_sequence(const struct problem *problem) {
    return ceil_div(problem->N_kv, problem->page_size);
}

static inline int kv_heads(const struct problem *problem) {
    return problem->heads_kv > 0 ? problem->heads_kv : problem->heads;
}

/* Device pointers, to numbers of 16 or 8 bits where problem.dtype says so. Shapes: Q, O, dO, dQ (batch, heads, N_q, d);
 * K, V, dK, dV (batch, kv_heads(), N_kv, d); L (batch, heads, N_q). The forward pass reads Q K V and writes O L; the backward
 * pass reads Q K V O L dO and writes dQ dK dV. */
struct tensors {
    const float *Q, *K, *V;
    float *O, *L;
    const float *dO;
    float *dQ, *dK, *dV;
    /* FP8: (batch, heads or kv_heads(), scale_blocks(N_q or N_kv)); those of Q and K are NULL with problem.hadamard. */
    const float *Q_scales, *K_scales, *V_scales;
};

/* One pass of a chapter: enqueue its kernels on `stream`. `workspace` points to workspace_bytes() bytes of device memory
 * with undefined contents. Returns the first CUDA error, launch errors included, and does not wait for the kernels. */
typedef cudaError_t attention_pass(const struct problem *problem, const struct tensors *tensors, void *workspace,
                                   cudaStream_t stream);

/* Several devices (chapter 17). The tensors lie on device 0, which is current, and `stream` is a stream of it. A caller makes three
 * calls. distribute() allocates what a pass needs on each device, copies the device's rows of the inputs there and waits; `*shards`
 * is then the pass's workspace. The pass, any number of times: no device begins before `stream` is there, and `stream` goes on after
 * all devices. collect() copies the outputs to the tensors, waits and releases everything, also after a pass that failed.
 * So what is timed on `stream` is the pass with all that its devices send each other; it is neither distribute() nor collect(). */
typedef cudaError_t distribute_shards(const struct problem *problem, const struct tensors *tensors, void **shards);
typedef cudaError_t collect_shards(const struct problem *problem, const struct tensors *tensors, void *shards);

/* What a step may take beyond the plain problem: members of struct problem. */
enum variant { WINDOW = 1, SOFTCAP = 2, ALIBI = 4, DROPOUT = 8, ROTARY = 16, PACKED = 32, PAGES = 64 };

/* What a rung fills in: the harness, the tests and the C interface know a kernel only through this. Everything that a step
 * can do stands here; members that are left out are zero. */
struct step {
    const char *name;   /* of the file and of the program: "01_naive" for a chapter's last rung, "06a_register_tile" */
    const char *idea;   /* a few words, for tables */
    const char *beside; /* why it stands beside the chain (an idea that failed, another data type); NULL: inside */

    attention_pass *forward;  /* NULL when the step has no such pass */
    attention_pass *backward; /* NULL likewise */

    /* The backward pass with the same bits in every run; NULL when the step has none. */
    attention_pass *backward_deterministic;

    /* Device memory beyond inputs and outputs, in bytes; NULL when none. */
    size_t (*workspace_bytes)(const struct problem *problem);

    unsigned dtypes;    /* the types that it takes, as 1 << BF16 | 1 << FP16; 0: fp32 only */
    int d_multiple;     /* d must be a multiple of this; 0 when the step takes any d */
    bool grouped_heads; /* takes fewer heads of K and V than of Q */
    /* In FP8, it gets Q and K in BF16. It multiplies each row by signs and by Hadamard matrices, which changes no product of a row of Q
     * and one of K, and rounds it to 8 bits, with scales as problem.scales says. A matrix has n columns, n the largest power of 2 that
     * divides d: the sums and differences of columns at distances 1, 2, 4 ... n / 2, in this order, each rounded to fp32. Rows of Q are
     * divided by n then. Column c has the sign of bit 31 of x 0x85EBCA77, x = y ^ y >> 15, y = (c + 1) 0x9E3779B1, in 32 bits. */
    bool hadamard;
    unsigned variants;             /* what else it takes, as WINDOW | SOFTCAP; 0: nothing */
    int most_queries;              /* N_q may be at most this; 0 when the step takes any number */
    int compute_capability;        /* the least that its instructions need, as 80 for 8.0; 0 when any card will do */
    int most_devices;              /* problem.devices may be at most this; 0 when the step uses one */
    distribute_shards *distribute; /* NULL when the step uses one device */
    collect_shards *collect;       /* NULL likewise */

    /* Why the step cannot do this problem, in words for its user; NULL when it can. Only for what no member above says:
     * step_refuses() in run.h is what everyone calls. */
    const char *(*refuses)(const struct problem *problem);
};

#ifdef __cplusplus
}
#endif
