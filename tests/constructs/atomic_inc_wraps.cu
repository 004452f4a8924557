// expect: 1
#include "construct.h"

__global__ void k(int *out) { atomicInc((unsigned *)out, 2); }

int main() { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
