// expect: 1 2 3 4
#include "construct.h"



int main() { return show<int>(4, [&](int *out) { int h[2][3] = {{1, 2, 0}, {3, 4, 0}}; cudaMemcpy2D(out, 8, h, 12, 8, 2, cudaMemcpyHostToDevice); }); }
