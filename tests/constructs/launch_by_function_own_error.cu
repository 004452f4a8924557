// expect: cudaErrorInvalidMemcpyDirection cudaSuccess cudaErrorInvalidMemcpyDirection cudaErrorInvalidConfiguration 7
#include "construct.h"

__global__ void k(int *out) { *out = 7; }

/* cudaLaunchKernel() returns the error of its own launch: an earlier call's stays, and the launch's own can be asked for. */
int main() {
    int *out, host = 0;
    must(cudaMalloc(&out, sizeof *out), "cudaMalloc");
    void *arguments[] = {&out};
    printf("%s ", cudaGetErrorName(cudaMemcpy(out, &host, sizeof host, (cudaMemcpyKind)9)));
    printf("%s ", cudaGetErrorName(cudaLaunchKernel(k, dim3(1), dim3(1), arguments, 0, 0)));
    printf("%s ", cudaGetErrorName(cudaGetLastError()));
    if (cudaLaunchKernel(k, dim3(1), dim3(2048), arguments, 0, 0) == cudaSuccess) return 1;
    if (cudaLaunchKernel(k, dim3(1), dim3(1), arguments, 0, 0) != cudaSuccess) return 1; /* the program has already checked the earlier error */
    printf("%s ", cudaGetErrorName(cudaGetLastError()));
    must(cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost), "cudaMemcpy");
    printf("%d\n", host);
    return 0;
}
