// expect: 1
#include "construct.h"



int main() {
    cudaDeviceProp p;
    must(cudaGetDeviceProperties(&p, 0), "cudaGetDeviceProperties");
    printf("%d\n", p.warpSize == 32 && p.maxThreadsPerBlock == 1024 && p.sharedMemPerBlock == 49152 && p.totalGlobalMem > 0);
    return 0;
}
