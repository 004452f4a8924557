/* The small cuBLAS of include/cublas_v2.h: matrices come to the host's memory, BLAS computes, results go back. So pointers
 * are checked by cudaMemcpy2D(), and what a kernel never wrote counts as the numbers that it holds. */
#include "api.h"
#include "cublas_v2.h"

#include <math.h>

extern void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *, const int *,
                   const float *, const int *, const float *, float *, const int *);
extern void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
                   const int *, const double *, const int *, const double *, double *, const int *);

cublasStatus_t cublasCreate(cublasHandle_t *handle) {
    *handle = malloc(1);
    return *handle != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
    return mode == CUBLAS_POINTER_MODE_HOST ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version) {
    *version = 0;
    return CUBLAS_STATUS_SUCCESS;
}
const char *cublasGetStatusName(cublasStatus_t status) {
    switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_MAPPING_ERROR: return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "CUBLAS_STATUS_EXECUTION_FAILED";
    }
}
const char *cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

/* ---- elements --------------------------------------------------------------------------------------------------------- */

static size_t bytes_of(cudaDataType_t type) {
    switch (type) {
    case CUDA_R_32F: return 4;
    case CUDA_R_64F: return 8;
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    default: return 0;
    }
}

static double load(const void *from, cudaDataType_t type, size_t i) {
    switch (type) {
    case CUDA_R_32F: return ((const float *)from)[i];
    case CUDA_R_16F: return simt_half_to_float(((const uint16_t *)from)[i]);
    case CUDA_R_16BF: return simt_bfloat16_to_float(((const uint16_t *)from)[i]);
    default: return ((const double *)from)[i];
    }
}

