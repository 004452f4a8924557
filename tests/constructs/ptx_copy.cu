// expect: 4 3 2 1
#include "construct.h"

__global__ void k(float *out, const float *in) {
    __shared__ __align__(16) float tile[4];
    if (threadIdx.x == 0) {
        unsigned to = (unsigned)__cvta_generic_to_shared(tile);
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], %2;\n" ::"r"(to), "l"(in), "n"(16));
        asm volatile("cp.async.commit_group;\n" ::);
        asm volatile("cp.async.wait_group %0;\n" ::"n"(0));
    }
    __syncthreads();
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    out[lane] = tile[3 - lane];
}

int main() {
    return show<float>(4, [&](float *out) {
        float h[4] = {1, 2, 3, 4}, *in;
        cudaMalloc(&in, 16);
        cudaMemcpy(in, h, 16, cudaMemcpyHostToDevice);
        k<<<1, 4>>>(out, in);
        cudaFree(in);
    });
}
