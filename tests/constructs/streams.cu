#include "construct.h"
#include <thread>

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
