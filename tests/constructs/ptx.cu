#include "construct.h"
#include <cuda_fp16.h>
#include "headers.cuh"
#include <cstdint>
#include <mma.h>

namespace ptx_arithmetic {
__global__ void k(float *out) {
    float power, x = 3.0f, quarter;
    unsigned low;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    asm volatile("rcp.approx.f32 %0, %1;\n" : "=f"(quarter) : "f"(4.0f));
    asm("bfe.u32 %0, %1, 4, 4;" : "=r"(low) : "r"(0x155u));
    out[0] = power, out[1] = x, out[2] = quarter, out[3] = low;
}
CONSTRUCT(ptx_arithmetic, "8 3 0.25 5") { return show<float>(4, [&](float *out) { k<<<1, 1>>>(out); }); }
} // namespace ptx_arithmetic

namespace ptx_copy {
__global__ void k(float *out, const float *in) {
    __shared__ __align__(16) float tile[4];
    if (threadIdx.x == 0) {
        unsigned to = (unsigned)__cvta_generic_to_shared(tile);
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], %2;\n" ::"r"(to), "l"(in), "n"(16));
        asm volatile("cp.async.commit_group;\n" ::);
        asm volatile("cp.async.wait_group %0;\n" ::"n"(0));
    }
    __syncthreads();
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    out[lane] = tile[3 - lane];
}
CONSTRUCT(ptx_copy, "4 3 2 1") {
    return show<float>(4, [&](float *out) {
        float h[4] = {1, 2, 3, 4}, *in;
        cudaMalloc(&in, 16);
        cudaMemcpy(in, h, 16, cudaMemcpyHostToDevice);
        k<<<1, 4>>>(out, in);
        cudaFree(in);
    });
}
} // namespace ptx_copy

