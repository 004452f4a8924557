/* The simulated device's version of common/cuda/ptx.cuh: what each instruction computes. */
#ifndef PTX_CUH
#define PTX_CUH

static inline float exp2_approx(float x) { return exp2f(x); }

static inline void reduce_add4(float *p, float4 v) {
    float operand[] = {v.x, v.y, v.z, v.w};
    simt_reduce_add4(p, operand);
}

#endif
