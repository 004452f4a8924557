/* Single machine instructions that CUDA C++ has no name for. The simulated device has its own file of this name. */
#ifndef PTX_CUH
#define PTX_CUH

/* 2 to the power x, within 2 units in the last place; subnormal results become 0. exp2f() would add three instructions
 * around this one to keep subnormals. exp2_approx(-inf) is 0. */
__device__ inline float exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#endif
