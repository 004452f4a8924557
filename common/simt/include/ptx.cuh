/* The simulated device's version of common/cuda/ptx.cuh: what each instruction computes. */
#ifndef PTX_CUH
#define PTX_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

static inline float exp2_approx(float x) { return x < -126.0f ? 0.0f : exp2f(x); }

static inline void reduce_add4(float *p, float4 v) {
    float operand[] = {v.x, v.y, v.z, v.w};
    simt_reduce_add4(p, operand);
}

#define SIMT_LDMATRIX(name, matrices, transposed)                                                                              \
    static inline void name(uint32_t(&matrix)[matrices], const void *row, SIMT_HERE) {                                         \
        simt_registers result = simt_ldmatrix(row, matrices, transposed, file, line);                                          \
        for (int i = 0; i < matrices; i++) matrix[i] = result.r[i];                                                            \
    }
SIMT_LDMATRIX(ldmatrix_x1, 1, false)
SIMT_LDMATRIX(ldmatrix_x2, 2, false)
SIMT_LDMATRIX(ldmatrix_x4, 4, false)
SIMT_LDMATRIX(ldmatrix_x1_trans, 1, true)
SIMT_LDMATRIX(ldmatrix_x2_trans, 2, true)
SIMT_LDMATRIX(ldmatrix_x4_trans, 4, true)

static inline void stmatrix_x4(void *row, const uint32_t (&matrix)[4], SIMT_HERE) {
    simt_stmatrix(row, 4, false, matrix[0], matrix[1], matrix[2], matrix[3], file, line);
}
static inline void stmatrix_x4_trans(void *row, const uint32_t (&matrix)[4], SIMT_HERE) {
    simt_stmatrix(row, 4, true, matrix[0], matrix[1], matrix[2], matrix[3], file, line);
}

namespace simt {
static inline void mma(const simt_collective *instruction, float (&C)[4], const uint32_t (&A)[4], uint32_t B0, uint32_t B1,
                       const char *file, int line) {
    simt_floats result = simt_mma(instruction, C[0], C[1], C[2], C[3], A[0], A[1], A[2], A[3], B0, B1, file, line);
    for (int i = 0; i < 4; i++) C[i] = result.x[i];
}
} // namespace simt

template <class T> static inline void mma_m16n8k16(float (&C)[4], const uint32_t (&A)[4], uint32_t B0, uint32_t B1, SIMT_HERE) {
    constexpr bool is_half = std::is_same_v<T, __half>;
    static_assert(is_half || std::is_same_v<T, __nv_bfloat16>, "elements are __half or __nv_bfloat16");
    simt::mma(is_half ? &simt_mma_half : &simt_mma_bfloat16, C, A, B0, B1, file, line);
}

static inline void mma_m16n8k8_tf32(float (&C)[4], const uint32_t (&A)[4], uint32_t B0, uint32_t B1, SIMT_HERE) {
    simt::mma(&simt_mma_tf32, C, A, B0, B1, file, line);
}

#endif
