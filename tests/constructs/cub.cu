#include "construct.h"
#include <cub/block/block_reduce.cuh>
#include <cub/cub.cuh>

struct larger {
    template <typename T> __host__ __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};

namespace block_reductions {
/* 80 threads: the last warp is half full. 2D, so that the rank counts. */
__global__ void k(int *out) {
    typedef cub::BlockReduce<int, 16, cub::BLOCK_REDUCE_RAKING, 5> Reduce;
    __shared__ typename Reduce::TempStorage storage;
    int rank = (int)(threadIdx.x + 16 * threadIdx.y), items[3] = {rank, 1, -rank};
    int sum = Reduce(storage).Sum(rank);
    __syncthreads();
    int some = Reduce(storage).Sum(rank, 40);
    __syncthreads();
    int most = Reduce(storage).Reduce(rank * 37 % 97, larger());
    __syncthreads();
    int ones = Reduce(storage).Sum(items);
    if (rank == 0) out[0] = sum, out[1] = some, out[2] = most, out[3] = ones;
}
CONSTRUCT(block_reductions, "3160 780 96 80") {
    return show<int>(4, [&](int *out) { k<<<1, dim3(16, 5)>>>(out); });
}
} // namespace block_reductions

namespace place_of_the_largest {
typedef cub::KeyValuePair<int, double> pair;
__global__ void k(double *out) {
    __shared__ cub::BlockReduce<pair, 64>::TempStorage storage;
    pair own;
    own.key = (int)threadIdx.x, own.value = (double)(threadIdx.x * 29 % 64 / 2); /* two threads have the largest */
    pair best = cub::BlockReduce<pair, 64>(storage).Reduce(own, cub::ArgMax());
    if (threadIdx.x == 0) out[0] = best.key, out[1] = best.value;
}
CONSTRUCT(place_of_the_largest, "11 31") {
    return show<double>(2, [&](double *out) { k<<<1, 64>>>(out); });
}
} // namespace place_of_the_largest

namespace block_scans {
struct running { /* what stands before a tile; the first warp calls it */
    int total;
    __device__ int operator()(int aggregate) {
        int before = total;
        total += aggregate;
        return before;
    }
};
__global__ void k(int *out) {
    typedef cub::BlockScan<int, 48> Scan;
    __shared__ Scan::TempStorage storage;
    int t = (int)threadIdx.x, before, aggregate, with, items[2] = {1, t}, sums[2];
    Scan(storage).ExclusiveSum(t, before, aggregate);
    if (t == 40) out[0] = before, out[1] = aggregate;
    __syncthreads();
    Scan(storage).InclusiveScan(t % 7, with, larger());
    if (t == 5) out[2] = with;
    __syncthreads();
    Scan(storage).InclusiveSum(items, sums);
    if (t == 47) out[3] = sums[0], out[4] = sums[1];
    running prefix = {100};
    for (int tile = 0; tile < 2; tile++) {
        __syncthreads();
        Scan(storage).ExclusiveSum(1, before, prefix);
    }
    if (t == 47) out[5] = before;
}
CONSTRUCT(block_scans, "780 1128 5 1129 1176 195") {
    return show<int>(6, [&](int *out) { k<<<1, 48>>>(out); });
}
} // namespace block_scans

namespace primitives_of_a_warp {
__global__ void k(float *out) {
    __shared__ cub::WarpReduce<float>::TempStorage reduce[2];
    __shared__ cub::WarpScan<int, 8>::TempStorage scan[8];
    int t = (int)threadIdx.x, before, aggregate;
    float sum = cub::WarpReduce<float>(reduce[t / 32]).Sum(0.5f * (float)t);
    cub::WarpScan<int, 8>(scan[t / 8]).ExclusiveSum(t, before, aggregate);
    float some = cub::WarpReduce<float>(reduce[t / 32]).Reduce((float)(t * 5 % 32), larger(), 4);
    if (t % 32 == 0) out[t / 32] = sum, out[4 + t / 32] = some;
    if (t == 14) out[2] = (float)before, out[3] = (float)aggregate;
}
CONSTRUCT(primitives_of_a_warp, "248 760 63 92 15 15") {
    return show<float>(6, [&](float *out) { k<<<1, 64>>>(out); });
}
} // namespace primitives_of_a_warp