namespace ptx_laneid {
__global__ void k(int *out) {
    unsigned one, two;
    asm("mov.u32 %0, %laneid;" : "=r"(one));
    asm("mov.u32 %0, %%laneid;" : "=r"(two));
    out[threadIdx.x] = one;
    out[4 + threadIdx.x] = two;
}
CONSTRUCT(ptx_laneid, "0 1 2 3 0 1 2 3") { return show<int>(8, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace ptx_laneid

namespace ptx_mma {
/* A: 16 x 16 of ones; B: 16 x 8 of ones in even columns and twos in odd ones; both row by row in shared memory. */
__global__ void k(float *out) {
    __shared__ __align__(16) half A[16][16], B[16][8];
    int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32) A[i / 16][i % 16] = __float2half(1.0f);
    for (int i = lane; i < 128; i += 32) B[i / 8][i % 8] = __float2half(1.0f + i % 2);
    __syncwarp();
    unsigned a[4], b[2];
    float c[4];
    unsigned a_row = (unsigned)__cvta_generic_to_shared(&A[lane % 16][lane / 16 * 8]);
    unsigned b_row = (unsigned)__cvta_generic_to_shared(&B[lane % 16][0]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(a_row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(b_row));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%10, %11, %12, %13};"
                 : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(0.0f), "f"(0.0f), "f"(0.0f),
                   "f"(0.0f));
    if (lane == 0)
        for (int i = 0; i < 4; i++) out[i] = c[i];
}
CONSTRUCT(ptx_mma, "16 32 16 32") { return show<float>(4, [&](float *out) { k<<<1, 32>>>(out); }); }
} // namespace ptx_mma

namespace ptx_order_of_qualifiers {
/* The shape and the number of matrices may change places. */
__global__ void k(int *out) {
    __shared__ alignas(16) unsigned rows[32][4];
    for (int i = 0; i < 4; i++) rows[threadIdx.x][i] = 4 * threadIdx.x + i;
    __syncthreads();
    unsigned address = (unsigned)__cvta_generic_to_shared(rows[threadIdx.x % 8]), a[2], b[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(a[0]), "=r"(a[1]) : "r"(address));
    asm volatile("ldmatrix.sync.aligned.x2.m8n8.shared.b16 {%0, %1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(address));
    if (threadIdx.x == 3 || threadIdx.x == 17) out[threadIdx.x / 16] = a[0], out[2 + threadIdx.x / 16] = b[1];
}
CONSTRUCT(ptx_order_of_qualifiers, "3 17 3 17") { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
} // namespace ptx_order_of_qualifiers

namespace ptx_wrappers {
template <class F> __device__ float apply(F f, float x) { return f(x); }

__global__ void k(int *out) {
    __shared__ __align__(16) uint32_t tile[64];
    tile[threadIdx.x] = threadIdx.x;
    tile[32 + threadIdx.x] = 1;
    meet();
    uint32_t one[1], two[2];
    load_rows(one, tile + threadIdx.x % 8 * 4);
    meet_as<int>();
    load_rows(two, tile + threadIdx.x % 16 * 4);
    meet_as<float>();
    tile[threadIdx.x] = one[0] + two[0] + two[1];
    meet_declared_first();
    meet_in_template(1);
    if (threadIdx.x > 0) return;
    out[0] = apply(twice, 1.0f);
    out[1] = (int)pair{1.0f, 2.0f}.sum();
    out[2] = (int)apply(twice, 2.0f);
    out[3] = tile[1];
    out[4] = tile[15] - 1;
}
CONSTRUCT(ptx_wrappers, "2 3 4 3 30") { return show<int>(5, [](int *out) { k<<<1, 32>>>(out); }); }
} // namespace ptx_wrappers

namespace ptx_integers {
__global__ void k(int *out) {
    unsigned u, low, high;
    unsigned long long wide = 0x123456789abcull;
    int s, named, x = 5;
    asm("cvt.u32.u64 %0, %1;" : "=r"(u) : "l"(wide));
    asm("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "l"(wide));
    out[0] = u == 0x56789abc, out[1] = low == u && high == 0x1234;
#ifdef __SIMT__ // as other compilers have it; nvcc 13 has not
    asm("mad.lo.s32 %[d], %[a], %[b], %[c];" : [d] "=r"(named) : [a] "r"(3), [b] "r"(-4), [c] "r"(5));
#else
    asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(named) : "r"(3), "r"(-4), "r"(5));
#endif
    asm("{ add.s32 %0, %1, 1; mul.lo.s32 %0, %0, %1; }" : "=r"(x) : "r"(x)); // the input is read first
    out[2] = named, out[3] = x;
    asm("add.cc.u32 %0, %2, %3; addc.u32 %1, %4, 0;" : "=r"(low), "=r"(high) : "r"(0xffffffffu), "r"(2), "r"(7));
    out[4] = low, out[5] = high;
    asm("bfind.u32 %0, %1;" : "=r"(u) : "r"(0x100));
    asm("bfe.s32 %0, %1, 4, 4;" : "=r"(s) : "r"(0x1f5));
    out[6] = u, out[7] = s;
    asm("mul.wide.s32 %0, %1, %2;" : "=l"(wide) : "r"(-3), "r"(5));
    asm("shf.l.wrap.b32 %0, %1, %2, 8;" : "=r"(u) : "r"(0x11223344), "r"(0x55667788));
    out[8] = (int)(long long)wide, out[9] = u == 0x66778811;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(s) : "r"(0x01ff0203), "r"(0x04050607), "r"(100));
    asm("add.sat.s32 %0, %1, 1;" : "=r"(u) : "r"(0x7fffffff));
    out[10] = s, out[11] = u == 0x7fffffff;
}
CONSTRUCT(ptx_integers, "1 1 -7 30 1 8 8 -1 -15 1 132 1") { return show<int>(12, [](int *out) { k<<<1, 1>>>(out); }); }
} // namespace ptx_integers

namespace ptx_floats {
__global__ void k(float *out) {
    float f;
    double d;
    int s;
    unsigned u;
    unsigned short h;
    asm("add.rz.f32 %0, %1, %2;" : "=f"(f) : "f"(1.0f), "f"(-1e-20f));
    asm("add.rp.f64 %0, %1, %2;" : "=d"(d) : "d"(1.0), "d"(1e-30));
    out[0] = f < 1.0f, out[1] = d > 1.0;
    asm("cvt.rni.s32.f32 %0, %1;" : "=r"(s) : "f"(2.5f));
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(2.0f), "f"(1.0f));
    out[2] = s, out[3] = u == 0x40003c00;
    asm("{ .reg .f16 a, b; mov.b16 a, 0x3c00; add.f16 b, a, a; fma.rn.f16 b, b, b, a; mov.b16 %0, b; }" : "=h"(h));
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    out[4] = f;
    asm("max.NaN.f32 %0, %1, 0f7FC00000;" : "=f"(f) : "f"(1.0f));
    out[5] = f != f;
    asm("{ .reg .pred p, q; setp.ltu.f32 p, %1, 0f7FC00000; setp.lt.or.f32 q, %1, 0f00000000, !p; selp.f32 %0, 2.0, 3.0, q; }"
        : "=f"(f)
        : "f"(1.0f));
    out[6] = f;
    asm("cvt.rz.f32.u32 %0, %1;" : "=f"(f) : "r"(0xffffffffu));
    out[7] = f == 4294967040.0f;
    asm("cvt.rm.f32.s32 %0, %1;" : "=f"(f) : "r"(-16777217));
    out[8] = f == -16777218.0f;
    asm("mul.ftz.f32 %0, %1, %2;" : "=f"(f) : "f"(1e-30f), "f"(1e-10f));
    out[9] = f;
    asm("add.sat.f32 %0, %1, %1;" : "=f"(f) : "f"(0.75f));
    out[10] = f;
    asm("{ .reg .b32 a; mov.b32 a, {%1, %1}; add.f16x2 a, a, a; mov.b32 {%0, _}, a; }" : "=h"(h) : "h"((unsigned short)0x3c00));
    out[11] = h == 0x4000;
}
CONSTRUCT(ptx_floats, "1 1 2 1 5 1 3 1 1 0 1 1") { return show<float>(12, [](float *out) { k<<<1, 1>>>(out); }); }
} // namespace ptx_floats

namespace ptx_control {
__device__ int sum_to(int n) { // twice in one function: labels belong to their asm
    int sum = 0;
    asm volatile("{\n.reg .pred q;\n.reg .s32 r<2>;\nmov.s32 r0, 0;\nAGAIN_%=:\nadd.s32 %0, %0, r0;\nadd.s32 r0, r0, 1;\n"
                 "setp.le.s32 q, r0, %1;\n@q bra AGAIN_%=;\nbra.uni END;\nadd.s32 %0, %0, 1000; // not reached\nEND:\n}"
                 : "+r"(sum)
                 : "r"(n));
    return sum;
}
__global__ void k(int *out) {
    int s;
    asm("{\n\t.reg .pred p;\n\tsetp.lt.s32 p, %1, 5;\n\tselp.s32 %0, 7, 9, p;\n\t@p add.s32 %0, %0, 100;\n\t@!p add.s32 %0, %0, 1;\n}"
        : "=r"(s)
        : "r"(3));
    out[0] = s, out[1] = sum_to(10), out[2] = sum_to(4);
    asm("{ .reg .b32 a; mov.b32 a, 1; { .reg .b32 a; mov.b32 a, 20; add.s32 %0, a, 1; } add.s32 %0, %0, a; }" : "=r"(s));
    out[3] = s;
    asm volatile("membar.sys; fence.acq_rel.cta; griddepcontrol.wait; nanosleep.u32 10;");
    asm("{ .reg .pred a, b; setp.eq.and.s32 a|b, %1, 1, 1; selp.b32 %0, 1, 0, b; }" : "=r"(out[4]) : "r"(2));
}
CONSTRUCT(ptx_control, "107 55 10 22 1") { return show<int>(5, [](int *out) { k<<<1, 1>>>(out); }); }
} // namespace ptx_control

namespace ptx_memory {
__global__ void k(int *out) {
    __shared__ alignas(16) int tile[8];
    unsigned at = (unsigned)__cvta_generic_to_shared(tile), old;
    int v[4];
    asm volatile("st.shared.v4.s32 [%0+16], {%1, %2, %3, 4};" ::"r"(at), "r"(1), "r"(2), "r"(3) : "memory");
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2 + 24];" : "=r"(v[0]), "=r"(v[1]) : "r"(at));
    asm volatile("ld.u32 %0, [%1];" : "=r"(v[2]) : "l"(tile + 5));
    asm volatile("ld.volatile.shared.s8 %0, [%1];" : "=r"(v[3]) : "r"(at + 16));
    for (int i = 0; i < 4; i++) out[i] = v[i];
    asm volatile("st.global.cg.v2.s32 [%0], {%1, %2};" ::"l"(out + 4), "r"(61), "r"(62));
    asm volatile("atom.global.acq_rel.gpu.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(out + 6), "r"(5));
    out[7] = old;
    asm volatile("atom.global.cas.b16 %0, [%1], 5, 9;" : "=h"(*(unsigned short *)v) : "l"(out + 6));
    asm volatile("red.global.max.s32 [%0], 7;" ::"l"(out + 7) : "memory");
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.f32 %0, [%1];" : "=f"(*(float *)&out[8]) : "l"(out + 9));
}
CONSTRUCT(ptx_memory, "3 4 2 1 61 62 9 7 0 0") { return show<int>(10, [](int *out) { k<<<1, 1>>>(out); }); }
} // namespace ptx_memory

namespace ptx_warp {
__global__ void k(int *out) {
    unsigned d, p, lane = threadIdx.x;
    asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %2, 1, 0x1800, 0xffffffff; selp.u32 %1, 1, 0, p; }" // segments of 8
                 : "=r"(d), "=r"(p)
                 : "r"(lane));
    if (lane == 7 || lane == 8) out[lane - 7] = d * 10 + p;
    asm volatile("shfl.sync.bfly.b32 %0, %1, 16, 0x1f, 0xffffffff;" : "=r"(d) : "r"(lane));
    asm volatile("{ .reg .pred q; setp.lt.u32 q, %1, 3; vote.sync.ballot.b32 %0, q, 0xffffffff; }" : "=r"(p) : "r"(lane));
    if (lane == 1) out[2] = d, out[3] = p;
    asm volatile("redux.sync.max.s32 %0, %1, 0xffffffff;" : "=r"(d) : "r"(-(int)lane - 1));
    asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(p) : "r"(lane / 2));
    if (lane == 2) out[4] = d, out[5] = p;
    asm volatile("{ .reg .pred q; setp.eq.u32 q, %1, 9; barrier.cta.red.popc.u32 %0, 0, !q; }" : "=r"(d) : "r"(lane));
    if (lane == 3) out[6] = d;
}
CONSTRUCT(ptx_warp, "61 80 17 7 -1 12 31") { return show<int>(7, [](int *out) { k<<<1, 32>>>(out); }); }
} // namespace ptx_warp

