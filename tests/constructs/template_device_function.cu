// expect: 5 5 5 5
#include "construct.h"

template <typename T> __device__ T larger(T a, T b) { return a > b ? a : b; }
__global__ void k(int *out) { out[threadIdx.x] = larger(5, (int)threadIdx.x); }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(out); }); }
