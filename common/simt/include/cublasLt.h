/* Only what lets a program compile that makes a handle of cublasLt and never multiplies with it. */
#pragma once
#include "cublas_v2.h"
typedef struct cublasContext *cublasLtHandle_t;
static inline cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) { return cublasCreate(handle); }
static inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return cublasDestroy(handle); }