static cublasStatus_t copy(const void *from, int from_ld, void *to, int to_ld, int rows, int cols, int bytes,
                           enum cudaMemcpyKind kind) {
    size_t size = (size_t)bytes;
    cudaDeviceSynchronize(); /* whichever stream the handle has: what this library does in streams is not followed */
    cudaError_t error =
        cudaMemcpy2D(to, (size_t)to_ld * size, from, (size_t)from_ld * size, (size_t)rows * size, (size_t)cols, kind);
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

/* A matrix of the device in the host's memory, column by column without gaps; NULL when the device refuses. */
static void *fetch(const void *matrix, int rows, int cols, int ld, size_t bytes) {
    void *to = malloc((size_t)rows * (size_t)cols * bytes + 1);
    if (to == NULL || copy(matrix, ld, to, rows, rows, cols, (int)bytes, cudaMemcpyDeviceToHost) == CUBLAS_STATUS_SUCCESS)
        return to;
    free(to);
    return NULL;
}

/* The same with elements as float, or as they are when they are float or double. */
static void *fetch_wide(const void *matrix, int rows, int cols, int ld, cudaDataType_t type) {
    void *copy = fetch(matrix, rows, cols, ld, bytes_of(type));
    if (copy == NULL || bytes_of(type) >= 4) return copy;
    size_t count = (size_t)rows * (size_t)cols;
    float *wide = malloc(count * sizeof *wide + 1);
    for (size_t i = 0; wide != NULL && i < count; i++) wide[i] = (float)load(copy, type, i);
    free(copy);
    return wide;
}

/* ---- products ---------------------------------------------------------------------------------------------------------- */

cublasStatus_t cublasGemmEx(SIMT_PRODUCT, int k, const void *alpha, const void *A, cudaDataType_t Atype, int lda, const void *B,
                            cudaDataType_t Btype, int ldb, const void *beta, void *C, cudaDataType_t Ctype, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    bool is_double = Atype == CUDA_R_64F;
    if (bytes_of(Atype) == 0 || bytes_of(Btype) == 0 || bytes_of(Ctype) == 0 || is_double != (Btype == CUDA_R_64F) ||
        is_double != (Ctype == CUDA_R_64F))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    int a_rows = transa == CUBLAS_OP_N ? m : k, b_rows = transb == CUBLAS_OP_N ? k : n;
    if (m < 0 || n < 0 || k < 0 || lda < (a_rows > 1 ? a_rows : 1) || ldb < (b_rows > 1 ? b_rows : 1) || ldc < (m > 1 ? m : 1))
        return CUBLAS_STATUS_INVALID_VALUE;
    cudaDataType_t scalar_type = is_double ? CUDA_R_64F : compute == CUBLAS_COMPUTE_16F ? CUDA_R_16F : CUDA_R_32F;
    double a = load(alpha, scalar_type, 0), b = load(beta, scalar_type, 0);
    void *wide_a = fetch_wide(A, a_rows, transa == CUBLAS_OP_N ? k : m, lda, Atype);
    void *wide_b = fetch_wide(B, b_rows, transb == CUBLAS_OP_N ? n : k, ldb, Btype);
    size_t count = (size_t)m * (size_t)n;
    void *wide_c =
        b != 0.0 ? fetch_wide(C, m, n, ldc, Ctype) : calloc(count + 1, is_double ? 8 : 4); /* with 0 it is not read */
    cublasStatus_t status = CUBLAS_STATUS_MAPPING_ERROR;
    if (wide_a != NULL && wide_b != NULL && wide_c != NULL) {
        const char *ta = transa == CUBLAS_OP_N ? "N" : "T", *tb = transb == CUBLAS_OP_N ? "N" : "T";
        int wide_lda = a_rows > 0 ? a_rows : 1, wide_ldb = b_rows > 0 ? b_rows : 1, wide_ldc = m > 0 ? m : 1;
        float af = (float)a, bf = (float)b;
        if (is_double)
            dgemm_(ta, tb, &m, &n, &k, &a, wide_a, &wide_lda, wide_b, &wide_ldb, &b, wide_c, &wide_ldc);
        else
            sgemm_(ta, tb, &m, &n, &k, &af, wide_a, &wide_lda, wide_b, &wide_ldb, &bf, wide_c, &wide_ldc);
        if (bytes_of(Ctype) < 4) /* in place: each narrow element ends before the wide one that comes next */
            for (size_t i = 0; i < count; i++) {
                float x = ((float *)wide_c)[i];
                ((uint16_t *)wide_c)[i] = Ctype == CUDA_R_16F ? simt_half_from_float(x) : simt_bfloat16_from_float(x);
            }
        status = copy(wide_c, m, C, ldc, m, n, (int)bytes_of(Ctype), cudaMemcpyHostToDevice);
    }
    free(wide_a), free(wide_b), free(wide_c);
    return status;
}

cublasStatus_t cublasGemmStridedBatchedEx(SIMT_PRODUCT, int k, const void *alpha, const void *A, cudaDataType_t Atype, int lda,
                                          long long strideA, const void *B, cudaDataType_t Btype, int ldb, long long strideB,
                                          const void *beta, void *C, cudaDataType_t Ctype, int ldc, long long strideC,
                                          int batch, cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    for (long long i = 0; i < batch && status == CUBLAS_STATUS_SUCCESS; i++)
        status =
            cublasGemmEx(handle, transa, transb, m, n, k, alpha, (const char *)A + i * strideA * (long long)bytes_of(Atype),
                         Atype, lda, (const char *)B + i * strideB * (long long)bytes_of(Btype), Btype, ldb, beta,
                         (char *)C + i * strideC * (long long)bytes_of(Ctype), Ctype, ldc, compute, algorithm);
    return status;
}

#define BLAS(letter, type)                                                                                                     \
    cublasStatus_t cublas##letter##gemmBatched(SIMT_PRODUCT, int k, const type *alpha, const type *const A[], int lda,         \
                                               const type *const B[], int ldb, const type *beta, type *const C[], int ldc,     \
                                               int batch) {                                                                    \
        cublasStatus_t status = CUBLAS_STATUS_SUCCESS;                                                                         \
        for (int i = 0; i < batch && status == CUBLAS_STATUS_SUCCESS; i++) {                                                   \
            const type *a, *b;                                                                                                 \
            type *c;                                                                                                           \
            if (cudaMemcpy(&a, A + i, sizeof a, cudaMemcpyDefault) != cudaSuccess ||                                           \
                cudaMemcpy(&b, B + i, sizeof b, cudaMemcpyDefault) != cudaSuccess ||                                           \
                cudaMemcpy(&c, C + i, sizeof c, cudaMemcpyDefault) != cudaSuccess)                                             \
                return CUBLAS_STATUS_MAPPING_ERROR;                                                                            \
            status = cublas##letter##gemm(handle, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);               \
        }                                                                                                                      \
        return status;                                                                                                         \
    }                                                                                                                          \
    cublasStatus_t cublas##letter##geam(SIMT_PRODUCT, const type *alpha, const type *A, int lda, const type *beta,             \
                                        const type *B, int ldb, type *C, int ldc) {                                            \
        bool ta = transa != CUBLAS_OP_N, tb = transb != CUBLAS_OP_N;                                                           \
        if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;                                                              \
        if (m < 0 || n < 0 || lda < 1 || ldb < 1 || ldc < 1) return CUBLAS_STATUS_INVALID_VALUE;                               \
        type *a = *alpha != 0 ? fetch(A, ta ? n : m, ta ? m : n, lda, sizeof(type)) : NULL;                                    \
        type *b = *beta != 0 ? fetch(B, tb ? n : m, tb ? m : n, ldb, sizeof(type)) : NULL;                                     \
        type *c = malloc((size_t)m * (size_t)n * sizeof *c + 1);                                                               \
        cublasStatus_t status = CUBLAS_STATUS_MAPPING_ERROR;                                                                   \
        if (c != NULL && (a != NULL || *alpha == 0) && (b != NULL || *beta == 0)) {                                            \
            for (size_t j = 0; j < (size_t)n; j++)                                                                             \
                for (size_t i = 0; i < (size_t)m; i++)                                                                         \
                    c[j * (size_t)m + i] = (a != NULL ? *alpha * a[ta ? i * (size_t)n + j : j * (size_t)m + i] : 0) +          \
                                           (b != NULL ? *beta * b[tb ? i * (size_t)n + j : j * (size_t)m + i] : 0);            \
            status = copy(c, m, C, ldc, m, n, sizeof(type), cudaMemcpyHostToDevice);                                           \
        }                                                                                                                      \
        free(a), free(b), free(c);                                                                                             \
        return status;                                                                                                         \
    }                                                                                                                          \
    SUM(cublas##letter##nrm2, type, type, sum += (double)x[i] * x[i], sqrt(sum))                                               \
    SUM(cublas##letter##asum, type, type, sum += fabs(x[i]), sum)                                                              \
    SUM(cublasI##letter##amax, type, int, if (fabs(x[i]) > sum)(sum = fabs(x[i]), at = i + 1), at)                             \
    cublasStatus_t cublas##letter##dot(cublasHandle_t handle, int n, const type *x, int incx, const type *y, int incy,         \
                                       type *result) {                                                                         \
        if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;                                                              \
        type *a = fetch(x, 1, n, incx, sizeof(type)), *b = fetch(y, 1, n, incy, sizeof(type));                                 \
        double sum = 0.0;                                                                                                      \
        for (int i = 0; a != NULL && b != NULL && i < n; i++) sum += (double)a[i] * b[i];                                      \
        cublasStatus_t status = a != NULL && b != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;                  \
        *result = (type)sum;                                                                                                   \
        free(a), free(b);                                                                                                      \
        return status;                                                                                                         \
    }
#define SUM(name, type, result_type, step, value)                                                                              \
    cublasStatus_t name(cublasHandle_t handle, int n, const type *vector, int inc, result_type *result) {                      \
        if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;                                                              \
        type *x = fetch(vector, 1, n, inc, sizeof(type));                                                                      \
        if (x == NULL) return CUBLAS_STATUS_MAPPING_ERROR;                                                                     \
        double sum = 0.0;                                                                                                      \
        int at = n > 0;                                                                                                        \
        for (int i = 0; i < n; i++) step;                                                                                      \
        (void)at;                                                                                                              \
        *result = (result_type)(value);                                                                                        \
        free(x);                                                                                                               \
        return CUBLAS_STATUS_SUCCESS;                                                                                          \
    }
BLAS(S, float)
BLAS(D, double)

/* ---- copies -------------------------------------------------------------------------------------------------------------- */

cublasStatus_t cublasSetVector(int n, int bytes, const void *x, int incx, void *y, int incy) {
    return copy(x, incx, y, incy, 1, n, bytes, cudaMemcpyHostToDevice);
}
cublasStatus_t cublasGetVector(int n, int bytes, const void *x, int incx, void *y, int incy) {
    return copy(x, incx, y, incy, 1, n, bytes, cudaMemcpyDeviceToHost);
}
cublasStatus_t cublasSetMatrix(int rows, int cols, int bytes, const void *A, int lda, void *B, int ldb) {
    return copy(A, lda, B, ldb, rows, cols, bytes, cudaMemcpyHostToDevice);
}
cublasStatus_t cublasGetMatrix(int rows, int cols, int bytes, const void *A, int lda, void *B, int ldb) {
    return copy(A, lda, B, ldb, rows, cols, bytes, cudaMemcpyDeviceToHost);
}
