// expect: 1 2 3 4
#include "construct.h"

struct list {
    int x[4];
    __device__ int &operator[](int i) { return x[i]; }
};
__global__ void k(int *out) {
    list l;
    for (int i = 0; i < 4; i++) l[i] = i + 1;
    out[threadIdx.x] = l[threadIdx.x];
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
