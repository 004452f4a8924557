// 15_variants: all variants in one program.
//
// Idea      A kernel per variant would be 2^7 kernels. What decides which keys a block visits (windows, packed sequences, grouped
//           heads) costs nothing in the inner loop and is decided when the program runs. What changes each score or weight (softcap,
//           ALiBi, dropout) is a template switch: five kernels per pass. The plain problem runs chapter 10's and 11's loops.
// Costs     O(N) memory. With rotary embedding Q and K once more, and a table.
// Limiter   As in chapters 10 and 11; with dropout the integer instructions of Philox, with softcap it is not known.
// Measured  README.md beside this file has the numbers.

#include "backward.cuh"
#include "packed.cuh"
#include "rotary_bwd.cuh"
#include "scores.cuh"
#include "window_bwd.cuh"

#include "transposed_all.cuh"
#include "backward_all.cuh"
#include "forward_all.cuh"

static size_t workspace_bytes(const problem *p) { // of the pass that needs more
    return fwd::workspace_bytes(p) > bwd::workspace_bytes(p) ? fwd::workspace_bytes(p) : bwd::workspace_bytes(p);
}

static const char *refuses(const problem *p) {
    const char *reason = bwd::too_many_tiles(p);
    return reason ? reason : bwd::too_many_sequences(p);
}

extern "C" const step step_15_variants = {
    .name = "15_variants",
    .idea = "all variants of attention in one program",
    .forward = fwd::forward,
    .backward = bwd::backward,
    .workspace_bytes = workspace_bytes,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .grouped_heads = true,
    .variants = WINDOW | SOFTCAP | ALIBI | DROPOUT | ROTARY | PACKED,
    .compute_capability = 80,
    .refuses = refuses,
};
