// expect: 2 2 2 2
#include "construct.h"

struct s { int x; };
template <typename T> struct runner {
    static void run(int *out);
};
__global__ void k(int *out) { out[threadIdx.x] = 2; }
template <typename T> void runner<T>::run(int *out) { k<<<1, 4>>>(out); }

int main() { return show<int>(4, [&](int *out) { runner<float>::run(out); }); }
