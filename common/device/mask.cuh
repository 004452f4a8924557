/* Which keys a query attends to: the one statement of the causal mask that all kernels share. The oracle in reference.c
 * has its own. */
#ifndef MASK_CUH
#define MASK_CUH

#include "attention.h"

/* Query `row` attends to the keys 0 to attended_keys() - 1: to all N_kv of them, or under the causal mask to those with
 * j <= row + N_kv - N_q. Grows with `row`, so a tile's last row attends to the most keys. */
__device__ inline int attended_keys(const problem &p, int row) {
    int shift = p.causal ? p.N_kv - p.N_q : p.N_kv; // one select outside of all loops, and no branch inside
    return max(0, min(p.N_kv, row + 1 + shift));
}

/* The first query that attends to `key`; N_q or more when there is none. */
__device__ inline int first_attending_query(const problem &p, int key) {
    return p.causal ? max(0, key + p.N_q - p.N_kv) : 0;
}

#endif
