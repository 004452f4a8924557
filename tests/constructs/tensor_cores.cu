#include "construct.h"
#include <cuda_fp16.h>
#include <mma.h>

namespace wmma_product {
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
CONSTRUCT(wmma_product, "16 16 16 16") { return show<float>(4, [&](float *out) { k<<<1, 32>>>(out); }); }
} // namespace wmma_product

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
namespace wmma_tf32 {
using namespace nvcuda;

/* C = A B with B of 2 on its diagonal, each matrix in both orders. */
template <class A_layout, class B_layout, wmma::layout_t C_layout> __global__ void k(float *out, const float *A, const float *B) {
    __shared__ __align__(32) float C[256];
    constexpr bool A_rows = std::is_same_v<A_layout, wmma::row_major>, B_rows = std::is_same_v<B_layout, wmma::row_major>;
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, A_layout> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, B_layout> b;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> c;
    wmma::fill_fragment(c, 0.5f);
    wmma::load_matrix_sync(a, A, A_rows ? 8 : 16);
    wmma::load_matrix_sync(b, B, B_rows ? 16 : 8);
    for (int i = 0; i < a.num_elements; i++) a.x[i] = wmma::__float_to_tf32(a.x[i]);
    for (int i = 0; i < b.num_elements; i++) b.x[i] = wmma::__float_to_tf32(b.x[i]);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(C, c, 16, C_layout);
    __syncwarp();
    if (threadIdx.x > 0) return;
    float sum = 0;
    for (int row = 0; row < 16; row++)
        for (int col = 0; col < 16; col++) {
            float wanted = 0.5f + (col < 8 ? 2 * A[A_rows ? row * 8 + col : col * 16 + row] : 0);
            sum += C[C_layout == wmma::mem_row_major ? row * 16 + col : col * 16 + row] == wanted;
        }
    *out = sum;
}
CONSTRUCT(wmma_tf32, "256 256 256") {
    float *A, *rows, *cols, h[128], r[128] = {}, l[128] = {};
    for (int i = 0; i < 128; i++) h[i] = i + 1;
    for (int i = 0; i < 8; i++) r[i * 16 + i] = l[i * 8 + i] = 2;
    must(cudaMalloc(&A, 512), "A"), must(cudaMalloc(&rows, 512), "rows"), must(cudaMalloc(&cols, 512), "cols");
    must(cudaMemcpy(A, h, 512, cudaMemcpyHostToDevice), "A"), must(cudaMemcpy(rows, r, 512, cudaMemcpyHostToDevice), "rows");
    must(cudaMemcpy(cols, l, 512, cudaMemcpyHostToDevice), "cols");
    return show<float>(3, [&](float *out) {
        k<wmma::row_major, wmma::col_major, wmma::mem_row_major><<<1, 32>>>(out, A, cols);
        k<wmma::col_major, wmma::row_major, wmma::mem_col_major><<<1, 32>>>(out + 1, A, rows);
        k<wmma::row_major, wmma::row_major, wmma::mem_row_major><<<1, 32>>>(out + 2, A, rows);
    });
}
} // namespace wmma_tf32
#endif
