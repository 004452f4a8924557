/* Memory, atomic operations, warps and barriers: a part of simt_ptx.h, inside of its namespace. */
#pragma once

/* A table of functions, one below the other. */
/* clang-format off */

/* ---- memory ------------------------------------------------------------ */
static inline unsigned warp() { return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32; }
static inline unsigned multiprocessor() { /* blocks go to them in turn */
    return (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z)) % simt_multiprocessors();
}
static inline unsigned warps() { return (blockDim.x * blockDim.y * blockDim.z + 31) / 32; }

template <class T, int N> struct of_width { typedef T type __attribute__((vector_size(N * sizeof(T)))); };
template <class M> constexpr simt_scope scope = M::has(m_cta) ? SIMT_CTA : M::has(m_cluster) ? SIMT_CLUSTER : SIMT_DEVICE;
template <class M> struct in_scope { /* of M, where this is less than the device */
    in_scope() { if constexpr (scope<M> != SIMT_DEVICE) ::simt_set_scope(scope<M>); }
    ~in_scope() { if constexpr (scope<M> != SIMT_DEVICE) ::simt_set_scope(SIMT_NO_SCOPE); }
};
template <class M> constexpr int width = M::has(m_v4) ? 4 : M::has(m_v2) ? 2 : 1;
template <class M> constexpr bool is_watched = M::has(m_volatile) || M::has(m_relaxed) || M::has(m_cv);
template <class M, class T> static inline auto ld_(size_t a) {
    if constexpr (width<M> == 1) {
        if constexpr (is_watched<M>) return *(const volatile T *)pointer<M>(a);
        else return *(const T *)pointer<M>(a);
    } else {
        typename of_width<T, width<M>>::type all;
        if constexpr (is_watched<M>) all = *(const volatile typename of_width<T, width<M>>::type *)pointer<M>(a);
        else all = *(const typename of_width<T, width<M>>::type *)pointer<M>(a);
        if constexpr (width<M> == 2) return values<T, 2>{{all[0], all[1]}};
        else return values<T, 4>{{all[0], all[1], all[2], all[3]}};
    }
}
/* Of 4 bytes of global memory an acquire is the semaphore's (collectives/semaphore.c); another is a read and a fence. */
template <class M, class T> static inline auto ld_(place at, size_t a) {
    in_scope<M> here;
    if constexpr (M::has(m_relaxed)) return ld_<M, T>(a);
    else if constexpr (sizeof(T) == 4 && width<M> == 1 && !M::is_shared) return simt::bit_cast<T>(simt_load_acquire((const void *)a, scope<M>,
        at.file, at.line));
    else {
        auto all = ld_<mods<m_volatile, M::is_shared ? m_shared : m_global, width<M> == 4 ? m_v4 : width<M> == 2 ? m_v2 : m_global>, T>(a);
        simt_fence(scope<M>, SIMT_ACQUIRE);
        return all;
    }
}
template <class M, class T> static inline auto ldu_(size_t a) { return ld_<M, T>(a); }
template <class M, class T, class... V> static inline void st_(size_t a, T first, V... rest) {
    in_scope<M> here;
    if constexpr (M::has(m_release)) simt_fence(scope<M>, SIMT_RELEASE);
    if constexpr (sizeof...(V) == 0) {
        if constexpr (is_watched<M> || M::has(m_release)) *(volatile T *)pointer<M>(a) = first;
        else *(T *)pointer<M>(a) = first;
    } else {
        typedef typename of_width<T, 1 + sizeof...(V)>::type all;
        static_assert(1 + sizeof...(V) == width<M>, "a store of another number of values than its width");
        if constexpr (is_watched<M> || M::has(m_release)) *(volatile all *)pointer<M>(a) = all{first, rest...};
        else *(all *)pointer<M>(a) = all{first, rest...};
    }
}
template <class M, class... T> static inline void prefetch_(size_t, T...) {}
template <class M, class... T> static inline void prefetchu_(size_t) {}
template <class M, class T> static inline T cvta_(T a) {
    if constexpr (!M::is_shared) return a;
    else if constexpr (M::has(m_to)) return (T)simt_shared_address((const void *)(size_t)a);
    else return (T)(size_t)simt_shared_pointer(a);
}
template <class M> static inline pred isspacep_(u64 a) { return M::has(m_local) || M::has(m_const) ? false
    : M::is_shared == (simt_is_shared((const void *)a) != 0); }
template <class M> static inline u64 createpolicy_fractional_(f32 = 1) { return 0; }

