#include "construct.h"
#include <cassert>
#include <cuda.h>
#include "../ring.cuh"
#include <thread>

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

// Calls of the driver's API that programs make beside the runtime's.

namespace driver_calls {
CONSTRUCT(driver_calls, "0 1 9 1 1 0 6") {
    CUdevice device;
    CUcontext context;
    int major = 0, count = 0;
    char name[64] = "";
    size_t bytes = 0;
    const char *text = nullptr;
    printf("%d ", (int)cuInit(0));
    cuDeviceGetCount(&count);
    cuDeviceGet(&device, 0);
    cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    cuDeviceGetName(name, sizeof name, device);
    cuDeviceTotalMem(&bytes, device);
    printf("%d %d %d %d ", count >= 1, major, name[0] != 0, bytes > 0);
    CUdeviceptr x;
    int in = 6, out = 0;
    cuDevicePrimaryCtxRetain(&context, device);
    cuCtxSetCurrent(context);
    cuMemAlloc(&x, sizeof in);
    cuMemcpyHtoD(x, &in, sizeof in);
    cuMemcpyDtoH(&out, x, sizeof out);
    cuGetErrorString(cuMemFree(x), &text);
    printf("%d %d\n", text == nullptr, out);
    return 0;
}
} // namespace driver_calls

namespace ring_of_peers {
/* Of as many devices as there are, three at most. */
CONSTRUCT(ring_of_peers, "1") {
    ring::rank ranks[ring::MOST_RANKS];
    int count = ring::prepare(ranks);
    ring::by_peer_copies(ranks, count);
    printf("%d\n", ring::error(ranks, count) < 1e-5);
    return 0;
}
} // namespace ring_of_peers

enum { N = 64, BYTES = N * sizeof(int) };
static __global__ void fill(int *to, int value) { to[threadIdx.x] = value; }
static __global__ void add(int *to, const int *from) { to[threadIdx.x] += from[threadIdx.x]; }

namespace stream_of_each_thread {
/* Each host thread has a stream and a part of the array, and waits for its own; the parent then has all. */
CONSTRUCT(stream_of_each_thread, "0 1 2 3") {
    return show<int>(4, [&](int *out) {
        int *parts;
        must(cudaMalloc(&parts, 4 * BYTES), "cudaMalloc");
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; t++)
            threads.emplace_back([=] {
                cudaStream_t stream;
                cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
                fill<<<1, N, 0, stream>>>(parts + t * N, t);
                cudaStreamSynchronize(stream);
                cudaStreamDestroy(stream);
            });
        for (std::thread &thread : threads) thread.join();
        cudaMemcpy2D(out, sizeof(int), parts, BYTES, sizeof(int), 4, cudaMemcpyDeviceToDevice);
    });
}
} // namespace stream_of_each_thread

namespace default_stream_of_each_thread {
CONSTRUCT(default_stream_of_each_thread, "4 4 4 4") {
    return show<int>(4, [&](int *out) {
        int *parts;
        must(cudaMalloc(&parts, 4 * BYTES), "cudaMalloc");
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; t++)
            threads.emplace_back([=] {
                for (int i = 0; i < 5; i++) fill<<<1, N, 0, cudaStreamPerThread>>>(parts + t * N, i);
            });
        for (std::thread &thread : threads) thread.join();
        cudaMemcpy2D(out, sizeof(int), parts, BYTES, sizeof(int), 4, cudaMemcpyDeviceToDevice); // waits for blocking streams
    });
}
} // namespace default_stream_of_each_thread

namespace handed_to_other_thread {
/* One thread waits for its stream, the next goes on with the data in another one. */
CONSTRUCT(handed_to_other_thread, "6 6 6 6") {
    return show<int>(4, [&](int *out) {
        int *data;
        must(cudaMalloc(&data, BYTES), "cudaMalloc");
        std::thread([=] {
            fill<<<1, N, 0, cudaStreamPerThread>>>(data, 3);
            cudaStreamSynchronize(cudaStreamPerThread);
        }).join();
        std::thread([=] {
            add<<<1, N, 0, cudaStreamPerThread>>>(data, data);
            cudaStreamSynchronize(cudaStreamPerThread);
        }).join();
        cudaMemcpyAsync(out, data, 16, cudaMemcpyDeviceToDevice, 0);
    });
}
} // namespace handed_to_other_thread

namespace argument_by_a_copy {
/* The launch's stream is its own, whatever its arguments do in another one. */
static int *filled(int value) {
    int host[N], *data;
    for (int &each : host) each = value;
    must(cudaMalloc(&data, BYTES), "cudaMalloc");
    must(cudaMemcpy(data, host, BYTES, cudaMemcpyHostToDevice), "cudaMemcpy");
    return data;
}
CONSTRUCT(argument_by_a_copy, "5 5 5 5") {
    return show<int>(4, [&](int *out) {
        cudaStream_t a, b;
        cudaEvent_t event;
        cudaStreamCreate(&a), cudaStreamCreate(&b), cudaEventCreate(&event);
        add<<<1, 4, 0, a>>>(out, filled(2));
        cudaEventRecord(event, a);
        cudaStreamWaitEvent(b, event, 0);
        add<<<1, 4, 0, b>>>(out, filled(3));
        cudaStreamSynchronize(b);
    });
}
} // namespace argument_by_a_copy

namespace chunks_in_streams {
/* As in many samples: page-locked memory in chunks, a stream for each, the host reads after its own stream. */
CONSTRUCT(chunks_in_streams, "0 0 1 1 2 2 3 3") {
    int *host, *device;
    cudaStream_t streams[4];
    must(cudaMallocHost(&host, 4 * BYTES), "cudaMallocHost");
    must(cudaMalloc(&device, 4 * BYTES), "cudaMalloc");
    for (cudaStream_t &stream : streams) cudaStreamCreate(&stream);
    for (int i = 0; i < 4 * N; i++) host[i] = i / N;
    for (int i = 0; i < 4; i++) {
        cudaMemcpyAsync(device + i * N, host + i * N, BYTES, cudaMemcpyHostToDevice, streams[i]);
        cudaMemsetAsync(device + i * N + 2, 0, BYTES - 8, streams[i]);
        cudaMemcpyAsync(host + i * N, device + i * N, BYTES, cudaMemcpyDeviceToHost, streams[i]);
    }
    for (int i = 0; i < 4; i++) {
        cudaStreamSynchronize(streams[i]);
        printf("%s%d %d", i > 0 ? " " : "", host[i * N], host[i * N + 1]);
    }
    printf("\n");
    return 0;
}
} // namespace chunks_in_streams

namespace counted_by_host_function {
static void count(void *data) { ++*(int *)data; }
CONSTRUCT(counted_by_host_function, "2 7") {
    int *calls, *data;
    cudaStream_t stream;
    must(cudaMallocHost(&calls, sizeof *calls), "cudaMallocHost");
    must(cudaMallocManaged(&data, BYTES), "cudaMallocManaged");
    cudaStreamCreate(&stream);
    *calls = 0;
    cudaLaunchHostFunc(stream, count, calls);
    fill<<<1, N, 0, stream>>>(data, 7);
    cudaLaunchHostFunc(stream, count, calls);
    cudaStreamSynchronize(stream);
    printf("%d %d\n", *calls, data[3]);
    return 0;
}
} // namespace counted_by_host_function
