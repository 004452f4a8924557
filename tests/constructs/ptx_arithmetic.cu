// expect: 8 3 0.25 5
#include "construct.h"

__global__ void k(float *out) {
    float power, x = 3.0f, quarter;
    unsigned low;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    asm volatile("rcp.approx.f32 %0, %1;\n" : "=f"(quarter) : "f"(4.0f));
    asm("bfe.u32 %0, %1, 4, 4;" : "=r"(low) : "r"(0x155u));
    out[0] = power, out[1] = x, out[2] = quarter, out[3] = low;
}

int main() { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
