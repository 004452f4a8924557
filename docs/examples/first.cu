// A first CUDA program: y = 2 x, one thread per element. One line is missing.
#include <cstdio>

__global__ void twice(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 2.0f * x[i];
}

int main() {
    const int n = 1000, threads = 256;
    float host[n], *x, *y; // x and y: addresses in device memory
    for (int i = 0; i < n; i++) host[i] = i;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    cudaMemcpy(x, host, n * sizeof(float), cudaMemcpyHostToDevice);
    twice<<<(n + threads - 1) / threads, threads>>>(x, y, n);
    cudaError_t launched = cudaGetLastError();
    cudaError_t copied = cudaMemcpy(host, y, n * sizeof(float), cudaMemcpyDeviceToHost); // waits for the kernel
    if (launched != cudaSuccess || copied != cudaSuccess) {
        fprintf(stderr, "%s\n", cudaGetErrorString(launched != cudaSuccess ? launched : copied));
        return 1;
    }
    printf("%g %g ... %g\n", host[0], host[1], host[n - 1]);
    cudaFree(x);
    cudaFree(y);
}