/* ---- atomic operations ------------------------------------------------------------ */
template <class T> constexpr simt_atomic_type atomic_type = is<T, f32> ? SIMT_FLOAT : is<T, f64> ? SIMT_DOUBLE : is<T, s32> ? SIMT_INT
    : is<T, s64> ? SIMT_SIGNED_LONG : sizeof(T) == 8 ? SIMT_LONG : SIMT_UNSIGNED;
template <class M> constexpr simt_atomic_operation atomic_operation = M::has(m_add) ? SIMT_ADD : M::has(m_min) ? SIMT_MIN : M::has(m_max) ? SIMT_MAX
    : M::has(m_and) ? SIMT_AND : M::has(m_or) ? SIMT_OR : M::has(m_xor) ? SIMT_XOR : M::has(m_exch) ? SIMT_EXCHANGE : M::has(m_cas)
        ? SIMT_COMPARE_AND_SWAP
    : M::has(m_inc) ? SIMT_INCREMENT : SIMT_DECREMENT;
template <class M> constexpr bool is_ordered = M::has(m_acquire) || M::has(m_release) || M::has(m_acq_rel);
template <class M, class T> static inline T update(size_t a, T operand, T compare = T{}) {
    in_scope<std::conditional_t<sizeof(T) == 2, mods<>, M>> here; /* the other half of a word is another one */
    void *at = pointer<M>(a);
    if constexpr (sizeof(T) == 2) { /* within the 4 bytes around it */
        u32 *word = (u32 *)((size_t)at & ~(size_t)3), shift = (u32)(size_t)at % 4 * 8, old = atomicAdd(word, 0u), seen;
        T before;
        do {
            seen = old;
            before = simt::bit_cast<T>((u16)(seen >> shift));
            T after = operand;
            if constexpr (is_half<T>) after = add_<mods<>, T>(before, operand);
            else if (before != compare) break;
            old = atomicCAS(word, seen, (seen & ~(0xffffu << shift)) | (u32)simt::bit_cast<u16>(after) << shift);
        } while (old != seen);
        return before;
    } else if constexpr (is_pair<T>) {
        u32 old = atomicAdd((u32 *)at, 0u), seen;
        do seen = old, old = atomicCAS((u32 *)at, seen, simt::bit_cast<u32>(add_<mods<>, T>(simt::bit_cast<T>(seen), operand)));
        while (old != seen);
        return simt::bit_cast<T>(seen);
    } else {
        return simt::from_bits<T>(simt_atomic(atomic_operation<M>, atomic_type<T>, at, simt::to_bits(operand), simt::to_bits(compare)));
    }
}
template <class M, class T> static inline T atom_(size_t a, T b) {
    if constexpr (is_ordered<M>) simt_fence(scope<M>, M::has(m_release) ? SIMT_RELEASE : M::has(m_acquire) ? SIMT_ACQUIRE : SIMT_FENCE);
    return update<M, T>(a, b);
}
template <class M, class T> static inline T atom_(size_t a, T compare, T value) {
    if constexpr (is_ordered<M>) simt_fence(scope<M>, M::has(m_release) ? SIMT_RELEASE : M::has(m_acquire) ? SIMT_ACQUIRE : SIMT_FENCE);
    return update<M, T>(a, value, compare);
}
template <class M, class T> static inline values<T, 4> atom_(size_t p, T a, T b, T c, T d) {
    return {{update<M>(p, a), update<M>(p + 4, b), update<M>(p + 8, c), update<M>(p + 12, d)}};
}
template <class M, class T> static inline void red_(size_t a, T b) {
    if constexpr (M::has(m_release) && M::has(m_add) && sizeof(T) == 4 && std::is_integral_v<T> && !M::is_shared) {
        in_scope<M> here;
        simt_reduce_release((void *)a, (u32)b, scope<M>);
    } else {
        if constexpr (M::has(m_release)) simt_fence(scope<M>, SIMT_RELEASE);
        update<M, T>(a, b);
    }
}
template <class M, class T> static inline void red_(size_t p, T a, T b) { update<M>(p, a), update<M>(p + 4, b); }
template <class M, class T> static inline void red_(size_t p, T a, T b, T c, T d) {
    float operand[] = {a, b, c, d};
    simt_reduce_add4((float *)p, operand);
}
template <class M> static inline void membar_() { simt_fence(scope<M>, SIMT_FENCE); }
template <class M> static inline void fence_() { simt_fence(scope<M>, SIMT_FENCE); }

