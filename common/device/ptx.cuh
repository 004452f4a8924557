/* Single machine instructions that CUDA C++ has no name for. What the simulated device makes of them: simt_ptx.h. */
#ifndef PTX_CUH
#define PTX_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

/* 2 to the power x, within 2 units in the last place; subnormal results become 0. exp2f() would add three instructions
 * around this one to keep subnormals. exp2_approx(-inf) is 0. */
__device__ inline float exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* 1 / x within 1 unit in the last place, for |x| up to 2^126. __fdividef() would add instructions for larger ones. */
__device__ inline float reciprocal_approx(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Add v to the four floats at p, which is a multiple of 16 bytes: one request where the card has it (from 9.0 on), else
 * four. Each float is added at once; the four are not. */
__device__ inline void reduce_add4(float *p, float4 v) {
#if __CUDA_ARCH__ >= 900
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
#else
    atomicAdd(p, v.x);
    atomicAdd(p + 1, v.y);
    atomicAdd(p + 2, v.z);
    atomicAdd(p + 3, v.w);
#endif
}

/* Four 8 x 8 matrices of 16-bit elements (compute capability 7.5). Lane 8 i + r gives the address of row r of matrix i:
 * 16 bytes, aligned to 16, in shared memory. Register i of lane l receives elements 2 (l % 4) and 2 (l % 4) + 1 of row
 * l / 4 of matrix i. All 32 lanes must call. */
__device__ inline void ldmatrix_x4(uint32_t (&matrix)[4], const void *row) {
    uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrix[0]), "=r"(matrix[1]), "=r"(matrix[2]), "=r"(matrix[3])
                 : "r"(address)
                 : "memory");
}

/* The same with each matrix transposed: register i of lane l receives rows 2 (l % 4) and 2 (l % 4) + 1 of column
 * l / 4. */
__device__ inline void ldmatrix_x4_trans(uint32_t (&matrix)[4], const void *row) {
    uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrix[0]), "=r"(matrix[1]), "=r"(matrix[2]), "=r"(matrix[3])
                 : "r"(address)
                 : "memory");
}

/* One and two matrices: lanes 0 to 7, and 0 to 15, give the addresses. */
__device__ inline void ldmatrix_x1(uint32_t (&matrix)[1], const void *row) {
    uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(matrix[0]) : "r"(address) : "memory");
}

__device__ inline void ldmatrix_x1_trans(uint32_t (&matrix)[1], const void *row) {
    uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(matrix[0])
                 : "r"(address)
                 : "memory");
}

__device__ inline void ldmatrix_x2(uint32_t (&matrix)[2], const void *row) {
    uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(matrix[0]), "=r"(matrix[1])
                 : "r"(address)
                 : "memory");
}

__device__ inline void ldmatrix_x2_trans(uint32_t (&matrix)[2], const void *row) {
    uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(matrix[0]), "=r"(matrix[1])
                 : "r"(address)
                 : "memory");
}

/* ldmatrix_x4 backwards: registers to shared memory (compute capability 9.0). */
__device__ inline void stmatrix_x4(void *row, const uint32_t (&matrix)[4]) {
    uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(matrix[0]),
                 "r"(matrix[1]), "r"(matrix[2]), "r"(matrix[3])
                 : "memory");
}

__device__ inline void stmatrix_x4_trans(void *row, const uint32_t (&matrix)[4]) {
    uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(matrix[0]), "r"(matrix[1]), "r"(matrix[2]), "r"(matrix[3])
                 : "memory");
}

/* C += A B on a tensor core: A 16 x 16, B 16 x 8, C 16 x 8 in fp32 (compute capability 8.0). The drawing in tensor.cuh
 * says which elements a lane holds. All 32 lanes must call. */
template <class T> __device__ void mma_m16n8k16(float (&C)[4], const uint32_t (&A)[4], uint32_t B0, uint32_t B1);

template <>
__device__ inline void mma_m16n8k16<__nv_bfloat16>(float (&C)[4], const uint32_t (&A)[4], uint32_t B0, uint32_t B1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(C[0]), "+f"(C[1]), "+f"(C[2]), "+f"(C[3])
        : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B0), "r"(B1));
}

template <>
__device__ inline void mma_m16n8k16<__half>(float (&C)[4], const uint32_t (&A)[4], uint32_t B0, uint32_t B1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(C[0]), "+f"(C[1]), "+f"(C[2]), "+f"(C[3])
        : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B0), "r"(B1));
}

/* C += A B with A 16 x 8 and B 8 x 8 in TF32: floats of which the tensor core reads sign, exponent and the upper 10
 * bits of the fraction (compute capability 8.0). */
__device__ inline void mma_m16n8k8_tf32(float (&C)[4], const uint32_t (&A)[4], uint32_t B0, uint32_t B1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(C[0]), "+f"(C[1]), "+f"(C[2]), "+f"(C[3])
        : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B0), "r"(B1));
}

#endif
