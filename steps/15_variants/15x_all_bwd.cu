// 15x_all_bwd: the backward pass of the chapter's last rung by itself.
//
// Idea      All ideas of 15a to 15f in one pair of kernels.
// Costs     Registers: bounds of a sequence and of a window where chapter 11 has constants.
// Limiter   As in chapter 11 where nothing is asked for.
// Measured  README.md beside this file has the numbers.

#include "packed.cuh"
#include "rotary_bwd.cuh"
#include "scores.cuh"

#include "backward_all.cuh"

extern "C" const step step_15x_all_bwd = {
    .name = "15x_all_bwd",
    .idea = "all variants of the backward pass",
    .beside = "variants of chapter 11's problem",
    .backward = bwd::backward,
    .workspace_bytes = bwd::workspace_bytes,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .grouped_heads = true,
    .variants = WINDOW | SOFTCAP | ALIBI | DROPOUT | ROTARY | PACKED,
    .compute_capability = 80,
};
