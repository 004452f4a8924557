// expect: 20 20 20 20
#include "construct.h"
#include <thread>

__global__ void add(int *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i]++;
}

/* A stream, an array and 20 launches of its own; *least is 20 if all went well. */
static void work(int *least) {
    const int n = 3000;
    int *x = nullptr;
    cudaStream_t stream;
    std::vector<int> host(n);
    must(cudaStreamCreate(&stream), "cudaStreamCreate");
    must(cudaMalloc(&x, n * sizeof(int)), "cudaMalloc");
    must(cudaMemsetAsync(x, 0, n * sizeof(int), stream), "cudaMemsetAsync");
    for (int i = 0; i < 20; i++) add<<<(n + 255) / 256, 256, 0, stream>>>(x, n);
    must(cudaGetLastError(), "launch");
    must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    must(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost), "cudaMemcpy");
    must(cudaFree(x), "cudaFree");
    *least = host[0];
    for (int value : host)
        if (value != 20) *least = value;
}

int main() {
    int least[4] = {};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) threads.emplace_back(work, &least[i]);
    for (std::thread &thread : threads) thread.join();
    printf("%d %d %d %d\n", least[0], least[1], least[2], least[3]);
}
