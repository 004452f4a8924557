// expect: 16 16 16 16
#include "construct.h"
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

__global__ void k(float *out) {
    __shared__ __align__(32) half A[256], B[256];
    __shared__ __align__(32) float C[256];
    for (int i = threadIdx.x; i < 256; i += 32) A[i] = B[i] = __float2half(1.0f);
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 0.0f);
    wmma::load_matrix_sync(a, A, 16);
    wmma::load_matrix_sync(b, B, 16);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(C, c, 16, wmma::mem_row_major);
    __syncwarp();
    if (threadIdx.x < 4) out[threadIdx.x] = C[threadIdx.x];
}

int main() { return show<float>(4, [&](float *out) { k<<<1, 32>>>(out); }); }
