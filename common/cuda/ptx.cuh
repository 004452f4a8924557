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

/* Add v to the four floats at p, which is a multiple of 16 bytes: one request where the card has it (from 9.0 on), else
 * four. Each float is added at once; the four are not. */
__device__ inline void reduce_add4(float *p, float4 v) {
#if __CUDA_ARCH__ >= 900
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
#else
    atomicAdd(p, v.x);
    atomicAdd(p + 1, v.y);
    atomicAdd(p + 2, v.z);
    atomicAdd(p + 3, v.w);
#endif
}

#endif
