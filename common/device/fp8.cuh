/* Tensor cores with 8-bit elements on Hopper: what chapter 16 adds to hopper.cuh. wgmma m64nNk32 computes C (64, N) = A (64, 32) B (32, N),
 * or C += A B, with fp32 sums of few bits (docs/simulated-device-inside.md). Both factors are K-major: 32 elements along k are 32
 * bytes of a row, as 16 elements of 16 bits are. A lane holds of C what it holds of a 16-bit product; of A it holds, with g = lane / 4
 * and t = lane % 4, four neighbours along k in each register:
 *
 *                  k
 *            4t..4t+3   16+4t..+3
 *        g  [   A0    |    A2    ]
 *      g+8  [   A1    |    A3    ]                                                                                              */
#ifndef FP8_CUH
#define FP8_CUH

#include <cuda_fp8.h>

#include "hopper.cuh"

#define FIRST_32                                                                                                       \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"                                             \
    ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define FIRST_64                                                                                                       \
    FIRST_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"                        \
             ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define C1(n) "+f"(C[n][0]), "+f"(C[n][1]), "+f"(C[n][2]), "+f"(C[n][3])
#define C8(n) C1(n), C1(n + 1), C1(n + 2), C1(n + 3), C1(n + 4), C1(n + 5), C1(n + 6), C1(n + 7)
#define C_64 C8(0)
#define C_128 C_64, C8(8)

/* A and B of one type, both from shared memory; and A of e4m3 from registers, with B of any type. */
#define WGMMA(T, type, N, registers, fragments, i0, i1, i2, i3, i4, i5)                                                \
    __device__ __forceinline__ void wgmma_fp8(T, float(&C)[N / 8][4], uint64_t A, uint64_t B, bool add) {              \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " i2 ", 0;\n"                                                   \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k32.f32." type "." type " {" registers "}, " i0 ", " i1   \
                     ", p, 1, 1;\n}"                                                                                   \
                     : fragments                                                                                       \
                     : "l"(A), "l"(B), "r"((int)add));                                                                 \
    }                                                                                                                  \
    __device__ __forceinline__ void wgmma_fp8(T, float(&C)[N / 8][4], const uint32_t(&A)[4], uint64_t B, bool add) {   \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " i5 ", 0;\n"                                                   \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k32.f32.e4m3." type " {" registers "}, {" i0 ", " i1      \
                     ", " i2 ", " i3 "}, " i4 ", p, 1, 1;\n}"                                                          \
                     : fragments                                                                                       \
                     : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "l"(B), "r"((int)add));                             \
    }
WGMMA(__nv_fp8_e4m3, "e4m3", 64, FIRST_32, C_64, "%32", "%33", "%34", "%35", "%36", "%37")
WGMMA(__nv_fp8_e5m2, "e5m2", 64, FIRST_32, C_64, "%32", "%33", "%34", "%35", "%36", "%37")
WGMMA(__nv_fp8_e4m3, "e4m3", 128, FIRST_64, C_128, "%64", "%65", "%66", "%67", "%68", "%69")
WGMMA(__nv_fp8_e5m2, "e5m2", 128, FIRST_64, C_128, "%64", "%65", "%66", "%67", "%68", "%69")
#undef WGMMA
#undef C_64
#undef C_128
#undef C1
#undef C8
#undef FIRST_32
#undef FIRST_64

/* The descriptor of a K-major tile whose rows are SPAN bytes, 64 or 128, in the TMA's swizzle of as many bytes: `tile` is a multiple of
 * 8 SPAN bytes, plus 32 k for the 32 columns from 32 k on. */
template <int SPAN> __device__ inline uint64_t bytes_tile(const void *tile) {
    static_assert(SPAN == 64 || SPAN == 128);
    uint64_t start = shared_address(tile) / 16 & 0x3fff, stride = 8 * SPAN / 16, swizzle = SPAN == 128 ? 1 : 2;
    return start | stride << 32 | swizzle << 62;
}

/* Four floats to e4m3 in one register, the first in the lowest byte: to nearest, ties to even; beyond 448 it is 448. */
__device__ inline uint32_t pack_e4m3(float a, float b, float c, float d) {
    uint32_t low = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E4M3);
    return low | (uint32_t)__nv_cvt_float2_to_fp8x2(make_float2(c, d), __NV_SATFINITE, __NV_E4M3) << 16;
}

/* The map of a (heads, rows, row_bytes) matrix of bytes, for boxes of SPAN bytes and box_rows rows of one head, in the swizzle of SPAN
 * bytes. row_bytes is a multiple of 16. */
template <int SPAN>
cudaError_t make_bytes_map(CUtensorMap *map, const void *matrix, int heads, int rows, int row_bytes, int box_rows) {
    void *function;
    cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
#else
    cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found);
#endif
    if (error != cudaSuccess) return error;
    if (found != cudaDriverEntryPointSuccess) return cudaErrorNotSupported;
    cuuint64_t sizes[] = {(cuuint64_t)row_bytes, (cuuint64_t)rows, (cuuint64_t)heads};
    cuuint64_t strides[] = {sizes[0], sizes[0] * sizes[1]}; // bytes from row to row, from head to head
    cuuint32_t box[] = {SPAN, (cuuint32_t)box_rows, 1}, every[] = {1, 1, 1};
    CUresult result = ((decltype(&cuTensorMapEncodeTiled))function)(
        map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, (void *)matrix, sizes, strides, box, every,
        CU_TENSOR_MAP_INTERLEAVE_NONE, SPAN == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

#endif