/* ---- warps ------------------------------------------------------------ */
/* c: from bit 8 on the lanes that a lane may not leave, below the last one of them. y: was the source within? */
template <class M, class T, class D, class P> static inline void shfl_sync_(place at, D &&d, P &&p, T a, u32 b, u32 c, u32 mask) {
    constexpr simt_exchanged how = M::has(m_up) ? simt_shfl_up : M::has(m_down) ? simt_shfl_down : M::has(m_bfly) ? simt_shfl_xor : simt_shfl;
    int lane = (int)simt_lane(), segment = (int)(c >> 8 & 31), last = (lane & segment) | ((int)c & 31 & ~segment), lowest = lane & segment;
    b &= 31;
    int source = M::has(m_up) ? lane - (int)b : M::has(m_down) ? lane + (int)b : M::has(m_bfly) ? lane ^ (int)b : lowest | ((int)b & ~segment);
    bool is_within = M::has(m_up) ? source >= last : source <= last;
    put(d, (T)simt_exchange(how, mask, a, is_within ? source : lane, at.file, at.line));
    put(p, is_within);
}
template <class M, class T> static inline T vote_sync_(place at, pred p, u32 mask) {
    if constexpr (M::has(m_uni)) {
        u32 all = (u32)simt_exchange(simt_ballot, mask, p, 0, at.file, at.line);
        return all == 0 || (p && simt_exchange(simt_all, mask, p, 0, at.file, at.line) != 0);
    } else {
        return (T)simt_exchange(M::has(m_ballot) ? simt_ballot : M::has(m_any) ? simt_any : simt_all, mask, p, 0, at.file, at.line);
    }
}
template <class M, class T> static inline u32 activemask_(place at) { return simt_active_mask(at.file, at.line); }
template <class M, class T> static inline u32 match_any_sync_(place at, T a, u32 mask) { return (u32)simt_exchange(simt_match_any, mask, a, 0,
    at.file, at.line); }
template <class M, class T, class D, class P> static inline void match_all_sync_(place at, D &&d, P &&p, T a, u32 mask) {
    u32 lanes = (u32)simt_exchange(simt_match_all, mask, a, 0, at.file, at.line);
    put(d, lanes);
    put(p, lanes != 0);
}
template <class M, class T> static inline T redux_sync_(place at, T a, u32 mask) {
    constexpr bool is_signed = is<T, s32>;
    constexpr simt_exchanged how = M::has(m_add) ? simt_reduce_add : M::has(m_and) ? simt_reduce_and : M::has(m_or) ? simt_reduce_or
        : M::has(m_xor) ? simt_reduce_xor
        : M::has(m_min) ? (is_signed ? simt_reduce_min_signed : simt_reduce_min) : is_signed ? simt_reduce_max_signed : simt_reduce_max;
    return (T)simt_exchange(how, mask, (u32)a, 0, at.file, at.line);
}
/* p is true in the lane d alone. The lanes meet, but their accesses to memory are not ordered by that. */
template <class M, class D, class P> static inline void elect_sync_(place at, D &&d, P &&p, u32 mask) {
    u32 lane = (u32)simt_exchange(simt_elect, mask, 0, 0, at.file, at.line);
    put(d, lane);
    put(p, lane == simt_lane());
}

/* ---- barriers and control ------------------------------------------------------------ */
template <class M> static inline void bar_sync_(place at, u32 number) {
    if (number == 0) simt_block_barrier("bar.sync 0", 0, at.file, at.line);
    else simt_named_barrier((int)number, (int)(blockDim.x * blockDim.y * blockDim.z), 1, at.file, at.line);
}
template <class M> static inline void bar_sync_(place at, u32 number, u32 threads) { simt_named_barrier((int)number, (int)threads, 1, at.file,
    at.line); }
template <class M> static inline void bar_arrive_(place at, u32 number, u32 threads) { simt_named_barrier((int)number, (int)threads, 0, at.file,
    at.line); }
template <class M, class T> static inline T bar_red_(place at, u32, pred p) {
    if constexpr (M::has(m_and)) return simt_block_barrier("bar.red.and", !p, at.file, at.line) == 0;
    else if constexpr (M::has(m_or)) return simt_block_barrier("bar.red.or", p, at.file, at.line) != 0;
    else return (T)simt_block_barrier("bar.red.popc", p, at.file, at.line);
}
template <class M> static inline void bar_warp_sync_(place at, u32 mask) { __syncwarp(mask, at.file, at.line); }
template <class M> static inline void nanosleep_(u32) { simt_give_way(); }
template <class M> static inline void trap_() { simt_trap(); }
template <class M> static inline void brkpt_() { simt_trap(); }
template <class M> static inline void griddepcontrol_() {} /* kernels of a stream run one after another */
