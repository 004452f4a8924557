// expect: thread 0 of block 1
#include "construct.h"

__global__ void k() {
    if (blockIdx.x == 1 && threadIdx.x == 0) printf("thread %d of block %d\n", threadIdx.x, blockIdx.x);
}

int main() {
    k<<<2, 4>>>();
    must(cudaDeviceSynchronize(), "k");
    return 0;
}
