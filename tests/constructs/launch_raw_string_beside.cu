// expect: 1 1 1 1
#include "construct.h"

static const char *text = R"(a <<< b >>> "c")";
__global__ void k(int *out) { out[threadIdx.x] = 1; }

int main() { return show<int>(4, [&](int *out) { k<<<1, 4>>>(text[2] == '<' ? out : nullptr); }); }
