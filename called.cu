#include "called.cuh"
__global__ void k(float *x) { x[threadIdx.x] = 1; 
    float a = of_header(x);
    x[threadIdx.x] = a + of_header(x); }
int main() {
    float *x;
    cudaMalloc(&x, 128);
    k<<<1, 32>>>(x);
    return cudaDeviceSynchronize() != cudaSuccess;
}
