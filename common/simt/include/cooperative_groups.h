/* Cooperative groups: a block, tiles of a warp, the lanes that are here, and in a cooperative launch the grid. */
#pragma once

#include "cuda_runtime.h"
#if __cplusplus >= 201703L /* nothing for an older file of the host */

namespace cooperative_groups {

class thread_block {
  public:
    void sync(SIMT_HERE) const { simt_block_barrier("thread_block::sync()", 0, file, line); }
    static unsigned thread_rank() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
    static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned num_threads() { return size(); }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }
    /* As NVIDIA has it: the wait is the barrier. */
    struct arrival_token {};
    static arrival_token barrier_arrive() { return {}; }
    static void barrier_wait(arrival_token &&, SIMT_HERE) { simt_block_barrier("thread_block::barrier_wait()", 0, file, line); }
};
/* What tiles of several warps need on a card; here the runtime has it. */
template <unsigned _THREADS = 1024> struct block_tile_memory { char first; };
static inline thread_block this_thread_block() { return thread_block(); }
template <unsigned _THREADS> static inline thread_block this_thread_block(block_tile_memory<_THREADS> &) { return {}; }

/* Lanes of one warp. */
class coalesced_group {
  protected:
    unsigned mask_;

  private:
    unsigned meta_rank_, meta_size_;

  public:
    explicit coalesced_group(unsigned mask, unsigned meta_rank = 0, unsigned meta_size = 1)
        : mask_(mask), meta_rank_(meta_rank), meta_size_(meta_size) {}
    unsigned mask() const { return mask_; }
    unsigned meta_group_rank() const { return meta_rank_; } /* of the groups that its parent was parted into */
    unsigned meta_group_size() const { return meta_size_; }
    unsigned thread_rank() const { return (unsigned)__builtin_popcount(mask_ & ((1u << simt_lane()) - 1)); }
    unsigned size() const { return (unsigned)__builtin_popcount(mask_); }
    unsigned num_threads() const { return size(); }
    /* The lane of the warp that has this rank. */
    int lane_of(unsigned rank) const {
        unsigned left = mask_;
        for (unsigned i = 0; i < rank && left != 0; i++) left &= left - 1;
        return left != 0 ? __builtin_ctz(left) : (int)simt_lane();
    }
    void sync(SIMT_HERE) const { __syncwarp(mask_, file, line); }
    /* `from`: the rank to read; the own one where the group has no such. */
#define SIMT_GROUP_SHUFFLE(suffix, type, from)                                                                                 \
    template <typename _T> _T shfl##suffix(_T value, type by, SIMT_HERE) const {                                               \
        unsigned rank = thread_rank(), source = from;                                                                          \
        return __shfl_sync(mask_, value, lane_of(source < size() ? source : rank), 32, file, line);                            \
    }
    SIMT_GROUP_SHUFFLE(, int, (unsigned)by % size())
    SIMT_GROUP_SHUFFLE(_up, unsigned, rank - by)
    SIMT_GROUP_SHUFFLE(_down, unsigned, rank + by)
    SIMT_GROUP_SHUFFLE(_xor, unsigned, rank ^ by)
    int any(int predicate, SIMT_HERE) const { return __any_sync(mask_, predicate, file, line); }
    int all(int predicate, SIMT_HERE) const { return __all_sync(mask_, predicate, file, line); }
    unsigned ballot(int predicate, SIMT_HERE) const { return ranks(__ballot_sync(mask_, predicate, file, line)); }
    template <typename _T> unsigned match_any(_T value, SIMT_HERE) const {
        return ranks(__match_any_sync(mask_, value, file, line));
    }
    template <typename _T> unsigned match_all(_T value, int &predicate, SIMT_HERE) const {
        return ranks(__match_all_sync(mask_, value, &predicate, file, line));
    }

  private:
    /* A bit for each lane becomes a bit for each rank. */
    unsigned ranks(unsigned lanes) const {
        unsigned result = 0, rank = 0;
        for (unsigned left = mask_; left != 0; left &= left - 1, rank++)
            if ((lanes & left & -left) != 0) result |= 1u << rank;
        return result;
    }
};
static inline coalesced_group coalesced_threads(SIMT_HERE) { return coalesced_group(simt_active_mask(file, line)); }

