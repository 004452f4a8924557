/* A small cuBLAS: matrix products and a few vector operations, on the CPU's BLAS. Matrices are column by column; pointers are
 * checked as cudaMemcpy() checks them. */
#pragma once
#define CUBLAS_API_H_ /* by these names of NVIDIA's samples know what is included */
#define CUBLAS_V2_H_

#include "cuda_runtime.h"

__BEGIN_DECLS

/* clang-format off */
typedef enum {
    CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1, CUBLAS_STATUS_ALLOC_FAILED = 3, CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8, CUBLAS_STATUS_MAPPING_ERROR = 11, CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14, CUBLAS_STATUS_NOT_SUPPORTED = 15, CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1 } cublasFillMode_t;
typedef enum { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 } cublasSideMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 } cublasDiagType_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum {
    CUBLAS_DEFAULT_MATH = 0, CUBLAS_TENSOR_OP_MATH = 1, CUBLAS_PEDANTIC_MATH = 2, CUBLAS_TF32_TENSOR_OP_MATH = 3
} cublasMath_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 } cublasGemmAlgo_t;
typedef enum { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_8I = 3, CUDA_R_32I = 10, CUDA_R_16BF = 14 } cudaDataType_t;
typedef cudaDataType_t cudaDataType, cublasDataType_t;
typedef enum {
    CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_PEDANTIC = 69, CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_32I = 72, CUBLAS_COMPUTE_32F_FAST_16F = 74, CUBLAS_COMPUTE_32F_FAST_16BF = 75, CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
/* clang-format on */
typedef struct cublasContext *cublasHandle_t;

cublasStatus_t cublasCreate(cublasHandle_t *handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes);
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode); /* the host's only */
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version);
const char *cublasGetStatusString(cublasStatus_t status);
const char *cublasGetStatusName(cublasStatus_t status);

/* The parameters with which functions of matrices begin. */
#define SIMT_PRODUCT cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n
cublasStatus_t cublasGemmEx(SIMT_PRODUCT, int k, const void *alpha, const void *_A, cudaDataType_t Atype, int lda,
                            const void *_B, cudaDataType_t Btype, int ldb, const void *beta, void *_C, cudaDataType_t Ctype,
                            int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
cublasStatus_t cublasGemmStridedBatchedEx(SIMT_PRODUCT, int k, const void *alpha, const void *_A, cudaDataType_t Atype, int lda,
                                          long long strideA, const void *_B, cudaDataType_t Btype, int ldb, long long strideB,
                                          const void *beta, void *_C, cudaDataType_t Ctype, int ldc, long long strideC,
                                          int batch, cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
/* A vector is a matrix of one row. */
#define SIMT_BLAS(letter, type, TYPE, COMPUTE)                                                                                 \
    cublasStatus_t cublas##letter##geam(SIMT_PRODUCT, const type *alpha, const type *_A, int lda, const type *beta,            \
                                        const type *_B, int ldb, type *_C, int ldc);                                           \
    cublasStatus_t cublas##letter##gemmBatched(SIMT_PRODUCT, int k, const type *alpha, const type *const _A[], int lda,        \
                                               const type *const _B[], int ldb, const type *beta, type *const _C[], int ldc,   \
                                               int batch);                                                                     \
    cublasStatus_t cublas##letter##dot(cublasHandle_t handle, int n, const type *x, int incx, const type *y, int incy,         \
                                       type *result);                                                                          \
    cublasStatus_t cublas##letter##nrm2(cublasHandle_t handle, int n, const type *x, int incx, type *result);                  \
    cublasStatus_t cublas##letter##asum(cublasHandle_t handle, int n, const type *x, int incx, type *result);                  \
    cublasStatus_t cublasI##letter##amax(cublasHandle_t handle, int n, const type *x, int incx, int *result);                  \
    static inline cublasStatus_t cublas##letter##gemm(SIMT_PRODUCT, int k, const type *alpha, const type *_A, int lda,         \
                                                      const type *_B, int ldb, const type *beta, type *_C, int ldc) {          \
        return cublasGemmEx(handle, transa, transb, m, n, k, alpha, _A, TYPE, lda, _B, TYPE, ldb, beta, _C, TYPE, ldc,         \
                            COMPUTE, CUBLAS_GEMM_DEFAULT);                                                                     \
    }                                                                                                                          \
    static inline cublasStatus_t cublas##letter##gemmStridedBatched(                                                           \
        SIMT_PRODUCT, int k, const type *alpha, const type *_A, int lda, long long strideA, const type *_B, int ldb,           \
        long long strideB, const type *beta, type *_C, int ldc, long long strideC, int batch) {                                \
        return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, _A, TYPE, lda, strideA, _B, TYPE, ldb,       \
                                          strideB, beta, _C, TYPE, ldc, strideC, batch, COMPUTE, CUBLAS_GEMM_DEFAULT);         \
    }                                                                                                                          \
    static inline cublasStatus_t cublas##letter##gemv(cublasHandle_t handle, cublasOperation_t trans, int m, int n,            \
                                                      const type *alpha, const type *_A, int lda, const type *x, int incx,     \
                                                      const type *beta, type *y, int incy) {                                   \
        return cublas##letter##gemm(handle, CUBLAS_OP_N, trans == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N, 1,                  \
                                    trans == CUBLAS_OP_N ? m : n, trans == CUBLAS_OP_N ? n : m, alpha, x, incx, _A, lda, beta, \
                                    y, incy);                                                                                  \
    }                                                                                                                          \
    static inline cublasStatus_t cublas##letter##axpy(cublasHandle_t handle, int n, const type *alpha, const type *x,          \
                                                      int incx, type *y, int incy) {                                           \
        type one = 1;                                                                                                          \
        return cublas##letter##geam(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, n, alpha, x, incx, &one, y, incy, y, incy);           \
    }                                                                                                                          \
    static inline cublasStatus_t cublas##letter##scal(cublasHandle_t handle, int n, const type *alpha, type *x, int incx) {    \
        type zero = 0;                                                                                                         \
        return cublas##letter##geam(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, n, alpha, x, incx, &zero, x, incx, x, incx);          \
    }                                                                                                                          \
    static inline cublasStatus_t cublas##letter##copy(cublasHandle_t handle, int n, const type *x, int incx, type *y,          \
                                                      int incy) {                                                              \
        type one = 1, zero = 0;                                                                                                \
        return cublas##letter##geam(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, n, &one, x, incx, &zero, x, incx, y, incy);           \
    }