namespace ptx_mbarrier {
/* By its state and by its parity; and cp.async that arrives there. */
__global__ void k(int *out, const int *in) {
    __shared__ uint64_t full, copied;
    __shared__ alignas(16) int tile[128];
    unsigned barrier = (unsigned)__cvta_generic_to_shared(&full), copies = (unsigned)__cvta_generic_to_shared(&copied);
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], 32; mbarrier.init.shared.b64 [%1], 32;" ::"r"(barrier), "r"(copies));
    __syncthreads();
    unsigned long long state;
    tile[threadIdx.x] = threadIdx.x;
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(barrier) : "memory");
    int done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.acquire.cta.shared::cta.b64 p, [%1], %2; selp.s32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(barrier), "l"(state)
                     : "memory");
    int other = tile[31 - threadIdx.x];
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(tile + 4 * threadIdx.x)),
                 "l"(in + 4 * threadIdx.x)
                 : "memory");
    if (threadIdx.x % 2 == 1) asm volatile("cp.async.commit_group;" ::: "memory"); // it arrives at the mbarrier all the same
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(copies) : "memory");
    asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared.b64 P1, [%0], %1, 0x989680;\n@P1 bra DONE;\nbra LAB_WAIT;\nDONE:\n}"
                 ::"r"(copies), "r"(0)
                 : "memory");
    if (threadIdx.x < 2) out[threadIdx.x] = other + tile[127 - threadIdx.x];
}
CONSTRUCT(ptx_mbarrier, "539 534") {
    return show<int>(2, [](int *out) {
        int h[128], *in;
        for (int i = 0; i < 128; i++) h[i] = i * 4;
        cudaMalloc(&in, sizeof h);
        cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice);
        k<<<1, 32>>>(out, in);
    });
}
} // namespace ptx_mbarrier