/* The threads with the same answer, or with the same label, of a tile or a group of lanes. */
static inline coalesced_group binary_partition(const coalesced_group &group, bool predicate, SIMT_HERE) {
    unsigned all = group.mask(), yes = __ballot_sync(all, predicate, file, line);
    bool parts = yes != 0 && yes != all;
    return coalesced_group(predicate ? yes : all & ~yes, parts && predicate, parts ? 2 : 1);
}
template <typename _T> static inline coalesced_group labeled_partition(const coalesced_group &group, _T label, SIMT_HERE) {
    static_assert(std::is_integral_v<_T> || std::is_pointer_v<_T>, "a label is an integer or a pointer");
    if constexpr (std::is_same_v<_T, bool>) return binary_partition(group, label, file, line);
    unsigned same = __match_any_sync(group.mask(), label, file, line), first = same & -same;
    unsigned firsts = __ballot_sync(group.mask(), first == 1u << simt_lane(), file, line);
    return coalesced_group(same, (unsigned)__builtin_popcount(firsts & (first - 1)), (unsigned)__builtin_popcount(firsts));
}

template <unsigned _SIZE, typename Parent = void> class thread_block_tile;
template <typename Group> struct simt_tile_size { static constexpr unsigned value = 0; }; /* of a block: not known */
template <unsigned _SIZE, typename Parent> struct simt_tile_size<thread_block_tile<_SIZE, Parent>> {
    static constexpr unsigned value = _SIZE;
};

/* Its place among the tiles that its parent was parted into. */
template <unsigned _SIZE, typename Parent> struct simt_tile_place {
    static constexpr unsigned _PARENT = simt_tile_size<Parent>::value;
    static constexpr unsigned size() { return _SIZE; }
    static constexpr unsigned num_threads() { return _SIZE; }
    static unsigned meta_group_rank() {
        return (_PARENT > 0 ? thread_block::thread_rank() % _PARENT : thread_block::thread_rank()) / _SIZE;
    }
    static unsigned meta_group_size() { return ((_PARENT > 0 ? _PARENT : thread_block::size()) + _SIZE - 1) / _SIZE; }
};

template <unsigned _SIZE, typename Parent>
class simt_warp_tile : public coalesced_group, public simt_tile_place<_SIZE, Parent> {
    typedef simt_tile_place<_SIZE, Parent> place;

  public:
    simt_warp_tile() : coalesced_group((_SIZE == 32 ? ~0u : (1u << _SIZE) - 1) << (simt_lane() & ~(_SIZE - 1))) {}
    unsigned thread_rank() const { return simt_lane() & (_SIZE - 1); }
    using place::meta_group_rank, place::meta_group_size, place::num_threads, place::size;
#define SIMT_TILE_SHUFFLE(suffix, type)                                                                                        \
    template <typename _T> _T shfl##suffix(_T value, type by, SIMT_HERE) const {                                               \
        return __shfl##suffix##_sync(mask_, value, by, _SIZE, file, line);                                                     \
    }
    SIMT_TILE_SHUFFLE(, int)
    SIMT_TILE_SHUFFLE(_up, unsigned)
    SIMT_TILE_SHUFFLE(_down, unsigned)
    SIMT_TILE_SHUFFLE(_xor, unsigned)
};
/* Of several warps: they meet at a barrier of their own, and their values at the barrier are the runtime's to keep. */
template <unsigned _SIZE, typename Parent> class simt_block_tile : public simt_tile_place<_SIZE, Parent> {
  public:
    static unsigned thread_rank() { return thread_block::thread_rank() % _SIZE; }
    void sync(SIMT_HERE) const { simt_tile_meet(_SIZE, 0, file, line); }
    template <typename _T> _T shfl(_T value, unsigned rank, SIMT_HERE) const {
        return simt::from_bits<_T>(simt_tile_value(_SIZE, simt_tile_meet(_SIZE, simt::to_bits(value), file, line), rank));
    }
    int any(int predicate, SIMT_HERE) const { return yes(predicate, file, line) > 0; }
    int all(int predicate, SIMT_HERE) const { return yes(predicate, file, line) == _SIZE; }

  private:
    static unsigned yes(int predicate, const char *file, int line) {
        unsigned round = simt_tile_meet(_SIZE, predicate != 0, file, line), count = 0;
        for (unsigned rank = 0; rank < _SIZE; rank++) count += simt_tile_value(_SIZE, round, rank) != 0;
        return count;
    }
};

