/* Cooperative groups: a block, tiles of a warp, the lanes that are here, and in a cooperative launch the grid. */
#pragma once

#include "simt_device.h"

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
};
static inline thread_block this_thread_block() { return thread_block(); }

/* Lanes of one warp. */
class coalesced_group {
  protected:
    unsigned mask_;

  public:
    explicit coalesced_group(unsigned mask) : mask_(mask) {}
    unsigned mask() const { return mask_; }
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
    template <typename T> T shfl##suffix(T value, type by, SIMT_HERE) const {                                                  \
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
    template <typename T> unsigned match_any(T value, SIMT_HERE) const {
        return ranks(__match_any_sync(mask_, value, file, line));
    }
    template <typename T> unsigned match_all(T value, int &predicate, SIMT_HERE) const {
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

template <unsigned SIZE, typename Parent = void> class thread_block_tile;
template <typename Group> struct simt_tile_size { static constexpr unsigned value = 0; }; /* of a block: not known */
template <unsigned SIZE, typename Parent> struct simt_tile_size<thread_block_tile<SIZE, Parent>> {
    static constexpr unsigned value = SIZE;
};

template <unsigned SIZE, typename Parent> class thread_block_tile : public coalesced_group {
    static constexpr unsigned PARENT = simt_tile_size<Parent>::value;
    static_assert(SIZE >= 1 && SIZE <= 32 && (SIZE & (SIZE - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");

  public:
    thread_block_tile() : coalesced_group((SIZE == 32 ? ~0u : (1u << SIZE) - 1) << (simt_lane() & ~(SIZE - 1))) {}
    template <typename Other> thread_block_tile(const thread_block_tile<SIZE, Other> &) : thread_block_tile() {}
    unsigned thread_rank() const { return simt_lane() & (SIZE - 1); }
    static constexpr unsigned size() { return SIZE; }
    static constexpr unsigned num_threads() { return SIZE; }
    unsigned meta_group_rank() const {
        return (PARENT > 0 ? thread_block::thread_rank() % PARENT : thread_block::thread_rank()) / SIZE;
    }
    unsigned meta_group_size() const { return ((PARENT > 0 ? PARENT : thread_block::size()) + SIZE - 1) / SIZE; }
#define SIMT_TILE_SHUFFLE(suffix, type)                                                                                        \
    template <typename T> T shfl##suffix(T value, type by, SIMT_HERE) const {                                                  \
        return __shfl##suffix##_sync(mask_, value, by, SIZE, file, line);                                                      \
    }
    SIMT_TILE_SHUFFLE(, int)
    SIMT_TILE_SHUFFLE(_up, unsigned)
    SIMT_TILE_SHUFFLE(_down, unsigned)
    SIMT_TILE_SHUFFLE(_xor, unsigned)
};
template <unsigned SIZE, typename Parent> static inline thread_block_tile<SIZE, Parent> tiled_partition(const Parent &) {
    return thread_block_tile<SIZE, Parent>();
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
    static void barrier_arrive(SIMT_HERE) { simt_cluster_arrive(file, line); }
    static void barrier_wait(SIMT_HERE) { simt_cluster_wait(file, line); }
    static void sync(SIMT_HERE) {
        simt_cluster_arrive(file, line);
        simt_cluster_wait(file, line);
    }
    static unsigned block_rank() { return simt_cluster_rank(); }
    static unsigned num_blocks() { return simt_cluster_size(); }
    static unsigned thread_rank() { return simt_cluster_rank() * thread_block::size() + thread_block::thread_rank(); }
    static unsigned num_threads() { return simt_cluster_size() * thread_block::size(); }
    template <typename T> static T *map_shared_rank(T *pointer, int rank) {
        return (T *)simt_map_shared((const void *)pointer, (unsigned)rank);
    }
};
static inline cluster_group this_cluster() { return cluster_group(); }

template <typename Group> static inline void sync(const Group &group, SIMT_HERE) { group.sync(file, line); }

template <typename Group, typename F> static inline void invoke_one(const Group &group, F function) {
    if (group.thread_rank() == 0) function();
}
} // namespace cooperative_groups