namespace ptx_products {
/* A of ones, B the number of its column plus 1; integers, fp16 sums, half the depth. */
__global__ void k(float *out) {
    int lane = threadIdx.x, column = lane / 4 + 1, i[4];
    unsigned bytes = 0x01010101, column_bytes = column * bytes, one = 0x3c003c00, half2 = __half_as_ushort(__float2half(column)) * 0x10001u, h[2];
    float f[4];
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %5}, {%6, %6, %6, %6};"
                 : "=r"(i[0]), "=r"(i[1]), "=r"(i[2]), "=r"(i[3])
                 : "r"(~0u), "r"(column_bytes), "r"(1000));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %2, %2, %2}, {%3, %3}, {%4, %4};"
                 : "=r"(h[0]), "=r"(h[1])
                 : "r"(one), "r"(half2), "r"(one));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4}, {%5}, {%6, %6, %6, %6};"
                 : "=f"(f[0]), "=f"(f[1]), "=f"(f[2]), "=f"(f[3])
                 : "r"(one), "r"(half2), "f"(0.5f));
    int d[2];
    asm volatile("mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%4, %4};"
                 : "=r"(d[0]), "=r"(d[1])
                 : "r"(bytes), "r"(column_bytes), "r"(0x7fffffff));
    if (lane != 1) return; // columns 2 and 3
    out[0] = i[0], out[1] = i[3], out[2] = __half2float(__ushort_as_half(h[0] & 0xffff)), out[3] = __half2float(__ushort_as_half(h[1] >> 16));
    out[4] = f[0], out[5] = f[3], out[6] = d[0] == 0x7fffffff;
}
CONSTRUCT(ptx_products, "904 872 49 65 24.5 32.5 1") { return show<float>(7, [](float *out) { k<<<1, 32>>>(out); }); }
} // namespace ptx_products