template <unsigned _SIZE, typename Parent>
class thread_block_tile
    : public std::conditional_t<(_SIZE > 32), simt_block_tile<_SIZE, Parent>, simt_warp_tile<_SIZE, Parent>> {
    static_assert(_SIZE >= 1 && _SIZE <= 512 && (_SIZE & (_SIZE - 1)) == 0, "a tile has 1, 2, 4 and so on to 512 threads");

  public:
    thread_block_tile() {}
    template <typename Other> thread_block_tile(const thread_block_tile<_SIZE, Other> &) {}
};
template <unsigned _SIZE, typename Parent> static inline thread_block_tile<_SIZE, Parent> tiled_partition(const Parent &) {
    return thread_block_tile<_SIZE, Parent>();
}

/* A block, a tile or a group of lanes whose size is known when the kernel runs. */
class thread_group : public coalesced_group {
    bool is_block_;

  public:
    thread_group(const thread_block &) : coalesced_group(0), is_block_(true) {}
    thread_group(const coalesced_group &group) : coalesced_group(group), is_block_(false) {}
    unsigned thread_rank() const { return is_block_ ? thread_block::thread_rank() : coalesced_group::thread_rank(); }
    unsigned size() const { return is_block_ ? thread_block::size() : coalesced_group::size(); }
    unsigned num_threads() const { return size(); }
    void sync(SIMT_HERE) const {
        if (is_block_)
            simt_block_barrier("thread_group::sync()", 0, file, line);
        else
            __syncwarp(mask_, file, line);
    }
};
static inline coalesced_group tiled_partition(const thread_group &, unsigned size) {
    return coalesced_group((size >= 32 ? ~0u : (1u << size) - 1) << (simt_lane() & ~(size - 1)));
}

class grid_group {
  public:
    static bool is_valid() { return simt_is_cooperative() != 0; }
    void sync(SIMT_HERE) const { simt_grid_barrier("grid_group::sync()", file, line); }
    static unsigned long long thread_rank() { return block_rank() * thread_block::size() + thread_block::thread_rank(); }
    static unsigned long long size() { return num_blocks() * thread_block::size(); }
    static unsigned long long num_threads() { return size(); }
    typedef thread_block::arrival_token arrival_token;
    static arrival_token barrier_arrive() { return {}; }
    void barrier_wait(arrival_token &&, SIMT_HERE) const { simt_grid_barrier("grid_group::barrier_wait()", file, line); }
    static dim3 group_dim() { return gridDim; }
    static dim3 dim_blocks() { return gridDim; }
    static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
    static unsigned long long block_rank() {
        return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    }
};
static inline grid_group this_grid() { return grid_group(); }

/* The blocks of a cluster, which may use the shared memory of one another. */
class cluster_group {
  public:
    typedef thread_block::arrival_token arrival_token;
    static arrival_token barrier_arrive(SIMT_HERE) { return simt_cluster_arrive(file, line), arrival_token(); }
    static void barrier_wait(SIMT_HERE) { simt_cluster_wait(file, line); }
    static void barrier_wait(arrival_token &&, SIMT_HERE) { simt_cluster_wait(file, line); }
    static void sync(SIMT_HERE) {
        simt_cluster_arrive(file, line);
        simt_cluster_wait(file, line);
    }
    static unsigned block_rank() { return simt_cluster_rank(); }
    static unsigned num_blocks() { return simt_cluster_size(); }
    static unsigned thread_rank() { return simt_cluster_rank() * thread_block::size() + thread_block::thread_rank(); }
    static unsigned num_threads() { return simt_cluster_size() * thread_block::size(); }
    template <typename _T> static _T *map_shared_rank(_T *pointer, int rank) {
        return (_T *)simt_map_shared((const void *)pointer, (unsigned)rank);
    }
};
static inline cluster_group this_cluster() { return cluster_group(); }

template <typename Group> static inline void sync(const Group &group, SIMT_HERE) { group.sync(file, line); }

template <typename Group, typename _F> static inline void invoke_one(const Group &group, _F function) {
    if (group.thread_rank() == 0) function();
}
} // namespace cooperative_groups
#endif
