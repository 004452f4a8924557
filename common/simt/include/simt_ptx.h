/* Inline PTX: rewrite/ptx.c turns asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x)) into simt_ptx::ex2_approx_f32((y), (x)), and
 * refuses, with its line, each instruction whose name is not in this file. Operands in brackets and braces come one by one. The
 * place of a function around one asm (common/device/ptx.cuh has such) is that of its call. */
#pragma once

#include "simt_device.h"

namespace simt_ptx {

/* ---- arithmetic ---- */
#define SIMT_PTX_UNARY(name, expression)                                                                                       \
    static inline void name(float &d, float a) { d = expression; }
SIMT_PTX_UNARY(ex2_approx_f32, exp2f(a))
SIMT_PTX_UNARY(ex2_approx_ftz_f32, a < -126.0f ? 0.0f : exp2f(a))
SIMT_PTX_UNARY(lg2_approx_f32, log2f(a))
SIMT_PTX_UNARY(lg2_approx_ftz_f32, log2f(a))
SIMT_PTX_UNARY(rcp_approx_f32, 1.0f / a)
SIMT_PTX_UNARY(rcp_approx_ftz_f32, 1.0f / a)
SIMT_PTX_UNARY(rsqrt_approx_f32, 1.0f / sqrtf(a))
SIMT_PTX_UNARY(rsqrt_approx_ftz_f32, 1.0f / sqrtf(a))
SIMT_PTX_UNARY(sqrt_approx_f32, sqrtf(a))
SIMT_PTX_UNARY(sin_approx_f32, sinf(a))
SIMT_PTX_UNARY(cos_approx_f32, cosf(a))
SIMT_PTX_UNARY(tanh_approx_f32, tanhf(a))
static inline void fma_rn_f32(float &d, float a, float b, float c) { d = fmaf(a, b, c); }
static inline void add_f32(float &d, float a, float b) { d = a + b; }
static inline void sub_f32(float &d, float a, float b) { d = a - b; }
static inline void mul_f32(float &d, float a, float b) { d = a * b; }
static inline void max_f32(float &d, float a, float b) { d = fmaxf(a, b); }
static inline void min_f32(float &d, float a, float b) { d = fminf(a, b); }
template <typename D> static inline void add_s32(D &d, int a, int b) { d = (D)((unsigned)a + (unsigned)b); }
template <typename D> static inline void add_u32(D &d, unsigned a, unsigned b) { d = (D)(a + b); }
template <typename D> static inline void sub_s32(D &d, int a, int b) { d = (D)((unsigned)a - (unsigned)b); }
template <typename D> static inline void mul_lo_s32(D &d, int a, int b) { d = (D)((unsigned)a * (unsigned)b); }
template <typename D> static inline void mul_lo_u32(D &d, unsigned a, unsigned b) { d = (D)(a * b); }
template <typename D> static inline void mul_hi_u32(D &d, unsigned a, unsigned b) { d = (D)__umulhi(a, b); }
template <typename D> static inline void mad_lo_s32(D &d, int a, int b, int c) {
    d = (D)((unsigned)a * (unsigned)b + (unsigned)c);
}

/* ---- bits ---- */
template <typename D, typename A> static inline void mov_b32(D &d, A a) { d = simt::bit_cast<D>(a); }
template <typename D, typename A> static inline void mov_u32(D &d, A a) { d = (D)a; }
template <typename D, typename A> static inline void mov_f32(D &d, A a) { d = (D)a; }
template <typename D> static inline void and_b32(D &d, unsigned a, unsigned b) { d = (D)(a & b); }
template <typename D> static inline void or_b32(D &d, unsigned a, unsigned b) { d = (D)(a | b); }
template <typename D> static inline void xor_b32(D &d, unsigned a, unsigned b) { d = (D)(a ^ b); }
template <typename D> static inline void shl_b32(D &d, unsigned a, unsigned n) { d = (D)(n > 31 ? 0 : a << n); }
template <typename D> static inline void shr_u32(D &d, unsigned a, unsigned n) { d = (D)(n > 31 ? 0 : a >> n); }
template <typename D> static inline void popc_b32(D &d, unsigned a) { d = (D)__popc(a); }
template <typename D> static inline void clz_b32(D &d, unsigned a) { d = (D)__clz((int)a); }
template <typename D> static inline void brev_b32(D &d, unsigned a) { d = (D)__brev(a); }
template <typename D> static inline void prmt_b32(D &d, unsigned a, unsigned b, unsigned selector) {
    unsigned result = __byte_perm(a, b, selector);
    for (int i = 0; i < 32; i += 8) /* 8: the byte's sign in all its bits */
        if ((selector >> i / 2 & 8) != 0) result = (result & ~(255u << i)) | ((result >> i & 128) != 0 ? 255u << i : 0);
    d = (D)result;
}
template <typename D> static inline void lop3_b32(D &d, unsigned a, unsigned b, unsigned c, unsigned table) {
    unsigned result = 0;
    for (int i = 0; i < 8; i++)
        if ((table >> i & 1) != 0) result |= ((i & 4) != 0 ? a : ~a) & ((i & 2) != 0 ? b : ~b) & ((i & 1) != 0 ? c : ~c);
    d = (D)result;
}
template <typename D> static inline void bfe_u32(D &d, unsigned a, unsigned from, unsigned bits) {
    from &= 255, bits &= 255;
    uint64_t shifted = from > 31 ? 0 : (uint64_t)a >> from;
    d = (D)(shifted & (bits > 31 ? 0xffffffffu : (1u << bits) - 1));
}
template <typename D> static inline void bfi_b32(D &d, unsigned a, unsigned into, unsigned from, unsigned bits) {
    from &= 255, bits &= 255;
    uint64_t mask = from > 31 ? 0 : ((bits > 31 ? 0xffffffffull : (1ull << bits) - 1) << from) & 0xffffffffu;
    d = (D)((into & ~mask) | (((uint64_t)a << from) & mask));
}

/* ---- conversions: of a pair, the first operand is the upper half ---- */
template <typename D> static inline void cvt_rn_f16x2_f32(D &d, float upper, float lower) {
    d = (D)((unsigned)simt_half_from_float(upper) << 16 | simt_half_from_float(lower));
}
template <typename D> static inline void cvt_rn_bf16x2_f32(D &d, float upper, float lower) {
    d = (D)((unsigned)simt_bfloat16_from_float(upper) << 16 | simt_bfloat16_from_float(lower));
}
template <typename D> static inline void cvt_rn_f16_f32(D &d, float a) { d = (D)simt_half_from_float(a); }
template <typename D> static inline void cvt_f32_f16(D &d, unsigned short a) { d = simt_half_to_float(a); }
/* To nearest, ties away from 0: 10 bits of fraction stay. */
template <typename D> static inline void cvt_rna_tf32_f32(D &d, float a) {
    unsigned bits = __float_as_uint(a);
    d = (D)((bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & ~0x1fffu);
}

/* ---- registers that name a thread ---- */
static inline unsigned laneid() { return simt_lane(); }
static inline unsigned warpid() { return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32; }
static inline unsigned tid_x() { return threadIdx.x; }
static inline unsigned ntid_x() { return blockDim.x; }
static inline unsigned ctaid_x() { return blockIdx.x; }
static inline unsigned lanemask_lt() { return (1u << simt_lane()) - 1; }
static inline unsigned clock() { return (unsigned)simt_clock(); }

/* ---- memory ---- */
template <typename D, typename P> static inline void cvta_to_shared_u64(D &d, P p) {
    d = (D)simt_shared_address((const void *)p);
}
#define SIMT_PTX_LOAD(name, type)                                                                                              \
    template <typename D, typename P> static inline void name(D &d, P p) { d = simt::bit_cast<D>(*(const type *)p); }
SIMT_PTX_LOAD(ld_global_f32, float)
SIMT_PTX_LOAD(ld_global_u32, unsigned)
SIMT_PTX_LOAD(ld_global_s32, int)
SIMT_PTX_LOAD(ld_global_nc_f32, float)
SIMT_PTX_LOAD(ld_global_cg_f32, float)
template <typename P> static inline void ld_global_v4_f32(float &a, float &b, float &c, float &d, P p) {
    float4 v = *(const float4 *)p;
    a = v.x, b = v.y, c = v.z, d = v.w;
}
template <typename P> static inline void ld_global_v2_f32(float &a, float &b, P p) {
    float2 v = *(const float2 *)p;
    a = v.x, b = v.y;
}
template <typename P> static inline void st_global_v2_f32(P p, float a, float b) { *(float2 *)p = make_float2(a, b); }
template <typename P> static inline void ld_global_nc_v4_f32(float &a, float &b, float &c, float &d, P p) {
    ld_global_v4_f32(a, b, c, d, p);
}
template <typename P> static inline void st_global_f32(P p, float a) { *(float *)p = a; }
template <typename P, typename A> static inline void st_global_u32(P p, A a) { *(unsigned *)p = (unsigned)a; }
template <typename P> static inline void st_global_v4_f32(P p, float a, float b, float c, float d) {
    *(float4 *)p = make_float4(a, b, c, d);
}
template <typename D> static inline void ld_shared_f32(D &d, size_t p) { d = *(const float *)simt_shared_pointer(p); }
static inline void st_shared_f32(size_t p, float a) { *(float *)simt_shared_pointer(p) = a; }
template <typename P> static inline void red_global_add_f32(P p, float a) { atomicAdd((float *)p, a); }
template <typename P> static inline void red_global_add_u32(P p, unsigned a) { atomicAdd((unsigned *)p, a); }
template <typename P> static inline void red_global_add_v4_f32(P p, float a, float b, float c, float d) {
    float operand[] = {a, b, c, d};
    simt_reduce_add4((float *)p, operand);
}
template <typename D, typename P> static inline void ld_acquire_gpu_global_s32(D &d, P p, SIMT_HERE) {
    d = (D)simt_load_acquire((const void *)p, file, line);
}
template <typename D, typename P> static inline void ld_acquire_gpu_global_u32(D &d, P p, SIMT_HERE) {
    d = (D)simt_load_acquire((const void *)p, file, line);
}
template <typename P> static inline void red_release_gpu_global_add_s32(P p, int a) {
    simt_reduce_release((void *)p, (uint32_t)a);
}
template <typename P> static inline void red_release_gpu_global_add_u32(P p, unsigned a) { simt_reduce_release((void *)p, a); }
template <typename P> static inline void prefetch_global_L2(P) {}
static inline void membar_gl() { __threadfence(); }
static inline void membar_cta() { __threadfence_block(); }
static inline void fence_acq_rel_gpu() { __threadfence(); }

/* ---- asynchronous copies ---- */
#define SIMT_PTX_CP_ASYNC(name)                                                                                                \
    template <typename S, typename P> static inline void name(S to, P from, int bytes, int read) {                             \
        simt_async_copy(simt_shared_pointer((size_t)to), (const void *)from, (size_t)bytes, (size_t)(bytes - read));           \
    }                                                                                                                          \
    template <typename S, typename P> static inline void name(S to, P from, int bytes) { name(to, from, bytes, bytes); }
SIMT_PTX_CP_ASYNC(cp_async_ca_shared_global)
SIMT_PTX_CP_ASYNC(cp_async_cg_shared_global)
static inline void cp_async_commit_group() { simt_async_commit(); }
static inline void cp_async_wait_group(int groups, SIMT_HERE) { simt_async_wait((unsigned)groups, file, line); }
static inline void cp_async_wait_all(SIMT_HERE) {
    simt_async_commit();
    simt_async_wait(0, file, line);
}

/* ---- tensor cores ---- */
#define SIMT_PTX_LDMATRIX(suffix, transposed)                                                                                  \
    template <typename D, typename S>                                                                                          \
    static inline void ldmatrix_sync_aligned_m8n8_x1##suffix##_shared_b16(D &a, S row, SIMT_HERE) {                            \
        a = (D)simt_ldmatrix((size_t)row, 1, transposed, file, line).r[0];                                                     \
    }                                                                                                                          \
    template <typename D, typename S>                                                                                          \
    static inline void ldmatrix_sync_aligned_m8n8_x2##suffix##_shared_b16(D &a, D &b, S row, SIMT_HERE) {                      \
        simt_registers m = simt_ldmatrix((size_t)row, 2, transposed, file, line);                                              \
        a = (D)m.r[0], b = (D)m.r[1];                                                                                          \
    }                                                                                                                          \
    template <typename D, typename S>                                                                                          \
    static inline void ldmatrix_sync_aligned_m8n8_x4##suffix##_shared_b16(D &a, D &b, D &c, D &d, S row, SIMT_HERE) {          \
        simt_registers m = simt_ldmatrix((size_t)row, 4, transposed, file, line);                                              \
        a = (D)m.r[0], b = (D)m.r[1], c = (D)m.r[2], d = (D)m.r[3];                                                            \
    }
