// expect: 2 4 6 8
#include "construct.h"

__global__ void k(int *x) { x[threadIdx.x] *= 2; }

int main() {
    int *x;
    must(cudaMallocManaged(&x, 16), "cudaMallocManaged");
    for (int i = 0; i < 4; i++) x[i] = i + 1;
    k<<<1, 4>>>(x);
    must(cudaDeviceSynchronize(), "k");
    printf("%d %d %d %d\n", x[0], x[1], x[2], x[3]);
    cudaFree(x);
    return 0;
}
