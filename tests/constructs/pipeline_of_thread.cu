// expect: 1 4 9 16 25 36 49 64
#include "construct.h"

#include <cuda/pipeline>
__global__ void k(int *out, const int *in) { // each thread copies for itself, one item ahead
    __shared__ int tile[2];
    cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
    const auto one = cuda::aligned_size_t<alignof(int)>(sizeof(int));
    pipe.producer_acquire();
    cuda::memcpy_async(&tile[0], &in[0], one, pipe);
    pipe.producer_commit();
    for (int i = 0; i < 8; i++) {
        if (i + 1 < 8) {
            pipe.producer_acquire();
            cuda::memcpy_async(&tile[(i + 1) % 2], &in[i + 1], one, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        out[i] = tile[i % 2] * tile[i % 2];
        pipe.consumer_release();
    }
}

int main() { return show<int>(8, [&](int *out) { int h[8] = {1, 2, 3, 4, 5, 6, 7, 8}, *in; cudaMalloc(&in, 32); cudaMemcpy(in, h, 32, cudaMemcpyHostToDevice); k<<<1, 1>>>(out, in); cudaFree(in); }); }
