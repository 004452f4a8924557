/* What the programs of this folder share. Each tries one construct of CUDA C++, prints what its kernel left in an array, and
 * says in its first line what that must be: on the simulated device (run.sh) and on a card. */
#ifndef CONSTRUCT_H
#define CONSTRUCT_H

#include <cstdio>
#include <cstdlib>
#include <vector>

static inline void must(cudaError_t error, const char *what) {
    if (error == cudaSuccess) return;
    printf("%s: %s\n", what, cudaGetErrorName(error));
    exit(1);
}

/* Give `launch` an array of `count` zeros on the device and print what it holds afterwards. */
template <typename T, typename Launch> static int show(int count, Launch launch) {
    T *out = nullptr;
    std::vector<T> host(count);
    must(cudaMalloc(&out, count * sizeof(T)), "cudaMalloc");
    must(cudaMemset(out, 0, count * sizeof(T)), "cudaMemset");
    launch(out);
    must(cudaGetLastError(), "launch");
    must(cudaMemcpy(host.data(), out, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (int i = 0; i < count; i++) printf("%s%.9g", i > 0 ? " " : "", (double)host[i]);
    printf("\n");
    must(cudaFree(out), "cudaFree");
    return 0;
}

#endif
