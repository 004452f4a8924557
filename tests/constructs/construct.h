/* What the programs of this folder share. A program tries the constructs of CUDA C++ of one theme. Each construct prints what
 * its kernel left in an array, and says what that must be, on the simulated device (run.sh) and on a card. Without an argument
 * a program lists its constructs; with the name of one it runs that one, so that no fault reaches another. */
#ifndef CONSTRUCT_H
#define CONSTRUCT_H

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

struct construct {
    const char *name, *expected;
    int (*run)();
};
static std::vector<construct> &constructs() {
    static std::vector<construct> all;
    return all;
}

/* In a namespace of its own, CONSTRUCT(NAME, "expected output") { the body of its main } */
#define CONSTRUCT(NAME, EXPECTED)                                                                                         \
    static int run();                                                                                                     \
    static const bool is_listed = (constructs().push_back({#NAME, EXPECTED, run}), true);                                 \
    static int run()

int main(int count, char **arguments) {
    for (const construct &each : constructs()) {
        if (count < 2) printf("%s\t%s\n", each.name, each.expected);
        else if (strcmp(each.name, arguments[1]) == 0) return each.run();
    }
    return count < 2 ? 0 : 2;
}

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
