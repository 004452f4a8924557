/* Loads, stores and exchanges of a block; reductions and scans of a whole array, by one block. */
#pragma once

#include "block/block_scan.cuh"

namespace cub {

/* ---- loads and stores of a block: item i of a thread is element rank * items + i, or striped, i * threads + rank ------------ */

namespace detail {
template <bool _STRIPED, int _THREADS, int _N> __device__ int place(int rank, int i) {
    return _STRIPED ? i * _THREADS + rank : rank * _N + i;
}
} // namespace detail
template <typename _T, int _N, typename _In> __device__ void LoadDirectBlocked(int rank, _In from, _T (&items)[_N]) {
    for (int i = 0; i < _N; i++) items[i] = from[rank * _N + i];
}
template <typename _T, int _N, typename _In> __device__ void LoadDirectBlocked(int rank, _In from, _T (&items)[_N], int valid) {
    for (int i = 0; i < _N && rank * _N + i < valid; i++) items[i] = from[rank * _N + i];
}
template <typename _T, int _N, typename _Out>
__device__ void StoreDirectBlocked(int rank, _Out to, _T (&items)[_N], int valid = std::numeric_limits<int>::max()) {
    for (int i = 0; i < _N && rank * _N + i < valid; i++) to[rank * _N + i] = items[i];
}
template <int _BLOCK_THREADS, typename _T, int _N, typename _In>
__device__ void LoadDirectStriped(int rank, _In from, _T (&items)[_N], int valid = std::numeric_limits<int>::max()) {
    for (int i = 0; i < _N && i * _BLOCK_THREADS + rank < valid; i++) items[i] = from[i * _BLOCK_THREADS + rank];
}
template <int _BLOCK_THREADS, typename _T, int _N, typename _Out>
__device__ void StoreDirectStriped(int rank, _Out to, _T (&items)[_N], int valid = std::numeric_limits<int>::max()) {
    for (int i = 0; i < _N && i * _BLOCK_THREADS + rank < valid; i++) to[i * _BLOCK_THREADS + rank] = items[i];
}

template <typename _T, int _BLOCK_DIM_X, int _ITEMS_PER_THREAD, BlockLoadAlgorithm _ALGORITHM = BLOCK_LOAD_DIRECT,
          int _BLOCK_DIM_Y = 1, int _BLOCK_DIM_Z = 1, int = 0>
class BlockLoad : public detail::of_block<NullType, _BLOCK_DIM_X, _BLOCK_DIM_Y, _BLOCK_DIM_Z> {
    typedef detail::of_block<NullType, _BLOCK_DIM_X, _BLOCK_DIM_Y, _BLOCK_DIM_Z> _Base;

  public:
    using _Base::_Base;
    template <typename _In>
    __device__ void Load(_In from, _T (&items)[_ITEMS_PER_THREAD], int valid = std::numeric_limits<int>::max()) {
        for (int i = 0; i < _ITEMS_PER_THREAD; i++) {
            int at = detail::place<_ALGORITHM == BLOCK_LOAD_STRIPED, _Base::_THREADS, _ITEMS_PER_THREAD>(this->rank, i);
            if (at < valid) items[i] = from[at];
        }
    }
    template <typename _In, typename _Default>
    __device__ void Load(_In from, _T (&items)[_ITEMS_PER_THREAD], int valid, _Default otherwise) {
        for (_T &item : items) item = otherwise;
        Load(from, items, valid);
    }
};
template <typename _T, int _BLOCK_DIM_X, int _ITEMS_PER_THREAD, BlockStoreAlgorithm _ALGORITHM = BLOCK_STORE_DIRECT,
          int _BLOCK_DIM_Y = 1, int _BLOCK_DIM_Z = 1, int = 0>
class BlockStore : public detail::of_block<NullType, _BLOCK_DIM_X, _BLOCK_DIM_Y, _BLOCK_DIM_Z> {
    typedef detail::of_block<NullType, _BLOCK_DIM_X, _BLOCK_DIM_Y, _BLOCK_DIM_Z> _Base;

