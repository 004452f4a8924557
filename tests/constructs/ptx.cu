#include "construct.h"
#include <cuda_fp16.h>
#include "ptx_wrappers.cuh"

namespace ptx_arithmetic {
__global__ void k(float *out) {
    float power, x = 3.0f, quarter;
    unsigned low;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    asm volatile("rcp.approx.f32 %0, %1;\n" : "=f"(quarter) : "f"(4.0f));
    asm("bfe.u32 %0, %1, 4, 4;" : "=r"(low) : "r"(0x155u));
    out[0] = power, out[1] = x, out[2] = quarter, out[3] = low;
}
CONSTRUCT(ptx_arithmetic, "8 3 0.25 5") { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
} // namespace ptx_arithmetic

namespace ptx_copy {
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
CONSTRUCT(ptx_copy, "4 3 2 1") {
    return show<float>(4, [&](float *out) {
        float h[4] = {1, 2, 3, 4}, *in;
        cudaMalloc(&in, 16);
        cudaMemcpy(in, h, 16, cudaMemcpyHostToDevice);
        k<<<1, 4>>>(out, in);
        cudaFree(in);
    });
}
} // namespace ptx_copy

namespace ptx_laneid {
__global__ void k(int *out) {
    unsigned one, two;
    asm("mov.u32 %0, %laneid;" : "=r"(one));
    asm("mov.u32 %0, %%laneid;" : "=r"(two));
    out[threadIdx.x] = one;
    out[4 + threadIdx.x] = two;
}
CONSTRUCT(ptx_laneid, "0 1 2 3 0 1 2 3") { return show<int>(8, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace ptx_laneid

namespace ptx_mma {
/* A: 16 x 16 of ones; B: 16 x 8 of ones in even columns and twos in odd ones; both row by row in shared memory. */
__global__ void k(float *out) {
    __shared__ __align__(16) half A[16][16], B[16][8];
    int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32) A[i / 16][i % 16] = __float2half(1.0f);
    for (int i = lane; i < 128; i += 32) B[i / 8][i % 8] = __float2half(1.0f + i % 2);
    __syncwarp();
    unsigned a[4], b[2];
    float c[4];
    unsigned a_row = (unsigned)__cvta_generic_to_shared(&A[lane % 16][lane / 16 * 8]);
    unsigned b_row = (unsigned)__cvta_generic_to_shared(&B[lane % 16][0]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(a_row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(b_row));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%10, %11, %12, %13};"
                 : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(0.0f), "f"(0.0f), "f"(0.0f),
                   "f"(0.0f));
    if (lane == 0)
        for (int i = 0; i < 4; i++) out[i] = c[i];
}
CONSTRUCT(ptx_mma, "16 32 16 32") { return show<float>(4, [&](float *out) { k<<<1, 32>>>(out); }); }
} // namespace ptx_mma

namespace ptx_order_of_qualifiers {
/* The shape and the number of matrices may change places. */
__global__ void k(int *out) {
    __shared__ alignas(16) unsigned rows[32][4];
    for (int i = 0; i < 4; i++) rows[threadIdx.x][i] = 4 * threadIdx.x + i;
    __syncthreads();
    unsigned address = (unsigned)__cvta_generic_to_shared(rows[threadIdx.x % 8]), a[2], b[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(a[0]), "=r"(a[1]) : "r"(address));
    asm volatile("ldmatrix.sync.aligned.x2.m8n8.shared.b16 {%0, %1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(address));
    if (threadIdx.x == 3 || threadIdx.x == 17) out[threadIdx.x / 16] = a[0], out[2 + threadIdx.x / 16] = b[1];
}
CONSTRUCT(ptx_order_of_qualifiers, "3 17 3 17") { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace ptx_order_of_qualifiers

namespace ptx_wrappers {
template <class F> __device__ float apply(F f, float x) { return f(x); }

__global__ void k(int *out) {
    __shared__ __align__(16) uint32_t tile[64];
    tile[threadIdx.x] = threadIdx.x;
    tile[32 + threadIdx.x] = 1;
    meet();
    uint32_t one[1], two[2];
    load_rows(one, tile + threadIdx.x % 8 * 4);
    meet_as<int>();
    load_rows(two, tile + threadIdx.x % 16 * 4);
    meet_as<float>();
    tile[threadIdx.x] = one[0] + two[0] + two[1];
    meet_declared_first();
    meet_in_template(1);
    if (threadIdx.x > 0) return;
    out[0] = apply(twice, 1.0f);
    out[1] = (int)pair{1.0f, 2.0f}.sum();
    out[2] = (int)apply(twice, 2.0f);
    out[3] = tile[1];
    out[4] = tile[15] - 1;
}
CONSTRUCT(ptx_wrappers, "2 3 4 3 30") { return show<int>(5, [](int *out) { k<<<1, 32>>>(out); }); }
} // namespace ptx_wrappers
