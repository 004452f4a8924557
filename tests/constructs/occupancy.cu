// expect: 1
#include "construct.h"

__global__ void k(int *out) { out[threadIdx.x] = 1; }

int main() {
    int blocks = 0;
    must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 128, 0), "occupancy");
    printf("%d\n", blocks >= 1 && blocks <= 32);
    return 0;
}