#define cublasIsamax cublasISamax
#define cublasIdamax cublasIDamax
SIMT_BLAS(S, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
SIMT_BLAS(D, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
cublasStatus_t cublasSetVector(int n, int bytes, const void *x, int incx, void *y, int incy);
cublasStatus_t cublasGetVector(int n, int bytes, const void *x, int incx, void *y, int incy);
cublasStatus_t cublasSetMatrix(int rows, int cols, int bytes, const void *_A, int lda, void *_B, int ldb);
cublasStatus_t cublasGetMatrix(int rows, int cols, int bytes, const void *_A, int lda, void *_B, int ldb);

__END_DECLS
#ifdef __cplusplus
#include "cuda_bf16.h"
#include "cuda_fp16.h"
/* The same types under the names of older programs, and alpha and beta in half precision. */
static inline cublasStatus_t cublasGemmEx(SIMT_PRODUCT, int k, const void *alpha, const void *_A, cudaDataType_t Atype, int lda,
                                          const void *_B, cudaDataType_t Btype, int ldb, const void *beta, void *_C,
                                          cudaDataType_t Ctype, int ldc, cudaDataType_t compute, cublasGemmAlgo_t algorithm) {
    return cublasGemmEx(handle, transa, transb, m, n, k, alpha, _A, Atype, lda, _B, Btype, ldb, beta, _C, Ctype, ldc,
                        compute == CUDA_R_16F   ? CUBLAS_COMPUTE_16F
                        : compute == CUDA_R_64F ? CUBLAS_COMPUTE_64F
                                                : CUBLAS_COMPUTE_32F,
                        algorithm);
}
static inline cublasStatus_t cublasHgemm(SIMT_PRODUCT, int k, const __half *alpha, const __half *_A, int lda, const __half *_B,
                                         int ldb, const __half *beta, __half *_C, int ldc) {
    return cublasGemmEx(handle, transa, transb, m, n, k, alpha, _A, CUDA_R_16F, lda, _B, CUDA_R_16F, ldb, beta, _C, CUDA_R_16F,
                        ldc, CUBLAS_COMPUTE_16F, CUBLAS_GEMM_DEFAULT);
}
#endif
