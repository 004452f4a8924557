// An output that the kernel adds to, and that nobody set to zero.
#include <cstdio>

__global__ void add_rows(const float *x, float *total, int rows) {
    for (int row = 0; row < rows; row++) total[threadIdx.x] += x[row * blockDim.x + threadIdx.x];
}

int main() {
    float *x, *total;
    cudaMalloc(&x, 4 * 64 * sizeof(float));
    cudaMalloc(&total, 64 * sizeof(float));
    cudaMemset(x, 0, 4 * 64 * sizeof(float));
    add_rows<<<1, 64>>>(x, total, 4);
    cudaFree(x);
    cudaFree(total);
}
