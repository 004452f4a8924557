// expect: 4 3 2 1
#include "construct.h"



int main() { return show<int>(4, [&](int *out) { int h[4] = {4, 3, 2, 1}; cudaMemcpyAsync(out, h, 16, cudaMemcpyHostToDevice); }); }
