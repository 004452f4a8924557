/* The instructions of Hopper that inline PTX may name: a part of simt_ptx.h, inside of its namespace. */
#pragma once

struct sink {}; /* a result that nobody wants: _ */

template <typename D> static inline void setp_ne_b32(bool &p, D a, unsigned b) { p = (unsigned)a != b; }
template <typename D> static inline void selp_u32(D &d, unsigned a, unsigned b, bool p) { d = (D)(p ? a : b); }

/* elect.sync d|p, mask: p is true in the lane d alone. The lanes meet, but their accesses to memory are not ordered by that. */
template <typename D> static inline void elect_sync(D &d, bool &p, unsigned mask, SIMT_HERE) {
    d = (D)simt_exchange(&simt_elect, mask, 0, 0, file, line);
    p = d == (D)simt_lane();
}
static inline void elect_sync(sink, bool &p, unsigned mask, SIMT_HERE) {
    unsigned lane;
    elect_sync(lane, p, mask, file, line);
}

/* ---- mbarriers ---- */
static inline void mbarrier_init_shared__cta_b64(size_t barrier, unsigned count) { simt_transaction_init(barrier, count); }
#define SIMT_PTX_ARRIVE(name, whose, parameters, count, bytes, what)                                                           \
    static inline void name(SIMT_UNPACK parameters, SIMT_HERE) {                                                               \
        simt_##whose##_arrive(barrier, count, bytes, what, file, line);                                                        \
    }
SIMT_PTX_ARRIVE(mbarrier_arrive_shared__cta_b64, transaction, (sink, size_t barrier), 1, 0, "mbarrier.arrive")
SIMT_PTX_ARRIVE(mbarrier_arrive_shared__cta_b64, transaction, (sink, size_t barrier, unsigned count), count, 0,
                "mbarrier.arrive")
SIMT_PTX_ARRIVE(mbarrier_arrive_expect_tx_shared__cta_b64, transaction, (sink, size_t barrier, unsigned bytes), 1, bytes,
                "mbarrier.arrive.expect_tx")
SIMT_PTX_ARRIVE(mbarrier_expect_tx_relaxed_cta_shared__cta_b64, transaction, (size_t barrier, unsigned bytes), 0, bytes,
                "mbarrier.expect_tx")
SIMT_PTX_ARRIVE(mbarrier_arrive_shared__cluster_b64, remote, (sink, size_t barrier), 1, 0, "mbarrier.arrive")
SIMT_PTX_ARRIVE(mbarrier_arrive_release_cluster_shared__cluster_b64, remote, (sink, size_t barrier), 1, 0, "mbarrier.arrive")
static inline void mbarrier_try_wait_parity_shared__cta_b64(bool &p, size_t barrier, unsigned parity, SIMT_HERE) {
    simt_transaction_wait(barrier, parity, file, line);
    p = true;
}
static inline void fence_mbarrier_init_release_cluster() { simt_fence_mbarrier_init(); }
static inline void fence_proxy_async_shared__cta() { simt_fence_proxy(); }
static inline void fence_proxy_async() { simt_fence_proxy(); }

/* ---- clusters ---- */
static inline unsigned cluster_ctarank() { return simt_cluster_rank(); }
static inline unsigned cluster_nctarank() { return simt_cluster_size(); }
template <typename D> static inline void mapa_shared__cluster_u32(D &d, size_t address, unsigned rank) {
    d = (D)simt_mapa(address, rank);
}
template <typename D, typename P> static inline void mapa_u64(D &d, P pointer, unsigned rank) {
    d = (D)simt_map_shared((const void *)pointer, rank);
}
#define SIMT_PTX_CLUSTER_BARRIER(order_of_arrive, order_of_wait, aligned)                                                      \
    static inline void barrier_cluster_arrive##order_of_arrive##aligned(SIMT_HERE) { simt_cluster_arrive(file, line); }        \
    static inline void barrier_cluster_wait##order_of_wait##aligned(SIMT_HERE) { simt_cluster_wait(file, line); }
SIMT_PTX_CLUSTER_BARRIER(, , )
SIMT_PTX_CLUSTER_BARRIER(, , _aligned)
SIMT_PTX_CLUSTER_BARRIER(_release, _acquire, )
SIMT_PTX_CLUSTER_BARRIER(_release, _acquire, _aligned)
#define SIMT_PTX_DISTRIBUTED(suffix, type)                                                                                     \
    template <typename D> static inline void ld_shared__cluster_##suffix(D &d, size_t p) {                                     \
        d = (D) * (const type *)simt_shared_pointer(p);                                                                        \
    }                                                                                                                          \
    template <typename A> static inline void st_shared__cluster_##suffix(size_t p, A a) {                                      \
        *(type *)simt_shared_pointer(p) = (type)a;                                                                             \
    }
SIMT_PTX_DISTRIBUTED(f32, float)
SIMT_PTX_DISTRIBUTED(u32, unsigned)
SIMT_PTX_DISTRIBUTED(s32, int)
SIMT_PTX_DISTRIBUTED(b32, unsigned)
SIMT_PTX_DISTRIBUTED(u64, uint64_t)

/* ---- named barriers, registers ---- */
static inline void bar_sync(int number, int threads, SIMT_HERE) { simt_named_barrier(number, threads, 1, file, line); }
static inline void bar_arrive(int number, int threads, SIMT_HERE) { simt_named_barrier(number, threads, 0, file, line); }
static inline void setmaxnreg_dec_sync_aligned_u32(int registers) { simt_set_registers("setmaxnreg.dec", registers); }
static inline void setmaxnreg_inc_sync_aligned_u32(int registers) { simt_set_registers("setmaxnreg.inc", registers); }

