// expect: 7
#include "construct.h"

__device__ int result;
__global__ void k() { result = 7; }

int main() {
    int host = 0;
    k<<<1, 1>>>();
    must(cudaMemcpyFromSymbol(&host, result, sizeof host), "cudaMemcpyFromSymbol");
    printf("%d\n", host);
    return 0;
}
