/* Asynchronous copies, mbarriers, clusters and tensor cores: a part of simt_ptx.h, inside of its namespace. */
#pragma once

/* ---- asynchronous copies of a thread ------------------------------------------------------------ */
template <class M> static inline void cp_async_(size_t to, size_t from, int bytes, int read) {
    simt_async_copy(simt_shared_pointer(to), (const void *)from, (size_t)bytes, (size_t)(bytes - read));
}
template <class M> static inline void cp_async_(size_t to, size_t from, int bytes) { cp_async_<M>(to, from, bytes, bytes); }
template <class M> static inline void cp_async_commit_group_() { simt_async_commit(); }
template <class M> static inline void cp_async_wait_group_(place at, u32 groups) { simt_async_wait(groups, at.file, at.line); }
template <class M> static inline void cp_async_wait_all_(place at) {
    simt_async_commit();
    simt_async_wait(0, at.file, at.line);
}

/* ---- mbarriers ------------------------------------------------------------ */
template <class M> static inline void mbarrier_init_(size_t barrier, u32 count) {
    simt_transaction_init(shared_address(barrier), count);
}
template <class M> static inline void mbarrier_inval_(size_t) {}
/* The state that an arrival returns is the number of its phase. */
#define SIMT_PTX_ARRIVE(name, parameters, count, bytes, what)                                                                  \
    template <class M> static inline u64 name(place at, size_t barrier SIMT_UNPACK parameters) {                               \
        if constexpr (M::has(m_shared__cluster)) return simt_remote_arrive(barrier, count, bytes, what, at.file, at.line), 0;  \
        barrier = shared_address(barrier);                                                                                     \
        u64 phase = simt_transaction_phase(barrier);                                                                           \
        simt_transaction_arrive(barrier, count, bytes, what, at.file, at.line);                                                \
        return phase;                                                                                                          \
    }
SIMT_PTX_ARRIVE(mbarrier_arrive_, (), 1, 0, "mbarrier.arrive")
SIMT_PTX_ARRIVE(mbarrier_arrive_, (, u32 count), count, 0, "mbarrier.arrive")
SIMT_PTX_ARRIVE(mbarrier_arrive_noComplete_, (, u32 count), count, 0, "mbarrier.arrive")
SIMT_PTX_ARRIVE(mbarrier_arrive_expect_tx_, (, u32 bytes), 1, bytes, "mbarrier.arrive.expect_tx")
SIMT_PTX_ARRIVE(mbarrier_expect_tx_, (, u32 bytes), 0, bytes, "mbarrier.expect_tx")
/* PTX lets try_wait wait for a while; here it waits until the phase is over. `.parity` takes the phase's parity, the other form the state
 * that an arrival has returned. */
template <class M, class... T> static inline pred mbarrier_try_wait_(place at, size_t barrier, u64 phase, T...) {
    simt_transaction_wait(shared_address(barrier), (u32)phase & 1, at.file, at.line);
    return true;
}
template <class M> static inline pred mbarrier_test_wait_(place at, size_t barrier, u64 phase) {
    return simt_transaction_test(shared_address(barrier), (u32)phase & 1, at.file, at.line) != 0;
}
template <class M> static inline void cp_async_mbarrier_arrive_(place at, size_t barrier) {
    simt_transaction_bind(shared_address(barrier), M::has(m_noinc), at.file, at.line);
}
template <class M> static inline void fence_mbarrier_init_() { simt_fence_mbarrier_init(); }
template <class M> static inline void fence_proxy_async_() { simt_fence_proxy(); }
template <class M> static inline void fence_proxy_tensormap__generic_(size_t map, u32) {
    simt_fence_tensor_map((const void *)map);
}

/* ---- clusters ------------------------------------------------------------ */
template <class M, class T> static inline T mapa_(T a, u32 rank) {
    if constexpr (M::has(m_shared__cluster))
        return (T)simt_mapa(a, rank);
    else
        return (T)(size_t)simt_map_shared((const void *)(size_t)a, rank);
}
template <class M> static inline void barrier_cluster_arrive_(place at) { simt_cluster_arrive(at.file, at.line); }
template <class M> static inline void barrier_cluster_wait_(place at) { simt_cluster_wait(at.file, at.line); }
template <class M> static inline void setmaxnreg_(u32 registers) {
    simt_set_registers(M::has(m_dec) ? "setmaxnreg.dec" : "setmaxnreg.inc", (int)registers);
}