namespace ptx_all_threads_wait_for_a_store {
/* One thread stores; for the other 63 there is nothing to wait for. */
__global__ void k(int *out) {
    __shared__ alignas(16) int tile[64];
    tile[threadIdx.x] = threadIdx.x;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(out), "r"((unsigned)__cvta_generic_to_shared(tile))
                     : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}
CONSTRUCT(ptx_all_threads_wait_for_a_store, "0 1 2") {
    return show<int>(3, [](int *out) {
        int *all;
        cudaMalloc(&all, 256);
        k<<<1, 64>>>(all);
        cudaMemcpy(out, all, 12, cudaMemcpyDeviceToDevice);
    });
}
} // namespace ptx_all_threads_wait_for_a_store

namespace wmma_product {
using namespace nvcuda;

__global__ void k(float *out) {
    __shared__ __align__(32) half A[256], B[256];
    __shared__ __align__(32) float C[256];
    for (int i = threadIdx.x; i < 256; i += 32) A[i] = B[i] = __float2half(1.0f);
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 0.0f);
    wmma::load_matrix_sync(a, A, 16);
    wmma::load_matrix_sync(b, B, 16);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(C, c, 16, wmma::mem_row_major);
    __syncwarp();
    if (threadIdx.x < 4) out[threadIdx.x] = C[threadIdx.x];
}
CONSTRUCT(wmma_product, "16 16 16 16") { return show<float>(4, [&](float *out) { k<<<1, 32>>>(out); }); }
} // namespace wmma_product

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
namespace wmma_tf32 {
using namespace nvcuda;

/* C = A B with B of 2 on its diagonal, each matrix in both orders. */
template <class A_layout, class B_layout, wmma::layout_t C_layout> __global__ void k(float *out, const float *A, const float *B) {
    __shared__ __align__(32) float C[256];
    constexpr bool A_rows = std::is_same_v<A_layout, wmma::row_major>, B_rows = std::is_same_v<B_layout, wmma::row_major>;
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, A_layout> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, B_layout> b;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> c;
    wmma::fill_fragment(c, 0.5f);
    wmma::load_matrix_sync(a, A, A_rows ? 8 : 16);
    wmma::load_matrix_sync(b, B, B_rows ? 16 : 8);
    for (int i = 0; i < a.num_elements; i++) a.x[i] = wmma::__float_to_tf32(a.x[i]);
    for (int i = 0; i < b.num_elements; i++) b.x[i] = wmma::__float_to_tf32(b.x[i]);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(C, c, 16, C_layout);
    __syncwarp();
    if (threadIdx.x > 0) return;
    float sum = 0;
    for (int row = 0; row < 16; row++)
        for (int col = 0; col < 16; col++) {
            float wanted = 0.5f + (col < 8 ? 2 * A[A_rows ? row * 8 + col : col * 16 + row] : 0);
            sum += C[C_layout == wmma::mem_row_major ? row * 16 + col : col * 16 + row] == wanted;
        }
    *out = sum;
}
CONSTRUCT(wmma_tf32, "256 256 256") {
    float *A, *rows, *cols, h[128], r[128] = {}, l[128] = {};
    for (int i = 0; i < 128; i++) h[i] = i + 1;
    for (int i = 0; i < 8; i++) r[i * 16 + i] = l[i * 8 + i] = 2;
    must(cudaMalloc(&A, 512), "A"), must(cudaMalloc(&rows, 512), "rows"), must(cudaMalloc(&cols, 512), "cols");
    must(cudaMemcpy(A, h, 512, cudaMemcpyHostToDevice), "A"), must(cudaMemcpy(rows, r, 512, cudaMemcpyHostToDevice), "rows");
    must(cudaMemcpy(cols, l, 512, cudaMemcpyHostToDevice), "cols");
    return show<float>(3, [&](float *out) {
        k<wmma::row_major, wmma::col_major, wmma::mem_row_major><<<1, 32>>>(out, A, cols);
        k<wmma::col_major, wmma::row_major, wmma::mem_col_major><<<1, 32>>>(out + 1, A, rows);
        k<wmma::row_major, wmma::row_major, wmma::mem_row_major><<<1, 32>>>(out + 2, A, rows);
    });
}
} // namespace wmma_tf32
#endif
