// A grid rounded up to whole blocks, and no bounds check.
#include <cstdio>

__global__ void scale(float *x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] *= factor;
}

int main() {
    const int n = 1000, threads = 256;
    float *x;
    cudaMalloc(&x, n * sizeof(float));
    cudaMemset(x, 0, n * sizeof(float));
    scale<<<(n + threads - 1) / threads, threads>>>(x, 2.0f, n);
    cudaFree(x);
}
