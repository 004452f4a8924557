// Which sequence a block works on, and where its rows lie in memory of the step's own.
#ifndef PACKED_CUH
#define PACKED_CUH

#include "backward.cuh"
#include "variants.cuh"

namespace bwd {

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
