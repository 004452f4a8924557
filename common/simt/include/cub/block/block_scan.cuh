/* CUB's primitives of a warp and of a block, by its names and its rules of temporary storage (nvidia.github.io/cccl/cub): all threads
 * call, a storage serves one call, and before the next one there is a barrier. Results are CUB's, but for the order of sums; requests
 * and barriers are not, since these are not its algorithms, and arguments that choose one choose nothing. Of the functions of a whole
 * device those that reduce and scan are here, on one block. */
#pragma once

#include "../../cuda_runtime.h"
#include <cstring>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

namespace cub {

/* ---- operators and algorithms --------------------------------------------------------------------------------------------- */

struct Sum {
    template <typename _T> __host__ __device__ _T operator()(const _T &a, const _T &b) const { return a + b; }
};
struct Max {
    template <typename _T> __host__ __device__ _T operator()(const _T &a, const _T &b) const { return a < b ? b : a; }
};
struct Min {
    template <typename _T> __host__ __device__ _T operator()(const _T &a, const _T &b) const { return b < a ? b : a; }
};
template <typename _Key, typename _Value> struct KeyValuePair {
    typedef _Key Key;
    typedef _Value Value;
    _Key key;
    _Value value;
};
/* Of the larger, or smaller, values the one with the smallest key. */
struct ArgMax {
    template <typename _K, typename _V>
    __host__ __device__ KeyValuePair<_K, _V> operator()(const KeyValuePair<_K, _V> &a, const KeyValuePair<_K, _V> &b) const {
        return b.value > a.value || (b.value == a.value && b.key < a.key) ? b : a;
    }
};
struct ArgMin {
    template <typename _K, typename _V>
    __host__ __device__ KeyValuePair<_K, _V> operator()(const KeyValuePair<_K, _V> &a, const KeyValuePair<_K, _V> &b) const {
        return b.value < a.value || (b.value == a.value && b.key < a.key) ? b : a;
    }
};
struct NullType {};
enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm {
    BLOCK_LOAD_DIRECT,
    BLOCK_LOAD_STRIPED,
    BLOCK_LOAD_VECTORIZE,
    BLOCK_LOAD_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
    BLOCK_STORE_DIRECT,
    BLOCK_STORE_STRIPED,
    BLOCK_STORE_VECTORIZE,
    BLOCK_STORE_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};

/* ---- a warp ---------------------------------------------------------------------------------------------------------------- */

__device__ inline unsigned LaneId() { return simt_lane(); }
__device__ inline int RowMajorTid(int x, int y, int) { return (int)(threadIdx.x + x * (threadIdx.y + y * threadIdx.z)); }

namespace detail {
/* A value of any size from another lane, word by word. */
template <typename _T> __device__ _T read_lane(unsigned mask, _T value, int lane) {
    unsigned words[(sizeof(_T) + 3) / 4] = {};
    memcpy(words, (const void *)&value, sizeof(_T));
    for (unsigned &word : words) word = __shfl_sync(mask, word, lane);
    memcpy((void *)&value, words, sizeof(_T));
    return value;
}
/* From the lane `by` above, or below where it is negative. The own one where `width` lanes have no such lane, or a block's last warp. */
template <typename _T> __device__ _T shifted(unsigned mask, const _T &value, int by, int width) {
    int lane = (int)simt_lane(), from = lane + by;
    return read_lane(mask, value, from >= 0 && from / width == lane / width && (mask >> from % 32 & 1) != 0 ? from : lane);
}
/* In the first of `width` lanes: all values of the first `valid` lanes. */
template <typename _T, typename _Op> __device__ _T reduced(unsigned mask, _T value, _Op op, int width, int valid) {
    int lane = (int)simt_lane() % width;
    for (int by = 1; by < width; by *= 2) {
        _T other = shifted(mask, value, by, width);
        if (lane % (2 * by) == 0 && lane + by < valid) value = op(value, other);
    }
    return value;
}
/* In each of `width` lanes: its value and those of the lanes below it. */
template <typename _T, typename _Op> __device__ _T scanned(unsigned mask, _T value, _Op op, int width) {
    int lane = (int)simt_lane() % width;
    for (int by = 1; by < width; by *= 2) {
        _T other = shifted(mask, value, -by, width);
        if (lane >= by) value = op(other, value);
    }
    return value;
}
template <typename _T, int _N, typename _Op> __device__ _T sum_of(const _T (&items)[_N], _Op op) {
    _T sum = items[0];
    for (int i = 1; i < _N; i++) sum = op(sum, items[i]);
    return sum;
}
/* The lanes of a logical warp. */
template <int _WIDTH> __device__ unsigned lanes() {
    static_assert(_WIDTH >= 1 && _WIDTH <= 32, "a logical warp has at most 32 threads");
    return _WIDTH == 32 ? ~0u : (unsigned)((1ull << _WIDTH) - 1) << simt_lane() / _WIDTH * _WIDTH;
}
} // namespace detail

template <typename _T, int _LOGICAL_WARP_THREADS = 32, int = 0> class WarpReduce {
    static_assert((_LOGICAL_WARP_THREADS & (_LOGICAL_WARP_THREADS - 1)) == 0,
                  "simt-nvcc's cub::WarpReduce takes a power of 2 of threads");

  public:
    struct TempStorage {};
    __device__ explicit WarpReduce(TempStorage &) {}
    template <typename _Op> __device__ _T Reduce(_T input, _Op op, int valid_items = _LOGICAL_WARP_THREADS) {
        return detail::reduced(detail::lanes<_LOGICAL_WARP_THREADS>(), input, op, _LOGICAL_WARP_THREADS, valid_items);
    }
    __device__ _T Sum(_T input, int valid_items = _LOGICAL_WARP_THREADS) { return Reduce(input, cub::Sum(), valid_items); }
};

template <typename _T, int _LOGICAL_WARP_THREADS = 32, int = 0> class WarpScan {
    static_assert((_LOGICAL_WARP_THREADS & (_LOGICAL_WARP_THREADS - 1)) == 0,
                  "simt-nvcc's cub::WarpScan takes a power of 2 of threads");
    static constexpr int _W = _LOGICAL_WARP_THREADS;
    __device__ static unsigned mask() { return detail::lanes<_W>(); }
    __device__ static bool is_first() { return simt_lane() % _W == 0; }

  public:
    struct TempStorage {};
    __device__ explicit WarpScan(TempStorage &) {}
    template <typename _Op> __device__ void InclusiveScan(_T input, _T &output, _Op op) {
        output = detail::scanned(mask(), input, op, _W);
    }
    template <typename _Op> __device__ void InclusiveScan(_T input, _T &output, _Op op, _T &aggregate) {
        InclusiveScan(input, output, op);
        aggregate = Broadcast(output, _W - 1);
    }
    template <typename _Op> __device__ void ExclusiveScan(_T input, _T &output, _Op op) { /* undefined in the first lane */
        output = detail::shifted(mask(), detail::scanned(mask(), input, op, _W), -1, _W);
    }
    template <typename _Op> __device__ void ExclusiveScan(_T input, _T &output, _T initial, _Op op) {
        ExclusiveScan(input, output, op);
        output = is_first() ? initial : op(initial, output);
    }
    template <typename _Op> __device__ void ExclusiveScan(_T input, _T &output, _T initial, _Op op, _T &aggregate) {
        _T inclusive;
        InclusiveScan(input, inclusive, op, aggregate);
        _T before = detail::shifted(mask(), inclusive, -1, _W);
        output = is_first() ? initial : op(initial, before);
    }
    __device__ void InclusiveSum(_T input, _T &output) { InclusiveScan(input, output, cub::Sum()); }
    __device__ void InclusiveSum(_T input, _T &output, _T &aggregate) { InclusiveScan(input, output, cub::Sum(), aggregate); }
    __device__ void ExclusiveSum(_T input, _T &output) { ExclusiveScan(input, output, _T(), cub::Sum()); }
    __device__ void ExclusiveSum(_T input, _T &output, _T &aggregate) {
        ExclusiveScan(input, output, _T(), cub::Sum(), aggregate);
    }
    __device__ _T Broadcast(_T input, unsigned from) {
        return detail::read_lane(mask(), input, (int)(simt_lane() / _W * _W + from));
    }
};

/* ---- a block --------------------------------------------------------------------------------------------------------------- */

namespace detail {
/* What the primitives of a block share: its threads by rank, its warps, and the storage given, or one of its own. */
template <typename _Storage, int _X, int _Y, int _Z> class of_block {
  protected:
    static constexpr int _THREADS = _X * _Y * _Z, _WARPS = (_THREADS + 31) / 32;
    _Storage &storage;
    const int rank = RowMajorTid(_X, _Y, _Z), lane = rank % 32, warp = rank / 32;
    __device__ int threads_here() const { return _THREADS - 32 * warp < 32 ? _THREADS - 32 * warp : 32; }
    __device__ unsigned mask() const { return (unsigned)((1ull << threads_here()) - 1); }
    __device__ static _Storage &own() {
        __shared__ _Storage own;
        return own;
    }

  public:
    typedef _Storage TempStorage;
    __device__ of_block() : storage(own()) {}
    __device__ explicit of_block(_Storage &given) : storage(given) {}
};
template <typename _T, int _WARPS> struct of_warps {
    alignas(_T) char sums[_WARPS][sizeof(_T)]; /* no constructor runs in shared memory */
    alignas(_T) char prefix[sizeof(_T)];
    __device__ _T &sum(int warp) { return *(_T *)(void *)sums[warp]; }
    __device__ _T &first() { return *(_T *)(void *)prefix; }
};
} // namespace detail

template <typename _T, int _BLOCK_DIM_X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int _BLOCK_DIM_Y = 1,
          int _BLOCK_DIM_Z = 1, int = 0>
class BlockReduce : public detail::of_block<detail::of_warps<_T, (_BLOCK_DIM_X * _BLOCK_DIM_Y * _BLOCK_DIM_Z + 31) / 32>,
                                            _BLOCK_DIM_X, _BLOCK_DIM_Y, _BLOCK_DIM_Z> {
    typedef detail::of_block<detail::of_warps<_T, (_BLOCK_DIM_X * _BLOCK_DIM_Y * _BLOCK_DIM_Z + 31) / 32>, _BLOCK_DIM_X,
                             _BLOCK_DIM_Y, _BLOCK_DIM_Z>
        _Base;

  public:
    using _Base::_Base;
    /* Thread 0 gets the result. */
    template <typename _Op> __device__ _T Reduce(_T input, _Op op, int valid_items = _Base::_THREADS) {
        int here = valid_items - 32 * this->warp, threads = this->threads_here();
        _T sum = detail::reduced(this->mask(), input, op, 32, here < threads ? here : threads);
        if (this->lane == 0) this->storage.sum(this->warp) = sum;
        __syncthreads();
        for (int other = 1; this->rank == 0 && other < _Base::_WARPS && 32 * other < valid_items; other++)
            sum = op(sum, this->storage.sum(other));
        return sum;
    }
    template <int _N, typename _Op> __device__ _T Reduce(_T (&inputs)[_N], _Op op) {
        return Reduce(detail::sum_of(inputs, op), op);
    }
    __device__ _T Sum(_T input) { return Reduce(input, cub::Sum()); }
    __device__ _T Sum(_T input, int valid_items) { return Reduce(input, cub::Sum(), valid_items); }
    template <int _N> __device__ _T Sum(_T (&inputs)[_N]) { return Reduce(inputs, cub::Sum()); }
};

template <typename _T, int _BLOCK_DIM_X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int _BLOCK_DIM_Y = 1, int _BLOCK_DIM_Z = 1,
          int = 0>
class BlockScan : public detail::of_block<detail::of_warps<_T, (_BLOCK_DIM_X * _BLOCK_DIM_Y * _BLOCK_DIM_Z + 31) / 32>,
                                          _BLOCK_DIM_X, _BLOCK_DIM_Y, _BLOCK_DIM_Z> {
    typedef detail::of_block<detail::of_warps<_T, (_BLOCK_DIM_X * _BLOCK_DIM_Y * _BLOCK_DIM_Z + 31) / 32>, _BLOCK_DIM_X,
                             _BLOCK_DIM_Y, _BLOCK_DIM_Z>
        _Base;

    /* What all threads before this one have, in `before`; false for the first thread, which has nothing before it. */
    template <typename _Op> __device__ bool prefix_of(_T sum, _Op op, _T &before, _T &aggregate) {
        _T inclusive = detail::scanned(this->mask(), sum, op, 32);
        before = detail::shifted(this->mask(), inclusive, -1, 32);
        if (this->lane == this->threads_here() - 1) this->storage.sum(this->warp) = inclusive;
        __syncthreads();
        _T warps = this->storage.sum(0);
        aggregate = warps;
        for (int other = 1; other < _Base::_WARPS; other++) {
            if (other == this->warp) warps = aggregate;
            aggregate = op(aggregate, this->storage.sum(other));
        }
        if (this->warp > 0) before = this->lane > 0 ? op(warps, before) : warps;
        return this->rank > 0;
    }
    /* The first warp calls the function, whose result in thread 0 stands before all values. */
    template <typename _Callback> __device__ _T prefix_by(_Callback &callback, _T aggregate) {
        if (this->warp == 0) {
            _T prefix = callback(aggregate);
            if (this->lane == 0) this->storage.first() = prefix;
        }
        __syncthreads();
        return this->storage.first();
    }
    template <int _N, typename _Op>
    __device__ void write(_T (&inputs)[_N], _T (&outputs)[_N], _Op op, bool inclusive, bool has_before, _T before) {
        for (int i = 0; i < _N; i++) {
            _T with = has_before ? op(before, inputs[i]) : inputs[i];
            outputs[i] = inclusive ? with : before;
            before = with, has_before = true;
        }
    }
    template <typename _F>
    using _Callback = decltype(std::declval<_F &>()(std::declval<_T>())); /* is it a function of the aggregate? */

  public:
    using _Base::_Base;
#define SIMT_SCAN_OF_ONE(call, ...) /* as for an array of one */                                                               \
    {                                                                                                                          \
        _T inputs[1] = {input}, outputs[1];                                                                                    \
        call(inputs, outputs __VA_ARGS__);                                                                                     \
        output = outputs[0];                                                                                                   \
    }
    template <int _N, typename _Op> __device__ void InclusiveScan(_T (&inputs)[_N], _T (&outputs)[_N], _Op op, _T &aggregate) {
        _T before, sum = detail::sum_of(inputs, op);
        bool has = prefix_of(sum, op, before, aggregate);
        write(inputs, outputs, op, true, has, before);
    }
    template <int _N, typename _Op> __device__ void InclusiveScan(_T (&inputs)[_N], _T (&outputs)[_N], _Op op) {
        _T aggregate;
        InclusiveScan(inputs, outputs, op, aggregate);
    }
    template <int _N, typename _Op, typename _F, typename = _Callback<_F>>
    __device__ void InclusiveScan(_T (&inputs)[_N], _T (&outputs)[_N], _Op op, _F &callback) {
        _T before, aggregate, sum = detail::sum_of(inputs, op);
        bool has = prefix_of(sum, op, before, aggregate);
        _T prefix = prefix_by(callback, aggregate);
        write(inputs, outputs, op, true, true, has ? op(prefix, before) : prefix);
    }
    template <int _N, typename _Op>
    __device__ void ExclusiveScan(_T (&inputs)[_N], _T (&outputs)[_N], _T initial, _Op op, _T &aggregate) {
        _T before, sum = detail::sum_of(inputs, op);
        bool has = prefix_of(sum, op, before, aggregate);
        write(inputs, outputs, op, false, true, has ? op(initial, before) : initial);
    }
    template <int _N, typename _Op> __device__ void ExclusiveScan(_T (&inputs)[_N], _T (&outputs)[_N], _T initial, _Op op) {
        _T aggregate;
        ExclusiveScan(inputs, outputs, initial, op, aggregate);
    }
    template <int _N, typename _Op, typename _F, typename = _Callback<_F>>
    __device__ void ExclusiveScan(_T (&inputs)[_N], _T (&outputs)[_N], _Op op, _F &callback) {
        _T before, aggregate, sum = detail::sum_of(inputs, op);
        bool has = prefix_of(sum, op, before, aggregate);
        _T prefix = prefix_by(callback, aggregate);
        write(inputs, outputs, op, false, true, has ? op(prefix, before) : prefix);
    }
    template <typename _Op>
    __device__ void InclusiveScan(_T input, _T &output, _Op op)
        SIMT_SCAN_OF_ONE(InclusiveScan, , op) template <typename _Op, typename _To>
        __device__ void InclusiveScan(_T input, _T &output, _Op op, _To &to)
            SIMT_SCAN_OF_ONE(InclusiveScan, , op, to) template <typename _Op>
            __device__ void ExclusiveScan(_T input, _T &output, _T initial, _Op op)
                SIMT_SCAN_OF_ONE(ExclusiveScan, , initial, op) template <typename _Op>
                __device__
        void ExclusiveScan(_T input, _T &output, _T initial, _Op op, _T &to)
            SIMT_SCAN_OF_ONE(ExclusiveScan, , initial, op, to) template <typename _Op, typename _F, typename = _Callback<_F>>
            __device__ void ExclusiveScan(_T input, _T &output, _Op op, _F &callback)
                SIMT_SCAN_OF_ONE(ExclusiveScan, , op, callback) template <int _N>
                __device__ void InclusiveSum(_T (&inputs)[_N], _T (&outputs)[_N]) {
        InclusiveScan(inputs, outputs, cub::Sum());
    }
    template <int _N, typename _To> __device__ void InclusiveSum(_T (&inputs)[_N], _T (&outputs)[_N], _To &to) {
        InclusiveScan(inputs, outputs, cub::Sum(), to);
    }
    template <int _N> __device__ void ExclusiveSum(_T (&inputs)[_N], _T (&outputs)[_N]) {
        ExclusiveScan(inputs, outputs, _T(), cub::Sum());
    }
    template <int _N> __device__ void ExclusiveSum(_T (&inputs)[_N], _T (&outputs)[_N], _T &to) {
        ExclusiveScan(inputs, outputs, _T(), cub::Sum(), to);
    }
    template <int _N, typename _F, typename = _Callback<_F>>
    __device__ void ExclusiveSum(_T (&inputs)[_N], _T (&outputs)[_N], _F &callback) {
        ExclusiveScan(inputs, outputs, cub::Sum(), callback);
    }
    __device__ void InclusiveSum(_T input, _T &output) SIMT_SCAN_OF_ONE(InclusiveSum, ) template <typename _To>
    __device__ void InclusiveSum(_T input, _T &output, _To &to) SIMT_SCAN_OF_ONE(InclusiveSum, , to) __device__
        void ExclusiveSum(_T input, _T &output) SIMT_SCAN_OF_ONE(ExclusiveSum, ) template <typename _To>
        __device__ void ExclusiveSum(_T input, _T &output, _To &to) SIMT_SCAN_OF_ONE(ExclusiveSum, , to)
#undef SIMT_SCAN_OF_ONE
};

} // namespace cub
