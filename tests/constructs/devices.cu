#include "construct.h"
#include <cassert>

namespace assert_that_holds {
__global__ void k(int *out) {
    assert(threadIdx.x < 4);
    out[threadIdx.x] = 1;
}
CONSTRUCT(assert_that_holds, "1 1 1 1") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace assert_that_holds

namespace clock64_grows {
__global__ void k(int *out) {
    long long before = clock64();
    out[threadIdx.x] = clock64() >= before;
}
CONSTRUCT(clock64_grows, "1 1 1 1") { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace clock64_grows

namespace device_attributes {
static int attribute(cudaDeviceAttr name) {
    int value = -1;
    must(cudaDeviceGetAttribute(&value, name, 0), "cudaDeviceGetAttribute");
    return value;
}
CONSTRUCT(device_attributes, "1") {
    cudaDeviceProp p;
    must(cudaGetDeviceProperties(&p, 0), "cudaGetDeviceProperties");
    printf("%d\n", attribute(cudaDevAttrWarpSize) == 32 && attribute(cudaDevAttrMaxBlockDimZ) == 64 && attribute(cudaDevAttrIntegrated) == 0 &&
                       attribute(cudaDevAttrTotalConstantMemory) == 65536 && attribute(cudaDevAttrCooperativeLaunch) == 1 &&
                       p.cooperativeLaunch == 1 && attribute(cudaDevAttrClockRate) > 0 && attribute(cudaDevAttrMemoryClockRate) > 0 &&
                       attribute(cudaDevAttrGlobalMemoryBusWidth) > 0 && attribute(cudaDevAttrGpuOverlap) == 1 && attribute(cudaDevAttrMultiProcessorCount) == p.multiProcessorCount);
    return 0;
}
} // namespace device_attributes

namespace device_properties {
CONSTRUCT(device_properties, "1") {
    cudaDeviceProp p;
    must(cudaGetDeviceProperties(&p, 0), "cudaGetDeviceProperties");
    printf("%d\n", p.warpSize == 32 && p.maxThreadsPerBlock == 1024 && p.sharedMemPerBlock == 49152 && p.totalGlobalMem > 0);
    return 0;
}
} // namespace device_properties

namespace events_in_order {
__global__ void k(int *out) { out[threadIdx.x] = 1; }
CONSTRUCT(events_in_order, "1 1 1 1") { return show<int>(4, [&](int *out) { cudaEvent_t a, b; float ms = -1; cudaEventCreate(&a); cudaEventCreateWithFlags(&b, cudaEventDefault); cudaEventRecord(a); k<<<1, 4>>>(out); cudaEventRecord(b, 0); cudaEventSynchronize(b); cudaEventElapsedTime(&ms, a, b); if (ms < 0) printf("no time "); cudaEventDestroy(a); cudaEventDestroy(b); }); }
} // namespace events_in_order

namespace occupancy {
__global__ void k(int *out) { out[threadIdx.x] = 1; }
CONSTRUCT(occupancy, "1") {
    int blocks = 0;
    must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 128, 0), "occupancy");
    printf("%d\n", blocks >= 1 && blocks <= 32);
    return 0;
}
} // namespace occupancy

namespace peers_of_one_device {
/* A device is no peer of its own, but a copy between "peers" may stay on one. */
CONSTRUCT(peers_of_one_device, "0 cudaErrorPeerAccessUnsupported cudaErrorPeerAccessNotEnabled cudaErrorInvalidDevice cudaSuccess 8") {
    int can = 7, host = 8, *a, *b;
    must(cudaDeviceCanAccessPeer(&can, 0, 0), "cudaDeviceCanAccessPeer");
    printf("%d %s ", can, cudaGetErrorName(cudaDeviceEnablePeerAccess(0, 0)));
    printf("%s ", cudaGetErrorName(cudaDeviceDisablePeerAccess(0)));
    printf("%s ", cudaGetErrorName(cudaDeviceCanAccessPeer(&can, 0, 64)));
    must(cudaMalloc(&a, sizeof host), "cudaMalloc");
    must(cudaMalloc(&b, sizeof host), "cudaMalloc");
    must(cudaMemcpy(a, &host, sizeof host, cudaMemcpyHostToDevice), "cudaMemcpy");
    printf("%s ", cudaGetErrorName(cudaMemcpyPeer(b, 0, a, 0, sizeof host)));
    host = 0;
    must(cudaMemcpy(&host, b, sizeof host, cudaMemcpyDeviceToHost), "cudaMemcpy");
    printf("%d\n", host);
    return 0;
}
} // namespace peers_of_one_device

namespace printf_in_kernel {
__global__ void k() {
    if (blockIdx.x == 1 && threadIdx.x == 0) printf("thread %d of block %d\n", threadIdx.x, blockIdx.x);
}
CONSTRUCT(printf_in_kernel, "thread 0 of block 1") {
    k<<<2, 4>>>();
    must(cudaDeviceSynchronize(), "k");
    return 0;
}
} // namespace printf_in_kernel

namespace number_of_the_multiprocessor {
__global__ void k(int *out) {
    unsigned own, all;
    asm volatile("mov.u32 %0, %%smid;\n\tmov.u32 %1, %%nsmid;" : "=r"(own), "=r"(all));
    atomicAdd(out, own < all);
}
CONSTRUCT(number_of_the_multiprocessor, "20") {
    return show<int>(1, [&](int *out) { k<<<20, 1>>>(out); });
}
} // namespace number_of_the_multiprocessor
