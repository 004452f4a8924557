// Chapter 11's kernels before and after the one that computes the gradients.
#ifndef ROWS_OF_VARIANTS_CUH
#define ROWS_OF_VARIANTS_CUH

#include "backward.cuh"

namespace bwd {
#include "../11_tensor_core_bwd/rows.cuh"
} // namespace bwd

#endif