SIMT_PTX_LDMATRIX(, 0)
SIMT_PTX_LDMATRIX(_trans, 1)
#define SIMT_PTX_STMATRIX(suffix, transposed)                                                                                  \
    static inline void stmatrix_sync_aligned_m8n8_x4##suffix##_shared_b16(size_t row, unsigned a, unsigned b, unsigned c,      \
                                                                          unsigned d, SIMT_HERE) {                             \
        simt_stmatrix(row, 4, transposed, a, b, c, d, file, line);                                                             \
    }
SIMT_PTX_STMATRIX(, 0)
SIMT_PTX_STMATRIX(_trans, 1)
#define SIMT_PTX_MMA(name, collective)                                                                                         \
    static inline void name(float &d0, float &d1, float &d2, float &d3, unsigned a0, unsigned a1, unsigned a2, unsigned a3,    \
                            unsigned b0, unsigned b1, float c0, float c1, float c2, float c3, SIMT_HERE) {                     \
        simt_floats d = simt_mma(&collective, c0, c1, c2, c3, a0, a1, a2, a3, b0, b1, file, line);                             \
        d0 = d.x[0], d1 = d.x[1], d2 = d.x[2], d3 = d.x[3];                                                                    \
    }
SIMT_PTX_MMA(mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32, simt_mma_half)
SIMT_PTX_MMA(mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32, simt_mma_bfloat16)
SIMT_PTX_MMA(mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32, simt_mma_tf32)

/* ---- barriers ---- */
static inline void bar_sync(int number, SIMT_HERE) {
    if (number == 0)
        simt_block_barrier("bar.sync 0", 0, file, line);
    else
        simt_named_barrier(number, (int)(blockDim.x * blockDim.y * blockDim.z), 1, file, line);
}
static inline void bar_warp_sync(unsigned mask, SIMT_HERE) { __syncwarp(mask, file, line); }

#include "simt_hopper.h"

static inline void end_of_ptx() {} /* rewrite/ptx.c reads the names up to this one */
} // namespace simt_ptx