/* ---- copies of tensors, whose coordinates come the innermost first, and of bytes that lie one behind the other --------------------------------- */
#define SIMT_PTX_TENSOR(rank, parameters, ...)                                                                                 \
    template <class M> static inline void tensor_load_(size_t to, size_t map, SIMT_UNPACK parameters, size_t barrier) {        \
        simt_tensor_load(to, (const void *)map, rank, __VA_ARGS__, barrier, SIMT_TO_OWN_BLOCK);                                \
    }                                                                                                                          \
    template <class M>                                                                                                         \
    static inline void tensor_multicast_(size_t to, size_t map, SIMT_UNPACK parameters, size_t barrier, u16 mask) {            \
        simt_tensor_load(to, (const void *)map, rank, __VA_ARGS__, barrier, mask);                                             \
    }                                                                                                                          \
    template <class M> static inline void tensor_store_(size_t map, SIMT_UNPACK parameters, size_t from) {                     \
        simt_tensor_store((const void *)map, rank, __VA_ARGS__, from);                                                         \
    }
SIMT_PTX_TENSOR(1, (b32 a), (int)a, 0, 0, 0, 0)
SIMT_PTX_TENSOR(2, (b32 a, b32 b), (int)a, (int)b, 0, 0, 0)
SIMT_PTX_TENSOR(3, (b32 a, b32 b, b32 c), (int)a, (int)b, (int)c, 0, 0)
SIMT_PTX_TENSOR(4, (b32 a, b32 b, b32 c, b32 d), (int)a, (int)b, (int)c, (int)d, 0)
SIMT_PTX_TENSOR(5, (b32 a, b32 b, b32 c, b32 d, b32 e), (int)a, (int)b, (int)c, (int)d, (int)e)
template <class M> static inline void bulk_load_(size_t to, size_t from, u32 bytes, size_t barrier) {
    simt_bulk_load(to, (const void *)from, bytes, barrier);
}
template <class M, class... T> static inline void bulk_store_(size_t to, size_t from, u32 bytes) {
    simt_bulk_store((void *)to, from, bytes, M::has(m_add));
}
template <class M> static inline void cp_async_bulk_commit_group_() { simt_bulk_commit(); }
template <class M> static inline void cp_async_bulk_wait_group_(u32 groups) { simt_bulk_wait(groups, M::has(m_read)); }

/* ---- tensor cores ------------------------------------------------------------ */
template <class M> constexpr int matrices = M::has(m_x4) ? 4 : M::has(m_x2) ? 2 : 1;
template <class M> static inline simt_registers ldmatrix_(place at, size_t row) {
    return simt_ldmatrix(shared_address(row), matrices<M>, M::has(m_trans), at.file, at.line);
}
template <class M> static inline void stmatrix_(place at, size_t row, u32 a, u32 b = 0, u32 c = 0, u32 d = 0) {
    simt_stmatrix(shared_address(row), matrices<M>, M::has(m_trans), a, b, c, d, at.file, at.line);
}
template <class M> static inline u32 movmatrix_(place at, u32 a) { return simt_movmatrix(a, 0, 0, 0, at.file, at.line).r[0]; }

/* Of fp32 sums, with two numbers of 16 bits or one of TF32 in a register: the shape that fills four registers of A, and half of it. */
template <class M, class D, class T>
static inline simt_floats mma_f32_(place at, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, f32 c0, f32 c1, f32 c2, f32 c3) {
    return simt_mma(is<T, f16>    ? simt_mma_half
                    : is<T, bf16> ? simt_mma_bfloat16
                                  : simt_mma_tf32,
                    c0, c1, c2, c3, a0, a1, a2, a3, b0, b1, at.file, at.line);
}
template <class M, class D, class T>
static inline simt_floats mma_f32_(place at, u32 a0, u32 a1, u32 b, f32 c0, f32 c1, f32 c2, f32 c3) {
    return mma_f32_<M, D, T>(at, a0, a1, 0, 0, b, 0, c0, c1, c2, c3); /* the upper half of the depth is zeros */
}
/* Of fp16 sums: C and the result are rounded to fp16. */
template <class M, class D, class T>
static inline values<b32, 2> mma_f16_(place at, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, u32 c0, u32 c1) {
    f16x2 c = simt::bit_cast<f16x2>(c0), e = simt::bit_cast<f16x2>(c1);
    simt_floats d = mma_f32_<M, f32, T>(at, a0, a1, a2, a3, b0, b1, (f32)wide(c.low), (f32)wide(c.high), (f32)wide(e.low),
                                        (f32)wide(e.high));
    return {{simt::bit_cast<b32>(f16x2{narrow<f16>(d.x[0]), narrow<f16>(d.x[1])}),
             simt::bit_cast<b32>(f16x2{narrow<f16>(d.x[2]), narrow<f16>(d.x[3])})}};
}
template <class M, class D, class T> static inline values<b32, 2> mma_f16_(place at, u32 a0, u32 a1, u32 b, u32 c0, u32 c1) {
    return mma_f16_<M, D, T>(at, a0, a1, 0, 0, b, 0, c0, c1);
}
/* Of integers of 8 bits. */
template <class M, class D, class A, class B, class... R> static inline auto mma_s32_(place at, R... r) {
    constexpr int k = M::has(m_m16n8k32) ? 32 : 16, rows = M::has(m_m8n8k16) ? 8 : 16, count = rows / 4;
    simt_registers d = simt_mma_integers(rows, k, is<A, s8>, is<B, s8>, M::has(m_satfinite), {{(u32)r...}}, at.file, at.line);
    if constexpr (count == 4)
        return d;
    else
        return values<b32, 2>{{d.r[0], d.r[1]}};
}

