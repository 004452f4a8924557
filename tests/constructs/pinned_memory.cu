// expect: 1 2 3 4
#include "construct.h"



int main() { return show<int>(4, [&](int *out) { int *h; cudaMallocHost(&h, 16); for (int i = 0; i < 4; i++) h[i] = i + 1; cudaMemcpy(out, h, 16, cudaMemcpyHostToDevice); cudaFreeHost(h); }); }
