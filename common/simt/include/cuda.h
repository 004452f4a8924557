/* Of the driver API only types: programs include this header for CUDA_VERSION and CUresult more often than to call it. */
#ifndef SIMT_CUDA_H
#define SIMT_CUDA_H
#include "cuda_runtime.h"
#define CUDA_VERSION CUDART_VERSION
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef cudaStream_t CUstream;
typedef cudaEvent_t CUevent;
typedef unsigned long long CUdeviceptr;
typedef enum cudaError_enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_OUT_OF_MEMORY = 2 } CUresult;
#endif