namespace loads_and_exchanges {
__global__ void k(int *in, int *out) {
    typedef cub::BlockLoad<int, 32, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE> Load;
    typedef cub::BlockStore<int, 32, 4, cub::BLOCK_STORE_STRIPED> Store;
    typedef cub::BlockExchange<int, 32, 4> Exchange;
    __shared__ union {
        Load::TempStorage load;
        Store::TempStorage store;
        Exchange::TempStorage exchange;
    } storage;
    int items[4];
    Load(storage.load).Load(in, items, 100, -1);
    __syncthreads();
    for (int &item : items) item *= 2;
    Exchange(storage.exchange).BlockedToStriped(items);
    __syncthreads();
    Store(storage.store).Store(out, items, 102);
}
CONSTRUCT(loads_and_exchanges, "0 2 66 198 -2 -2 0") {
    int host[128], *in = nullptr, *all = nullptr;
    for (int i = 0; i < 128; i++) host[i] = i;
    must(cudaMalloc(&in, sizeof host), "cudaMalloc");
    must(cudaMalloc(&all, sizeof host), "cudaMalloc");
    must(cudaMemset(all, 0, sizeof host), "cudaMemset");
    must(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice), "cudaMemcpy");
    k<<<1, 32>>>(in, all);
    must(cudaMemcpy(host, all, sizeof host, cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (int at : {0, 1, 33, 99, 100, 101, 102}) printf("%s%d", at > 0 ? " " : "", host[at]);
    printf("\n");
    return 0;
}
} // namespace loads_and_exchanges

namespace reductions_and_scans_of_a_device {
CONSTRUCT(reductions_and_scans_of_a_device, "499500 999 0 2000 998 498501 499500") {
    int *in = nullptr, *out = nullptr, sums[4], last[2];
    std::vector<int> host(1000);
    for (int i = 0; i < 1000; i++) host[(size_t)i] = i;
    must(cudaMalloc(&in, 4000), "cudaMalloc");
    must(cudaMalloc(&out, 4000), "cudaMalloc");
    must(cudaMemcpy(in, host.data(), 4000, cudaMemcpyHostToDevice), "cudaMemcpy");
    void *storage = nullptr;
    size_t bytes = 0, needed = 0;
    must(cub::DeviceReduce::Sum(nullptr, bytes, in, out, 1000), "Sum");
    must(cub::DeviceScan::ExclusiveSum(nullptr, needed, in, out, 1000), "ExclusiveSum");
    bytes = bytes > needed ? bytes : needed;
    bytes = bytes > 65536 ? bytes : 65536; /* for all calls below */
    must(cudaMalloc(&storage, bytes), "cudaMalloc");
    must(cub::DeviceReduce::Sum(storage, bytes, in, out, 1000), "Sum");
    must(cub::DeviceReduce::Max(storage, bytes, in, out + 1, 1000), "Max");
    must(cub::DeviceReduce::Min(storage, bytes, in, out + 2, 1000), "Min");
    must(cub::DeviceReduce::Reduce(storage, bytes, in, out + 3, 1000, larger(), 2000), "Reduce");
    must(cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDeviceToHost), "cudaMemcpy");
    must(cub::DeviceReduce::Max(storage, bytes, in, out, 999), "Max");
    must(cudaMemcpy(host.data(), out, 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
    must(cub::DeviceScan::ExclusiveSum(storage, bytes, in, out, 1000), "ExclusiveSum");
    must(cudaMemcpy(last, out + 999, 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
    must(cub::DeviceScan::InclusiveSum(storage, bytes, in, out, 1000), "InclusiveSum");
    must(cudaMemcpy(last + 1, out + 999, 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
    printf("%d %d %d %d %d %d %d\n", sums[0], sums[1], sums[2], sums[3], host[0], last[0], last[1]);
    return 0;
}
} // namespace reductions_and_scans_of_a_device
