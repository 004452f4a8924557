// Which sequence a block works on, and where its rows lie in memory of the step's own.
#ifndef PACKED_CUH
#define PACKED_CUH

#include "backward.cuh"
#include "variants.cuh"

namespace bwd {

// A grid has as many blocks in x for each sequence as the longest one needs, of 16 rows at least, and no more than 2^31 - 1 in all.
inline const char *too_many_sequences(const problem *p) {
    return p->starts && (double)p->sequences * p->longest > 3e10
               ? "packed sequences of which the longest, times their number, has more than 3e10 rows are not supported"
               : nullptr;
}

// Blocks 0 to n - 1 in x belong to sequence 0, the next n to sequence 1.
__device__ inline int blocks_of_one(const problem &p) { return gridDim.x / max(1, p.sequences); }
__device__ inline int own_block(const problem &p) { return blockIdx.x % blocks_of_one(p); }
__device__ inline rows_of own_sequence(const problem &p) { return sequence_rows(p, blockIdx.x / blocks_of_one(p)); }

// Where the rows of this block's sequence begin in L2, D and dQ_sum: each sequence has whole multiples of ROW_PAD there. `first`,
// rounded down, grows from one sequence to the next by at least its rows, rounded up, less one ROW_PAD.
__device__ inline int padded_first(const problem &p, const rows_of &of) {
    return p.starts ? (of.first / ROW_PAD + blockIdx.x / blocks_of_one(p)) * ROW_PAD : 0;
}

} // namespace bwd

#endif
