#include <cuda_runtime.h>
#include <cstdio>
#include <vector>

void run_scale(float *y, const float *x, float a, int n);

int main() {
    const int n = 1000;
    std::vector<float> host(n, 2.0f);
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    cudaMemcpy(x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    run_scale(y, x, 3.0f, n);
    cudaMemcpy(host.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
    printf("%g\n", host[n - 1]);
    cudaFree(x);
    cudaFree(y);
    return host[n - 1] != 6.0f;
}
