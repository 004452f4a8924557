// expect: 3 256 0.5 1
#include "construct.h"

#include <cuda_bf16.h>
__global__ void k(float *out) {
    __nv_bfloat16 a = __float2bfloat16(1.0f), b = __float2bfloat16(2.0f);
    out[0] = __bfloat162float(__hadd(a, b)), out[1] = __bfloat162float(__float2bfloat16(257.0f));
    out[2] = __bfloat162float(a / b), out[3] = a < b;
}

int main() { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