/* ---- copies of tensors: the box's coordinates, the innermost first ---- */
#define SIMT_PTX_TENSOR(rank, parameters, ...)                                                                                 \
    static inline void cp_async_bulk_tensor_##rank##d_shared__cluster_global_mbarrier__complete_tx__bytes(                     \
        size_t to, const void *map, SIMT_UNPACK parameters, size_t barrier) {                                                  \
        simt_tensor_load(to, map, rank, __VA_ARGS__, barrier, SIMT_TO_OWN_BLOCK);                                              \
    }                                                                                                                          \
    static inline void cp_async_bulk_tensor_##rank##d_shared__cluster_global_mbarrier__complete_tx__bytes_multicast__cluster(  \
        size_t to, const void *map, SIMT_UNPACK parameters, size_t barrier, unsigned short mask) {                             \
        simt_tensor_load(to, map, rank, __VA_ARGS__, barrier, mask);                                                           \
    }                                                                                                                          \
    static inline void cp_async_bulk_tensor_##rank##d_global_shared__cta_bulk_group(const void *map, SIMT_UNPACK parameters,   \
                                                                                    size_t from) {                             \
        simt_tensor_store(map, rank, __VA_ARGS__, from);                                                                       \
    }
SIMT_PTX_TENSOR(1, (int a), a, 0, 0, 0, 0)
SIMT_PTX_TENSOR(2, (int a, int b), a, b, 0, 0, 0)
SIMT_PTX_TENSOR(3, (int a, int b, int c), a, b, c, 0, 0)
SIMT_PTX_TENSOR(4, (int a, int b, int c, int d), a, b, c, d, 0)
SIMT_PTX_TENSOR(5, (int a, int b, int c, int d, int e), a, b, c, d, e)

/* ---- copies of bytes that lie one behind the other ---- */
static inline void cp_async_bulk_shared__cluster_global_mbarrier__complete_tx__bytes(size_t to, const void *from,
                                                                                     unsigned bytes, size_t barrier) {
    simt_bulk_load(to, from, bytes, barrier);
}
static inline void cp_async_bulk_global_shared__cta_bulk_group(void *to, size_t from, unsigned bytes) {
    simt_bulk_store(to, from, bytes, 0);
}
static inline void cp_reduce_async_bulk_global_shared__cta_bulk_group_add_f32(void *to, size_t from, unsigned bytes) {
    simt_bulk_store(to, from, bytes, 1);
}
static inline void cp_async_bulk_commit_group() { simt_bulk_commit(); }
static inline void cp_async_bulk_wait_group(int groups) { simt_bulk_wait((unsigned)groups, 0); }
static inline void cp_async_bulk_wait_group_read(int groups) { simt_bulk_wait((unsigned)groups, 1); }

/* ---- products of a warpgroup ---- */

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

static inline void wgmma_fence_sync_aligned() { simt_wgmma_fence(); }
static inline void wgmma_commit_group_sync_aligned(SIMT_HERE) { simt_wgmma_commit(file, line); }
static inline void wgmma_wait_group_sync_aligned(int groups, SIMT_HERE) { simt_wgmma_wait((unsigned)groups, file, line); }

/* A from shared memory, and A from registers. */
#define SIMT_PTX_WGMMA(N, type, is_bfloat16)                                                                                   \
    static inline void wgmma_mma_async_sync_aligned_m64n##N##k16_f32_##type##_##type(                                          \
        accumulators C, uint64_t A, uint64_t B, bool add, int scale_A, int scale_B, int transpose_A, int transpose_B,          \
        SIMT_HERE) {                                                                                                           \
        simt_wgmma(is_bfloat16, N, C.first, C.count, A, {}, nullptr, 0, B, add, scale_A, scale_B, transpose_A, transpose_B,    \
                   file, line);                                                                                                \
    }                                                                                                                          \
    static inline void wgmma_mma_async_sync_aligned_m64n##N##k16_f32_##type##_##type(                                          \
        accumulators C, registers_of_A A, uint64_t B, bool add, int scale_A, int scale_B, int transpose_B, SIMT_HERE) {        \
        simt_wgmma(is_bfloat16, N, C.first, C.count, 0, A.values, A.array, 1, B, add, scale_A, scale_B, 0, transpose_B, file,  \
                   line);                                                                                                      \
    }
#define SIMT_PTX_WGMMA_2(N) SIMT_PTX_WGMMA(N, bf16, 1) SIMT_PTX_WGMMA(N, f16, 0)
#define SIMT_PTX_WGMMA_8(a, b, c, d) SIMT_PTX_WGMMA_2(a) SIMT_PTX_WGMMA_2(b) SIMT_PTX_WGMMA_2(c) SIMT_PTX_WGMMA_2(d)
#define SIMT_PTX_WGMMA_16(a, b, c, d, e, f, g, h) SIMT_PTX_WGMMA_8(a, b, c, d) SIMT_PTX_WGMMA_8(e, f, g, h)
SIMT_PTX_WGMMA_16(8, 16, 24, 32, 40, 48, 56, 64)
SIMT_PTX_WGMMA_16(72, 80, 88, 96, 104, 112, 120, 128)
SIMT_PTX_WGMMA_16(136, 144, 152, 160, 168, 176, 184, 192)
SIMT_PTX_WGMMA_16(200, 208, 216, 224, 232, 240, 248, 256)
