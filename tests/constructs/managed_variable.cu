// expect: 11
#include "construct.h"

__device__ __managed__ int shared_by_both;
__global__ void k() { shared_by_both += 1; }

int main() {
    shared_by_both = 10;
    k<<<1, 1>>>();
    must(cudaDeviceSynchronize(), "k");
    printf("%d\n", shared_by_both);
    return 0;
}
