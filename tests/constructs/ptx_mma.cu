// expect: 16 32 16 32
#include "construct.h"
#include <cuda_fp16.h>

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

int main() { return show<float>(4, [&](float *out) { k<<<1, 32>>>(out); }); }
