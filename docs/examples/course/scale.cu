// y = a x: two files, as a course's assignment has them.
#include <cuda_runtime.h>

__global__ void scale(float *y, const float *x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}

void run_scale(float *y, const float *x, float a, int n) { scale<<<(n + 255) / 256, 256>>>(y, x, a, n); }
