// expect: 4 6 1 2
#include "construct.h"

#include <cuda_bf16.h>
__global__ void k(float *out) {
    __nv_bfloat162 a = __floats2bfloat162_rn(1.0f, 2.0f), b = __floats2bfloat162_rn(3.0f, 4.0f), c = __hadd2(a, b);
    out[0] = __low2float(c), out[1] = __high2float(c), out[2] = __low2float(a), out[3] = __high2float(a);
}

int main() { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
