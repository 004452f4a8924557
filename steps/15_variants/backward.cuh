// Chapter 11's backward pass in a namespace of its own: the forward pass has functions of the same names.
#ifndef BACKWARD_CUH
#define BACKWARD_CUH

#include "attention.h"

#include <cuda_awbarrier_primitives.h>
#include <cuda_pipeline.h>
#include <math.h>

#include "launch.h"
#include "ptx.cuh"
#include "tensor.cuh"

namespace bwd { // all that this header includes stands above
#include "../11_tensor_core_bwd/tilings.cuh"
} // namespace bwd

#endif
