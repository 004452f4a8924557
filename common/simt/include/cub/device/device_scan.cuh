/* Reductions and scans of a whole array, by one block. */
#pragma once

#include "../block/block_scan.cuh"

namespace cub {

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
