// A tile that the next round of the loop overwrites while others still read it.
#include <cstdio>

__global__ void row_sums(const float *x, float *sums, int columns) {
    __shared__ float tile[64];
    float sum = 0.0f;
    for (int first = 0; first < columns; first += 64) {
        tile[threadIdx.x] = x[first + threadIdx.x];
        __syncthreads();
        for (int i = 0; i < 64; i++) sum += tile[i];
    }
    sums[threadIdx.x] = sum;
}

int main() {
    float *x, *sums;
    cudaMalloc(&x, 256 * sizeof(float));
    cudaMalloc(&sums, 64 * sizeof(float));
    cudaMemset(x, 0, 256 * sizeof(float));
    row_sums<<<1, 64>>>(x, sums, 256);
    cudaFree(x);
    cudaFree(sums);
}
