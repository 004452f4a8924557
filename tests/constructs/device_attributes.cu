// expect: 1
#include "construct.h"

static int attribute(cudaDeviceAttr name) {
    int value = -1;
    must(cudaDeviceGetAttribute(&value, name, 0), "cudaDeviceGetAttribute");
    return value;
}

int main() {
    cudaDeviceProp p;
    must(cudaGetDeviceProperties(&p, 0), "cudaGetDeviceProperties");
    printf("%d\n", attribute(cudaDevAttrWarpSize) == 32 && attribute(cudaDevAttrMaxBlockDimZ) == 64 && attribute(cudaDevAttrIntegrated) == 0 &&
                       attribute(cudaDevAttrTotalConstantMemory) == 65536 && attribute(cudaDevAttrCooperativeLaunch) == 1 &&
                       p.cooperativeLaunch == 1 && attribute(cudaDevAttrClockRate) > 0 && attribute(cudaDevAttrMemoryClockRate) > 0 &&
                       attribute(cudaDevAttrGlobalMemoryBusWidth) > 0 && attribute(cudaDevAttrGpuOverlap) == 1 && attribute(cudaDevAttrMultiProcessorCount) == p.multiProcessorCount);
    return 0;
}
