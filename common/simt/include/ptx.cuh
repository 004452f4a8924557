/* The simulated device's version of common/cuda/ptx.cuh: what each instruction computes. */
#ifndef PTX_CUH
#define PTX_CUH

static inline float exp2_approx(float x) { return exp2f(x); }

static inline void reduce_add4(float *p, float4 v) {
    atomicAdd(p, v.x);
    atomicAdd(p + 1, v.y);
    atomicAdd(p + 2, v.z);
    atomicAdd(p + 3, v.w);
}

#endif