  public:
    using _Base::_Base;
    template <typename _Out>
    __device__ void Store(_Out to, _T (&items)[_ITEMS_PER_THREAD], int valid = std::numeric_limits<int>::max()) {
        for (int i = 0; i < _ITEMS_PER_THREAD; i++) {
            int at = detail::place<_ALGORITHM == BLOCK_STORE_STRIPED, _Base::_THREADS, _ITEMS_PER_THREAD>(this->rank, i);
            if (at < valid) to[at] = items[i];
        }
    }
};

/* ---- exchange and sort ------------------------------------------------------------------------------------------------------- */

namespace detail {
template <typename _T, int _N> struct of_items {
    alignas(_T) char items[_N][sizeof(_T)];
    __device__ _T &operator[](int i) { return *(_T *)(void *)items[i]; }
};
} // namespace detail
template <typename _T, int _BLOCK_DIM_X, int _ITEMS_PER_THREAD, bool = false, int _BLOCK_DIM_Y = 1, int _BLOCK_DIM_Z = 1,
          int = 0>
class BlockExchange
    : public detail::of_block<detail::of_items<_T, _BLOCK_DIM_X * _BLOCK_DIM_Y * _BLOCK_DIM_Z * _ITEMS_PER_THREAD>,
                              _BLOCK_DIM_X, _BLOCK_DIM_Y, _BLOCK_DIM_Z> {
    typedef detail::of_block<detail::of_items<_T, _BLOCK_DIM_X * _BLOCK_DIM_Y * _BLOCK_DIM_Z * _ITEMS_PER_THREAD>, _BLOCK_DIM_X,
                             _BLOCK_DIM_Y, _BLOCK_DIM_Z>
        _Base;
    static constexpr int _N = _ITEMS_PER_THREAD;
    template <typename _From, typename _To> __device__ void move(_T (&inputs)[_N], _T (&outputs)[_N], _From from, _To to) {
        for (int i = 0; i < _N; i++) this->storage[from(i)] = inputs[i];
        __syncthreads();
        for (int i = 0; i < _N; i++) outputs[i] = this->storage[to(i)];
    }

  public:
    using _Base::_Base;
    __device__ void StripedToBlocked(_T (&inputs)[_N], _T (&outputs)[_N]) {
        move(
            inputs, outputs, [&](int i) { return i * _Base::_THREADS + this->rank; },
            [&](int i) { return this->rank * _N + i; });
    }
    __device__ void BlockedToStriped(_T (&inputs)[_N], _T (&outputs)[_N]) {
        move(
            inputs, outputs, [&](int i) { return this->rank * _N + i; },
            [&](int i) { return i * _Base::_THREADS + this->rank; });
    }
    template <typename _Rank> __device__ void ScatterToBlocked(_T (&inputs)[_N], _T (&outputs)[_N], _Rank (&ranks)[_N]) {
        move(
            inputs, outputs, [&](int i) { return (int)ranks[i]; }, [&](int i) { return this->rank * _N + i; });
    }
    template <typename _Rank> __device__ void ScatterToStriped(_T (&inputs)[_N], _T (&outputs)[_N], _Rank (&ranks)[_N]) {
        move(
            inputs, outputs, [&](int i) { return (int)ranks[i]; }, [&](int i) { return i * _Base::_THREADS + this->rank; });
    }
    __device__ void StripedToBlocked(_T (&items)[_N]) { StripedToBlocked(items, items); }
    __device__ void BlockedToStriped(_T (&items)[_N]) { BlockedToStriped(items, items); }
    template <typename _Rank> __device__ void ScatterToBlocked(_T (&items)[_N], _Rank (&ranks)[_N]) {
        ScatterToBlocked(items, items, ranks);
    }
    template <typename _Rank> __device__ void ScatterToStriped(_T (&items)[_N], _Rank (&ranks)[_N]) {
        ScatterToStriped(items, items, ranks);
    }
};

/* ---- a device: one block does all -------------------------------------------------------------------------------------------- */

namespace detail {
enum { _DEVICE_THREADS = 256 };
template <typename _T, typename _In, typename _Out, typename _Op>
__global__ void reduce(_In in, _Out out, int count, _Op op, _T initial) {
    int rank = (int)threadIdx.x, valid = count < _DEVICE_THREADS ? count : _DEVICE_THREADS;
    _T sum = initial;
    for (int i = rank; i < count; i += _DEVICE_THREADS) sum = i < _DEVICE_THREADS ? (_T)in[i] : op(sum, (_T)in[i]);
    sum = BlockReduce<_T, _DEVICE_THREADS>().Reduce(sum, op, valid);
    if (rank == 0) *out = count > 0 ? op(initial, sum) : initial;
}
template <typename _T, typename _In, typename _Out, typename _Op>
__global__ void scan(_In in, _Out out, int count, _Op op, _T initial, bool has_initial, bool inclusive) {
    int rank = (int)threadIdx.x, per = (count + _DEVICE_THREADS - 1) / _DEVICE_THREADS, begin = rank * per,
        end = begin + per < count ? begin + per : count;
    struct part { /* an empty part of the input, too */
        _T sum;
        bool is_empty;
    };
    auto join = [&](const part &a, const part &b) { return a.is_empty ? b : b.is_empty ? a : part{op(a.sum, b.sum), false}; };
    part own{initial, true}, before{initial, !has_initial}, aggregate;
    for (int i = begin; i < end; i++) own = join(own, part{(_T)in[i], false});
    BlockScan<part, _DEVICE_THREADS>().ExclusiveScan(own, before, part{initial, !has_initial}, join, aggregate);
    for (int i = begin; i < end; i++) {
        part with = join(before, part{(_T)in[i], false});
        out[i] = inclusive ? with.sum : before.sum;
        before = with;
    }
}
/* The first call asks how much temporary storage there must be: a byte. */
template <typename _Launch> cudaError_t in_two_calls(void *storage, size_t &bytes, _Launch launch) {
    if (storage == nullptr) return bytes = 1, cudaSuccess;
    launch();
    return cudaGetLastError();
}
template <typename _In> using value = typename std::iterator_traits<_In>::value_type;
} // namespace detail

struct DeviceReduce {
    template <typename _In, typename _Out, typename _Op, typename _T>
    static cudaError_t Reduce(void *storage, size_t &bytes, _In in, _Out out, int count, _Op op, _T initial,
                              cudaStream_t stream = 0) {
        return detail::in_two_calls(storage, bytes, [&] {
            detail::reduce<_T><<<1, detail::_DEVICE_THREADS, 0, stream>>>(in, out, count, op, initial);
        });
    }
    template <typename _In, typename _Out>
    static cudaError_t Sum(void *storage, size_t &bytes, _In in, _Out out, int count, cudaStream_t stream = 0) {
        return Reduce(storage, bytes, in, out, count, cub::Sum(), detail::value<_In>(), stream);
    }
    template <typename _In, typename _Out>
    static cudaError_t Min(void *storage, size_t &bytes, _In in, _Out out, int count, cudaStream_t stream = 0) {
        return Reduce(storage, bytes, in, out, count, cub::Min(), std::numeric_limits<detail::value<_In>>::max(), stream);
    }
    template <typename _In, typename _Out>
    static cudaError_t Max(void *storage, size_t &bytes, _In in, _Out out, int count, cudaStream_t stream = 0) {
        return Reduce(storage, bytes, in, out, count, cub::Max(), std::numeric_limits<detail::value<_In>>::lowest(), stream);
    }
};
struct DeviceScan {
    template <typename _In, typename _Out, typename _Op, typename _T>
    static cudaError_t ExclusiveScan(void *storage, size_t &bytes, _In in, _Out out, _Op op, _T initial, int count,
                                     cudaStream_t stream = 0) {
        return detail::in_two_calls(storage, bytes, [&] {
            detail::scan<_T><<<1, detail::_DEVICE_THREADS, 0, stream>>>(in, out, count, op, initial, true, false);
        });
    }
    template <typename _In, typename _Out, typename _Op>
    static cudaError_t InclusiveScan(void *storage, size_t &bytes, _In in, _Out out, _Op op, int count,
                                     cudaStream_t stream = 0) {
        typedef detail::value<_In> _T;
        return detail::in_two_calls(storage, bytes, [&] {
            detail::scan<_T><<<1, detail::_DEVICE_THREADS, 0, stream>>>(in, out, count, op, _T(), false, true);
        });
    }
    template <typename _In, typename _Out>
    static cudaError_t ExclusiveSum(void *storage, size_t &bytes, _In in, _Out out, int count, cudaStream_t stream = 0) {
        return ExclusiveScan(storage, bytes, in, out, cub::Sum(), detail::value<_In>(), count, stream);
    }
    template <typename _In, typename _Out>
    static cudaError_t InclusiveSum(void *storage, size_t &bytes, _In in, _Out out, int count, cudaStream_t stream = 0) {
        return InclusiveScan(storage, bytes, in, out, cub::Sum(), count, stream);
    }
};

} // namespace cub
