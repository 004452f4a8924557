// expect: 0 2 4 6
#include "construct.h"

#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init
typedef cuda::barrier<cuda::thread_scope_block> block_barrier;
__global__ void k(int *out) { // the first warp produces, the second consumes, four times
    __shared__ block_barrier full, empty;
    __shared__ int item[32];
    if (threadIdx.x == 0) init(&full, blockDim.x), init(&empty, blockDim.x);
    __syncthreads();
    for (int round = 0; round < 4; round++) {
        if (threadIdx.x < 32) {
            item[threadIdx.x] = 2 * round;
            (void)full.arrive();
            empty.arrive_and_wait();
        } else {
            full.arrive_and_wait();
            if (threadIdx.x == 63) out[round] = item[5];
            (void)empty.arrive();
        }
    }
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 64>>>(out); }); }