/* ---- products of a warpgroup ------------------------------------------------------------ */

/* The accumulators of a thread: an array in order. It is the kernel's own: the product writes it when it is waited for. */
struct accumulators {
    float *first;
    int count; /* 0: not an array in order */
};
template <bool, typename... F> static inline accumulators in_braces(float &first, F &...others) {
    int i = 0;
    bool in_order = ((&others == &first + ++i) && ...);
    return {&first, in_order ? 1 + (int)sizeof...(others) : 0};
}

/* Four registers of A. `array`: where they lie, if in the array of a caller of the wrapper around the instruction; otherwise NULL:
 * a variable of the wrapper itself ends before the product does. */
struct registers_of_A {
    simt_registers values;
    const unsigned *array;
};
template <bool OF_CALLER>
static inline registers_of_A in_braces(const unsigned &a, const unsigned &b, const unsigned &c, const unsigned &d) {
    if constexpr (OF_CALLER)
        if (&b == &a + 1 && &c == &a + 2 && &d == &a + 3) return {{{a, b, c, d}}, &a};
    return {{{a, b, c, d}}, nullptr};
}
/* Of BASE[...]: the types of BASE and, as an lvalue, of the element. */
template <class Base, class Element> constexpr bool of_caller = false;
template <class T> constexpr bool of_caller<T &, unsigned &> = true;
template <class T> constexpr bool of_caller<T &, const unsigned &> = true;
template <class T> constexpr bool of_caller<T *, unsigned &> = true;
template <class T> constexpr bool of_caller<T *, const unsigned &> = true;

template <class M> static inline void wgmma_fence_() { simt_wgmma_fence(); }
template <class M> static inline void wgmma_commit_group_(place at) { simt_wgmma_commit(at.file, at.line); }
template <class M> static inline void wgmma_wait_group_(place at, u32 groups) { simt_wgmma_wait(groups, at.file, at.line); }

template <class A, class B>
constexpr simt_wgmma_types types_of = is<A, f16>    ? SIMT_F16
                                      : is<A, bf16> ? SIMT_BF16
                                      : is<A, e4m3> ? (is<B, e4m3> ? SIMT_E4M3_E4M3 : SIMT_E4M3_E5M2)
                                                    : (is<B, e4m3> ? SIMT_E5M2_E4M3 : SIMT_E5M2_E5M2);

/* A from shared memory, and A from registers. 8-bit numbers have no transpositions. */
template <class M, class T, int N>
static inline void wgmma_mma_async_(place at, accumulators C, u64 A, u64 B, pred add, s32 scale_A, s32 scale_B, s32 transpose_A,
                                    s32 transpose_B) {
    simt_wgmma(types_of<T, T>, N, C.first, C.count, A, {}, nullptr, 0, B, add, scale_A, scale_B, transpose_A, transpose_B,
               at.file, at.line);
}
template <class M, class T, int N>
static inline void wgmma_mma_async_(place at, accumulators C, registers_of_A A, u64 B, pred add, s32 scale_A, s32 scale_B,
                                    s32 transpose_B) {
    simt_wgmma(types_of<T, T>, N, C.first, C.count, 0, A.values, A.array, 1, B, add, scale_A, scale_B, 0, transpose_B, at.file,
               at.line);
}
template <class M, class T, class U, int N>
static inline void wgmma_mma_async_(place at, accumulators C, u64 A, u64 B, pred add, s32 scale_A, s32 scale_B) {
    simt_wgmma(types_of<T, U>, N, C.first, C.count, A, {}, nullptr, 0, B, add, scale_A, scale_B, 0, 0, at.file, at.line);
}
template <class M, class T, class U, int N>
static inline void wgmma_mma_async_(place at, accumulators C, registers_of_A A, u64 B, pred add, s32 scale_A, s32 scale_B) {
    simt_wgmma(types_of<T, U>, N, C.first, C.count, 0, A.values, A.array, 1, B, add, scale_A, scale_B, 0, 0, at.file, at.line);
}
