/* Variants of attention (struct problem in attention.h) for kernels: which keys a query attends to, how a score changes, which weights
 * are dropped. The oracle has its own statement of each. */
#ifndef VARIANTS_CUH
#define VARIANTS_CUH

#include <stdint.h>

#include "attention.h"

/* Where one packed sequence lies in its head: its first row, its numbers of queries and of keys. Without packed sequences: the whole head. */
struct rows_of {
    int first, N_q, N_kv;
};
__device__ inline rows_of sequence_rows(const problem &p, int sequence) {
    if (p.starts == NULL) return {0, p.N_q, p.N_kv};
    int first = p.starts[sequence], count = p.starts[sequence + 1] - first;
    return {first, count, count};
}

/* Query `row` attends to the keys first_key() to end_key() - 1, to none where end_key() is not larger; rows and keys count from the
 * beginning of the sequence. Both grow with `row`. */
__device__ inline int first_key(const problem &p, const rows_of &of, int row) {
    return p.windowed ? max(0, row + of.N_kv - of.N_q - p.left) : 0;
}
__device__ inline int end_key(const problem &p, const rows_of &of, int row) {
    int beyond = p.causal ? 1 : p.windowed ? p.right + 1 : of.N_kv + of.N_q; // right >= 0
    return max(0, min(of.N_kv, row + of.N_kv - of.N_q + beyond));
}

/* The queries that attend to `key`: first_query() to end_query() - 1. Both grow with `key`. */
__device__ inline int first_query(const problem &p, const rows_of &of, int key) {
    int beyond = p.causal ? 0 : p.windowed ? p.right : of.N_kv + of.N_q;
    return max(0, key - (of.N_kv - of.N_q) - beyond);
}
__device__ inline int end_query(const problem &p, const rows_of &of, int key) {
    return p.windowed ? max(0, min(of.N_q, key - (of.N_kv - of.N_q) + p.left + 1)) : of.N_q;
}

/* Each mask as a window, so that a kernel knows only `left` and `right`: without a window all keys lie inside, and a causal mask ends at
 * the query's position. Called by the host. */
inline problem as_window(problem p) {
    if (!p.windowed) p.left = p.right = p.N_q + p.N_kv;
    if (p.causal) p.right = 0;
    p.windowed = true, p.causal = false;
    return p;
}

/* Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): four random words from a counter and a key. */
__device__ inline uint4 philox(uint4 counter, uint2 key) {
#pragma unroll
    for (int round = 0; round < 10; round++) {
        uint32_t high0 = __umulhi(0xD2511F53u, counter.x), high1 = __umulhi(0xCD9E8D57u, counter.z);
        counter = make_uint4(high1 ^ counter.y ^ key.x, 0xCD9E8D57u * counter.z, high0 ^ counter.w ^ key.y,
                             0xD2511F53u * counter.x);
        key.x += 0x9E3779B9u, key.y += 0xBB67AE85u;
    }
    return counter;
}

/* The words for four weights: rows (queries) r and r + 8 and columns (keys) c and c + 8 of a 16 x 16 block, word 2 (row / 8 % 2) +
 * column / 8 % 2. A lane of mma has all four, in the fragments of S and in those of S^T. row and col: of any of the four, within their
 * sequence. head: over the batch. Counter: number of the row's group, of the column's, of the head, of the packed sequence; key: the
 * seed's lower and upper half. */
__device__ inline uint4 dropout_words(const problem &p, int row, int col, int head, int sequence) {
    return philox(make_uint4(row / 16 * 8 + row % 8, col / 16 * 8 + col % 8, head, sequence),
                  make_uint2((uint32_t)p.dropout_seed, (uint32_t)(p.dropout_seed >> 32)));
}

/* A weight is dropped where its word is below this: dropout * 2^32. */
__device__ inline uint32_t dropout_threshold(const problem &p) { return (uint32_t)(p.dropout * 4294967296.0f); }

/* How a score falls per key of distance in this head of its batch. */
__device__ inline float alibi_slope(const problem &p, int head) {
    int n = p.alibi == problem::RELEASED_RULE ? 1 << (31 - __clz(p.heads)) : p.heads;
    return p.alibi ? exp2f(-(8.0f * (head % n) + (head < n ? 8.0f : 4.0f)) / n) : 0.0f;
}

#endif
