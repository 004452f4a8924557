// Planted faults with Hopper's instructions, and their correct twins: as those of race_faults.cu. For cards of
// compute_capability = 90.
#include "faults.h"

#include <cuda_awbarrier_primitives.h>
#include <cuda_pipeline.h>

#include "fp8.cuh"
#include "hopper.cuh"
#include "tensors.h"

// ---- loads

template <bool CORRECT> __global__ static void tile_before_wait(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, TILE_BYTES);
        tma_load(smem, &map, 0, 0, 0, &full); // here
    }
    __syncthreads();
    if (CORRECT) mbarrier_wait(&full, 0);
    out[threadIdx.x] = smem[threadIdx.x]; // here
    mbarrier_wait(&full, 0);
}
FAULT(tile_before_wait, cudaErrorLaunchFailure, "is under way", FIRST(T, in[i]),
      tile_before_wait<CORRECT><<<1, T, TILE_BYTES>>>(map_of(in), out))

template <bool CORRECT> __global__ static void tile_by_wrong_parity(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    int sum = 0;
    for (int tile = 0; tile < 3; tile++) {
        if (threadIdx.x == 0) {
            mbarrier_arrive_expect(&full, TILE_BYTES);
            tma_load(smem, &map, 0, tile * ROWS, 0, &full); // here
        }
        __syncthreads();
        mbarrier_wait(&full, CORRECT ? tile % 2 : 0); // here
        sum += smem[threadIdx.x]; // here
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
FAULT(tile_by_wrong_parity, cudaErrorLaunchFailure, "the last wait of this thread there, with parity 0 at", FIRST(T, in[i] + in[TILE + i] + in[2 * TILE + i]),
      tile_by_wrong_parity<CORRECT><<<1, T, TILE_BYTES>>>(map_of(in), out))

// One thread waits. The others must meet it after that: its wait is enough for all then.
template <bool CORRECT> __global__ static void one_waits(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, TILE_BYTES);
        tma_load(smem, &map, 0, 0, 0, &full); // here
        mbarrier_wait(&full, 0);
    }
    if (CORRECT)
        __syncthreads();
    else
        for (int i = 0; i < 100; i++) __nanosleep(1);
    out[threadIdx.x] = smem[threadIdx.x]; // here
}
FAULT(one_waits, cudaErrorLaunchFailure, "neither waited|race on", FIRST(T, in[i]),
      one_waits<CORRECT><<<1, T, TILE_BYTES>>>(map_of(in), out))

template <bool CORRECT> __global__ static void barrier_without_fence(MAP, int *out) {
    __shared__ uint64_t full;
    if (threadIdx.x == 0) {
        mbarrier_init(&full, 1); // here
        if (CORRECT) fence_mbarrier_init();
        mbarrier_arrive_expect(&full, TILE_BYTES);
        tma_load(smem, &map, 0, 0, 0, &full); // here
    }
    __syncthreads();
    mbarrier_wait(&full, 0);
    out[threadIdx.x] = smem[threadIdx.x];
}
FAULT(barrier_without_fence, cudaErrorLaunchFailure, "without fence.mbarrier_init", FIRST(T, in[i]),
      barrier_without_fence<CORRECT><<<1, T, TILE_BYTES>>>(map_of(in), out))

// The others may come to the barrier before it is there.
template <bool CORRECT> __global__ static void barrier_not_ready(const int *in, int *out) {
    __shared__ uint64_t full;
    if (threadIdx.x == 0) mbarrier_init(&full, T); // here
    if (CORRECT) __syncthreads();
    out[threadIdx.x] = in[threadIdx.x];
    mbarrier_arrive(&full); // here
}
FAULT(barrier_not_ready, cudaErrorLaunchFailure, "race on|that no thread has initialised", FIRST(T, in[i]),
      barrier_not_ready<CORRECT><<<1, T>>>(in, out))

// Right on a card; the simulated device says that it does not follow it.
__global__ static void both_interfaces(bool ptx_first) {
    __shared__ alignas(8) uint64_t both;
    if (threadIdx.x == 0 && ptx_first) mbarrier_init(&both, T);
    if (threadIdx.x == 0 && !ptx_first) __mbarrier_init(&both, T);
    __syncthreads();
    if (ptx_first)
        __mbarrier_arrive(&both);
    else
        mbarrier_arrive(&both);
}
Test(messages, mbarrier_of_cuda_barrier) {
    both_interfaces<<<1, T>>>(false);
    cr_assert_eq(cudaDeviceSynchronize(), cudaErrorNotSupported);
    report_says("at an mbarrier that cuda::barrier has initialised: the simulated device follows one of the two interfaces");
}
Test(messages, mbarrier_of_ptx) {
    both_interfaces<<<1, T>>>(true);
    cr_assert_eq(cudaDeviceSynchronize(), cudaErrorNotSupported);
    report_says("at an mbarrier that PTX has initialised: the simulated device follows one of the two interfaces");
}

// The end of a phase orders those that arrive before those that wait, and nobody else.
template <bool CORRECT> __global__ static void phase_of_others(const int *in, int *out) {
    __shared__ uint64_t full;
    ready(&full, 64);
    int t = threadIdx.x;
    if (t < 64) {
        smem[t] = in[t]; // here
        mbarrier_arrive(&full);
    } else {
        if (CORRECT || t < 96) mbarrier_wait(&full, 0);
        out[t - 64] = smem[t - 64]; // here
    }
}
FAULT(phase_of_others, cudaErrorLaunchFailure, "race on", FIRST(64, in[i]),
      phase_of_others<CORRECT><<<1, T, TILE_BYTES>>>(in, out))

// An arrival says what its thread has done before it, not what it does after.
template <bool CORRECT> __global__ static void store_after_arrival(const int *in, int *out) {
    __shared__ uint64_t full;
    ready(&full, 64);
    int t = threadIdx.x;
    if (t < 64) {
        if (CORRECT || t >= 32) smem[t] = in[t];
        mbarrier_arrive(&full);
        if (!CORRECT && t < 32) smem[t] = in[t]; // here
    } else {
        mbarrier_wait(&full, 0);
        out[t - 64] = smem[t - 64]; // here
    }
}
FAULT(store_after_arrival, cudaErrorLaunchFailure, "race on", FIRST(64, in[i]),
      store_after_arrival<CORRECT><<<1, T, TILE_BYTES>>>(in, out))

// A named barrier orders those that come to it, too, and nobody else.
template <bool CORRECT> __global__ static void named_barrier_of_others(const int *in, int *out) {
    int t = threadIdx.x;
    if (t < 64) smem[t] = in[t]; // here
    if (CORRECT || t < 96) named_barrier_sync(3, CORRECT ? T : 96);
    if (t >= 64) out[t - 64] = smem[t - 64]; // here
}
FAULT(named_barrier_of_others, cudaErrorLaunchFailure, "race on", FIRST(64, in[i]),
      named_barrier_of_others<CORRECT><<<1, T, TILE_BYTES>>>(in, out))

template <bool CORRECT> __global__ static void announced_too_much(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, CORRECT ? TILE_BYTES : 2 * TILE_BYTES);
        tma_load(smem, &map, 0, 0, 0, &full);
    }
    mbarrier_wait(&full, 0); // here
    out[threadIdx.x] = smem[threadIdx.x];
}
FAULT(announced_too_much, cudaErrorLaunchFailure, "1024 bytes are missing that were announced and no copy brings",
      FIRST(T, in[i]), announced_too_much<CORRECT><<<1, T, TILE_BYTES>>>(map_of(in), out))

template <bool CORRECT> __global__ static void announced_too_little(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, CORRECT ? TILE_BYTES : TILE_BYTES / 2);
        tma_load(smem, &map, 0, 0, 0, &full); // here
    }
    mbarrier_wait(&full, 0);
    out[threadIdx.x] = smem[threadIdx.x];
}
FAULT(announced_too_little, cudaErrorLaunchFailure, "but its threads have announced 512 only", FIRST(T, in[i]),
      announced_too_little<CORRECT><<<1, T, TILE_BYTES>>>(map_of(in), out))

template <bool CORRECT> __global__ static void arrival_missing(const int *in, int *out) {
    __shared__ uint64_t full;
    ready(&full, CORRECT ? T : T + 1);
    out[threadIdx.x] = in[threadIdx.x];
    mbarrier_arrive(&full);
    mbarrier_wait(&full, 0); // here
}
FAULT(arrival_missing, cudaErrorLaunchFailure, "1 of 129 arrivals are missing", FIRST(T, in[i]),
      arrival_missing<CORRECT><<<1, T>>>(in, out))

// Another thread arrives than the barrier was told of, before the phase is over.
template <bool CORRECT> __global__ static void arrival_too_many(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x == 0) mbarrier_arrive_expect(&full, TILE_BYTES);
    __syncthreads();
    if (!CORRECT && threadIdx.x == 1) mbarrier_arrive(&full); // here
    __syncthreads();
    if (threadIdx.x == 0) tma_load(smem, &map, 0, 0, 0, &full);
    mbarrier_wait(&full, 0);
    out[threadIdx.x] = smem[threadIdx.x];
}
FAULT(arrival_too_many, cudaErrorLaunchFailure, "1 arrivals, but the phase waits for 0 of 1 only", FIRST(T, in[i]),
      arrival_too_many<CORRECT><<<1, T, TILE_BYTES>>>(map_of(in), out))

// The block ends before the copy has landed.
template <bool CORRECT> __global__ static void load_never_waited_for(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, TILE_BYTES);
        tma_load(smem, &map, 0, 0, 0, &full); // here
    }
    if (CORRECT) mbarrier_wait(&full, 0);
    out[threadIdx.x] = 7;
}
FAULT(load_never_waited_for, cudaErrorLaunchFailure, "the block ends while this copy", FIRST(T, 7),
      load_never_waited_for<CORRECT><<<1, T, TILE_BYTES>>>(map_of(in), out))

// ---- tensor maps that are not what the kernel takes them for

__device__ static void take_tile(uint64_t *full, int *out) {
    mbarrier_wait(full, 0);
    out[threadIdx.x] = smem[threadIdx.x];
}

template <bool CORRECT> __global__ static void map_of_wrong_stride(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x == 0) mbarrier_arrive_expect(&full, TILE_BYTES);
    if (threadIdx.x == 0) tma_load(smem, &map, 0, 2 * ROWS, 0, &full); // here
    take_tile(&full, out);
}
FAULT(map_of_wrong_stride, cudaErrorIllegalAddress, "read of 16 bytes out of bounds", FIRST(T, in[2 * TILE + i]),
      map_of_wrong_stride<CORRECT><<<1, T, TILE_BYTES>>>(map_of(in, {.stride = CORRECT ? 128 : 256}), out))

template <bool CORRECT> __global__ static void map_of_wrong_box(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x == 0) mbarrier_arrive_expect(&full, TILE_BYTES);
    if (threadIdx.x == 0) tma_load(smem, &map, 0, 0, 0, &full); // here
    take_tile(&full, out);
}
FAULT(map_of_wrong_box, cudaErrorIllegalAddress, "goes past the end", FIRST(T, in[i]),
      map_of_wrong_box<CORRECT><<<1, T, TILE_BYTES>>>(map_of(in, {.box_rows = CORRECT ? 8 : 16}), out))

template <bool CORRECT> __global__ static void map_of_wrong_type(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x == 0) mbarrier_arrive_expect(&full, TILE_BYTES);
    if (threadIdx.x == 0) tma_load(smem, &map, 0, 0, 0, &full);
    mbarrier_wait(&full, 0); // here
    out[threadIdx.x] = smem[threadIdx.x];
}
FAULT(map_of_wrong_type, cudaErrorLaunchFailure, "512 bytes are missing that were announced", FIRST(T, in[i]),
      map_of_wrong_type<CORRECT><<<1, T, TILE_BYTES>>>(
          map_of(in, {.type = CORRECT ? CU_TENSOR_MAP_DATA_TYPE_INT32 : CU_TENSOR_MAP_DATA_TYPE_UINT16}), out))

// ---- ordinary stores and the async proxy

template <bool CORRECT> __global__ static void store_without_fence(MAP, const int *in) {
    for (int i = threadIdx.x; i < TILE; i += T) smem[i] = in[i]; // here
    if (CORRECT) fence_proxy_async();
    __syncthreads();
    if (threadIdx.x != 0) return;
    tma_store(&map, 0, 0, 0, smem); // here
    tma_commit();
    tma_wait_read<0>();
}
FAULT(store_without_fence, cudaErrorLaunchFailure, "no fence.proxy.async", FIRST(TILE, in[i]),
      store_without_fence<CORRECT><<<1, T, TILE_BYTES>>>(map_of(out), in))

// The fence of a thread covers what it knows of: another thread's stores it learns of at the barrier only.
template <bool CORRECT> __global__ static void fence_before_barrier(MAP, const int *in) {
    for (int i = threadIdx.x; i < TILE; i += T) smem[i] = in[i]; // here
    if (!CORRECT && threadIdx.x == 0) fence_proxy_async();
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (CORRECT) fence_proxy_async();
    tma_store(&map, 0, 0, 0, smem); // here
    tma_commit();
    tma_wait_read<0>();
}
FAULT(fence_before_barrier, cudaErrorLaunchFailure, "no fence.proxy.async", FIRST(TILE, in[i]),
      fence_before_barrier<CORRECT><<<1, T, TILE_BYTES>>>(map_of(out), in))

// 32 lanes store, one is elected: a fence and an arrival carry what that lane knows, not what its warp has done.
template <bool CORRECT> __global__ static void elected_without_syncwarp(MAP, const int *in) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x / 32 == 1) {
        for (int i = threadIdx.x % 32; i < TILE; i += 32) smem[i] = in[i]; // here
        fence_proxy_async();
        if (CORRECT) __syncwarp();
        if (threadIdx.x == 32) mbarrier_arrive(&full);
    }
    if (threadIdx.x != 0) return;
    mbarrier_wait(&full, 0);
    tma_store(&map, 0, 0, 0, smem); // here
    tma_commit();
    tma_wait_read<0>();
}
FAULT(elected_without_syncwarp, cudaErrorLaunchFailure, "nothing orders the two", FIRST(TILE, in[i]),
      elected_without_syncwarp<CORRECT><<<1, T, TILE_BYTES>>>(map_of(out), in))

// A loop of no rounds skips the only fence.
template <bool CORRECT> __global__ static void loop_skips_fence(MAP, const int *in, int rounds) {
    for (int i = threadIdx.x; i < TILE; i += T) smem[i] = in[i]; // here
    for (int i = 0; i < rounds; i++) fence_proxy_async();
    if (CORRECT) fence_proxy_async();
    __syncthreads();
    if (threadIdx.x != 0) return;
    tma_store(&map, 0, 0, 0, smem); // here
    tma_commit();
    tma_wait_read<0>();
}
FAULT(loop_skips_fence, cudaErrorLaunchFailure, "no fence.proxy.async", FIRST(TILE, in[i]),
      loop_skips_fence<CORRECT><<<1, T, TILE_BYTES>>>(map_of(out), in, 0))

template <bool CORRECT> __global__ static void overwrites_store(MAP, const int *in) {
    for (int i = threadIdx.x; i < TILE; i += T) smem[i] = in[i];
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        tma_store(&map, 0, 0, 0, smem); // here
        tma_commit();
        if (CORRECT) tma_wait_read<0>();
    }
    __syncthreads();
    smem[threadIdx.x] = 0; // here
    if (threadIdx.x == 0) tma_wait_read<0>();
}
FAULT(overwrites_store, cudaErrorLaunchFailure, "while the store of a tensor", FIRST(TILE, in[i]),
      overwrites_store<CORRECT><<<1, T, TILE_BYTES>>>(map_of(out), in))

template <bool CORRECT> __global__ static void store_never_waited_for(MAP, const int *in) {
    for (int i = threadIdx.x; i < TILE; i += T) smem[i] = in[i];
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x != 0) return;
    tma_store(&map, 0, 0, 0, smem); // here
    tma_commit();
    if (CORRECT) tma_wait_read<0>();
}
FAULT(store_never_waited_for, cudaErrorLaunchFailure, "the block ends while this store", FIRST(TILE, in[i]),
      store_never_waited_for<CORRECT><<<1, T, TILE_BYTES>>>(map_of(out), in))

// ---- where dynamic shared memory begins: at a multiple of what its declaration promises, and of no more

static void begin_at_least() { setenv("SIMT_SHARED_BASE", "least", 1); }
template <int MULTIPLE> __device__ static void *round_up(void *p) {
    return (void *)(((uintptr_t)p + MULTIPLE - 1) / MULTIPLE * MULTIPLE);
}

template <bool CORRECT> __global__ static void box_where_memory_begins(MAP, int *out) {
    extern __shared__ uint4 sixteen[];
    __shared__ uint64_t full;
    int *tile = (int *)(CORRECT ? round_up<128>(sixteen) : sixteen);
    ready(&full, 1);
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, TILE_BYTES);
        tma_load(tile, &map, 0, 0, 0, &full); // here
    }
    mbarrier_wait(&full, 0);
    out[threadIdx.x] = tile[threadIdx.x];
}
FAULT(box_where_memory_begins, cudaErrorMisalignedAddress, "declared at a multiple of 16, and with SIMT_SHARED_BASE=least",
      FIRST(T, in[i]), begin_at_least(); box_where_memory_begins<CORRECT><<<1, T, TILE_BYTES + 128>>>(map_of(in), out))

template <bool CORRECT> __global__ static void bytes_where_memory_begins(const int *in, int *out) {
    __shared__ uint64_t full;
    int *to;
    if constexpr (CORRECT) {
        extern __shared__ __align__(16) int aligned[];
        to = aligned;
    } else {
        extern __shared__ int not_aligned[];
        to = not_aligned;
    }
    ready(&full, 1);
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, T * 4);
        bulk_load(to, in, T * 4, &full); // here
    }
    mbarrier_wait(&full, 0);
    out[threadIdx.x] = to[threadIdx.x];
}
FAULT(bytes_where_memory_begins, cudaErrorMisalignedAddress, "declared at a multiple of 4, and with SIMT_SHARED_BASE=least",
      FIRST(T, in[i]), begin_at_least(); bytes_where_memory_begins<CORRECT><<<1, T, T * 4>>>(in, out))

// The descriptor drops the lowest four bits of the address.
template <bool CORRECT> __global__ static void product_where_memory_begins(const int *in, int *out) {
    extern __shared__ float floats[];
    int *tile = (int *)(CORRECT ? round_up<1024>(floats) : floats);
    for (int i = threadIdx.x; i < ONES_BYTES / 4; i += T) tile[i] = 0x3c003c00;
    fence_proxy_async();
    __syncthreads();
    float C[8][4];
    wgmma_fence();
    wgmma<false>(__half(), C, swizzled_tile(tile, 0), swizzled_tile(tile, 0), false); // here
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)C[7][3] + in[threadIdx.x];
}
FAULT(product_where_memory_begins, cudaErrorIllegalAddress, "declared at a multiple of 4, and with SIMT_SHARED_BASE=least",
      FIRST(T, 16 + in[i]), begin_at_least(); product_where_memory_begins<CORRECT><<<1, T, ONES_BYTES + 1024>>>(in, out))

// A box may begin at a multiple of 128, but the swizzle repeats at those of 1024: ordinary loads then find other numbers.
template <bool CORRECT> __global__ static void swizzle_where_memory_begins(MAP, int *out) {
    extern __shared__ __align__(128) int lines[];
    __shared__ uint64_t full;
    int *tile = (int *)(CORRECT ? round_up<1024>(lines) : lines), t = threadIdx.x, row = t / COLUMNS, unit = t % COLUMNS / 4;
    ready(&full, 1);
    if (t == 0) {
        mbarrier_arrive_expect(&full, TILE_BYTES);
        tma_load(tile, &map, 0, 0, 0, &full);
    }
    mbarrier_wait(&full, 0);
    out[t] = tile[row * COLUMNS + (unit ^ row) * 4 + t % 4];
}
template <bool CORRECT> static int right_of_swizzled() {
    struct arrays a;
    int out[T], right = 0;
    make_arrays(&a);
    shape s;
    s.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    swizzle_where_memory_begins<CORRECT><<<1, T, TILE_BYTES + 1024>>>(map_of(a.in, s), a.out);
    cr_assert_eq(cudaMemcpy(out, a.out, sizeof out, cudaMemcpyDeviceToHost), cudaSuccess);
    for (int i = 0; i < T; i++) right += out[i] == a.host_in[i];
    return right;
}
Test(faults, swizzle_where_memory_begins) {
    begin_at_least();
    cr_expect_lt(right_of_swizzled<false>(), T);
    cr_expect_eq(right_of_swizzled<true>(), T);
}

// ---- products: a tile of ones, 64 rows of 64 elements of 16 bits

__device__ static void fill_with_ones(bool fences = true) {
    for (int i = threadIdx.x; i < ONES_BYTES / 4; i += T) smem[i] = 0x3c003c00;
    if (fences) fence_proxy_async();
    __syncthreads();
}
__device__ static uint64_t ones(int k = 0) { return swizzled_tile((const char *)smem + 32 * k, 0); }

template <bool CORRECT> __global__ static void product_without_fence(const int *in, int *out) {
    for (int i = threadIdx.x; i < ONES_BYTES / 4; i += T) smem[i] = 0x3c003c00; // here
    if (CORRECT) fence_proxy_async();
    __syncthreads();
    float C[8][4];
    wgmma_fence();
    wgmma<false>(__half(), C, ones(), ones(), false); // here
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)C[7][3] + in[threadIdx.x];
}
FAULT(product_without_fence, cudaErrorLaunchFailure, "no fence.proxy.async", FIRST(T, 16 + in[i]),
      product_without_fence<CORRECT><<<1, T, ONES_BYTES>>>(in, out))

template <bool CORRECT> __global__ static void product_before_wait(const int *in, int *out) {
    fill_with_ones();
    float C[8][4];
    wgmma_fence();
    wgmma<false>(__half(), C, ones(), ones(), false); // here
    wgmma_commit();
    if (CORRECT) wgmma_wait<0>();
    out[threadIdx.x] = (int)C[7][3] + in[threadIdx.x]; // here
    wgmma_wait<0>();
}
FAULT(product_before_wait, cudaErrorLaunchFailure, "read of an accumulator", FIRST(T, 16 + in[i]),
      product_before_wait<CORRECT><<<1, T, ONES_BYTES>>>(in, out))

// A wait is for groups that were committed.
template <bool CORRECT> __global__ static void product_not_committed(const int *in, int *out) {
    fill_with_ones();
    float C[8][4];
    wgmma_fence();
    wgmma<false>(__half(), C, ones(), ones(), false); // here
    if (CORRECT) wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)C[7][3] + in[threadIdx.x]; // here
}
FAULT(product_not_committed, cudaErrorLaunchFailure, "commit its group", FIRST(T, 16 + in[i]),
      product_not_committed<CORRECT><<<1, T, ONES_BYTES>>>(in, out))

// One group of two may be under way; the other one is done.
template <bool CORRECT> __global__ static void waits_for_older_group(const int *in, int *out) {
    fill_with_ones();
    float C[8][4], D[8][4];
    wgmma_fence();
    wgmma<false>(__half(), C, ones(), ones(), false);
    wgmma_commit();
    wgmma<false>(__half(), D, ones(), ones(), false); // here
    wgmma_commit();
    wgmma_wait<1>();
    int sum = (int)C[0][0];
    if (CORRECT) wgmma_wait<0>();
    sum += (int)D[0][0]; // here
    wgmma_wait<0>();
    out[threadIdx.x] = sum + in[threadIdx.x];
}
FAULT(waits_for_older_group, cudaErrorLaunchFailure, "read of an accumulator", FIRST(T, 32 + in[i]),
      waits_for_older_group<CORRECT><<<1, T, ONES_BYTES>>>(in, out))

template <bool CORRECT> __global__ static void accumulators_without_fence(const int *in, int *out) {
    fill_with_ones();
    float C[8][4];
    wgmma_fence();
    wgmma<false>(__half(), C, ones(), ones(), false);
    wgmma_commit();
    wgmma_wait<0>();
    for (int n = 0; n < 8; n++)
        for (int e = 0; e < 4; e++) C[n][e] *= 2.0f; // here
    if (CORRECT) wgmma_fence();
    wgmma<false>(__half(), C, ones(), ones(), true); // here
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)C[7][3] + in[threadIdx.x];
}
FAULT(accumulators_without_fence, cudaErrorLaunchFailure, "without a wgmma.fence between", FIRST(T, 48 + in[i]),
      accumulators_without_fence<CORRECT><<<1, T, ONES_BYTES>>>(in, out))

// Registers of A are read until the product is done: the next ones come after the wait.
template <bool CORRECT> __global__ static void registers_of_A_under_way(const int *in, int *out) {
    fill_with_ones();
    float C[8][4];
    uint32_t A[2][4];
    for (int i = 0; i < 8; i++) A[i / 4][i % 4] = 0x3c003c00;
    wgmma_fence();
    wgmma<false>(__half(), C, A[0], ones(), false);
    wgmma<false>(__half(), C, A[1], ones(), true); // here
    wgmma_commit();
    uint32_t first = A[0][0] & 1; // a product does not change them: they may be read
    if (CORRECT) wgmma_wait<0>();
    A[1][2] = 0x40004000 + first; // here
    wgmma_wait<0>();
    out[threadIdx.x] = (int)(C[7][3] + A[1][2] % 2) + in[threadIdx.x];
}
FAULT(registers_of_A_under_way, cudaErrorLaunchFailure, "write of a register of A", FIRST(T, 32 + in[i]),
      registers_of_A_under_way<CORRECT><<<1, T, ONES_BYTES>>>(in, out))

template <bool CORRECT> __global__ static void registers_of_A_without_fence(const int *in, int *out) {
    fill_with_ones();
    float C[8][4], D[8][4];
    uint32_t A[4] = {0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00};
    wgmma_fence();
    wgmma<false>(__half(), C, A, ones(), false);
    wgmma_commit();
    wgmma_wait<0>();
    for (uint32_t &a : A) a = 0x40004000; // here
    if (CORRECT) wgmma_fence();
    wgmma<false>(__half(), D, A, ones(), false); // here
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)(C[7][3] + D[7][3]) + in[threadIdx.x];
}
FAULT(registers_of_A_without_fence, cudaErrorLaunchFailure, "reads A from registers", FIRST(T, 48 + in[i]),
      registers_of_A_without_fence<CORRECT><<<1, T, ONES_BYTES>>>(in, out))

// Four products are under way, each with registers of its own: those of the next one may be written beside the others.
template <bool CORRECT> __global__ static void next_registers_of_A(const int *in, int *out) {
    fill_with_ones();
    float C[8][4];
    uint32_t A[4][4];
    wgmma_fence();
    for (int k = 0; k < 8; k++) {
        if (k == 4 && CORRECT) wgmma_wait<0>();
        for (uint32_t &a : A[k % 4]) a = 0x3c003c00; // here
        wgmma_fence();
        wgmma<false>(__half(), C, A[k % 4], ones(), k > 0); // here
        wgmma_commit();
    }
    wgmma_wait<0>();
    out[threadIdx.x] = (int)C[7][3] + in[threadIdx.x];
}
FAULT(next_registers_of_A, cudaErrorLaunchFailure, "write of a register of A", FIRST(T, 128 + in[i]),
      next_registers_of_A<CORRECT><<<1, T, ONES_BYTES>>>(in, out))

// The next tile comes while warps may still read this one: each warp's wait is for its own rows only.
template <bool CORRECT> __global__ static void refill_without_barrier(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    fill_with_ones();
    float C[8][4];
    wgmma_fence();
    wgmma<false>(__half(), C, ones(), ones(), false); // here
    wgmma_commit();
    wgmma_wait<0>();
    if (CORRECT) __syncthreads();
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, TILE_BYTES);
        tma_load(smem, &map, 0, 0, 0, &full); // here
    }
    wgmma_wait<0>();
    mbarrier_wait(&full, 0);
    out[threadIdx.x] = (int)C[7][3] + smem[threadIdx.x];
}
FAULT(refill_without_barrier, cudaErrorLaunchFailure, "while the wgmma issued at|neither waited", FIRST(T, 16 + in[i]),
      refill_without_barrier<CORRECT><<<1, T, ONES_BYTES>>>(map_of(in), out))

template <bool CORRECT> __global__ static void refill_without_wait(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    fill_with_ones();
    float C[8][4];
    wgmma_fence();
    wgmma<false>(__half(), C, ones(), ones(), false); // here
    wgmma_commit();
    if (CORRECT) wgmma_wait<0>();
    __syncthreads();
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, TILE_BYTES);
        tma_load(smem, &map, 0, 0, 0, &full); // here
    }
    wgmma_wait<0>();
    mbarrier_wait(&full, 0);
    out[threadIdx.x] = (int)C[7][3] + smem[threadIdx.x];
}
FAULT(refill_without_wait, cudaErrorLaunchFailure, "while the wgmma issued at", FIRST(T, 16 + in[i]),
      refill_without_wait<CORRECT><<<1, T, ONES_BYTES>>>(map_of(in), out))

// Offsets in a descriptor are in units of 16 bytes.
template <bool CORRECT> __global__ static void descriptor_in_bytes(const int *in, int *out) {
    fill_with_ones();
    uint64_t stride = CORRECT ? 1024 / 16 : 1024, start = shared_address(smem) / 16;
    float C[8][4];
    wgmma_fence();
    wgmma<false>(__half(), C, start | stride << 32 | 1ull << 62, ones(), false); // here
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)C[7][3] + in[threadIdx.x];
}
FAULT(descriptor_in_bytes, cudaErrorIllegalAddress, "in units of 16 bytes", FIRST(T, 16 + in[i]),
      descriptor_in_bytes<CORRECT><<<1, T, ONES_BYTES>>>(in, out))

// The same for 8-bit numbers, in the swizzle of 64 bytes: 0x3c is 1.5 in e4m3, and every second one is 0.
template <bool CORRECT> __global__ static void descriptor_of_bytes(const int *in, int *out) {
    fill_with_ones();
    uint64_t stride = CORRECT ? 512 / 16 : 512, start = shared_address(smem) / 16;
    float C[8][4];
    wgmma_fence();
    wgmma_fp8(__nv_fp8_e4m3(), C, bytes_tile<128>(smem), start | stride << 32 | 2ull << 62, false); // here
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)C[7][3] + in[threadIdx.x];
}
FAULT(descriptor_of_bytes, cudaErrorIllegalAddress, "in units of 16 bytes", FIRST(T, 36 + in[i]),
      descriptor_of_bytes<CORRECT><<<1, T, ONES_BYTES>>>(in, out))

// The map has no swizzle, the descriptor has one. Rows from 8 on lie outside of the tensor: zeros.
template <bool CORRECT> __global__ static void swizzle_differs(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, ONES_BYTES);
        tma_load(smem, &map, 0, 100, 0, &full); // here
    }
    mbarrier_wait(&full, 0);
    float C[8][4];
    wgmma_fence();
    wgmma<false>(__half(), C, ones(), ones(), false); // here
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)C[7][3] + 1;
}
FAULT(swizzle_differs, cudaErrorLaunchFailure, "has written it in no swizzle", FIRST(T, 1),
      swizzle_differs<CORRECT>
      <<<1, T, ONES_BYTES>>>(map_of(in, {.box_rows = 64,
                                         .swizzle = CORRECT ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE}),
                             out))

// wgmma is an instruction of four warps.
template <bool CORRECT> __global__ static void product_of_three_warps(const int *in, int *out) {
    fill_with_ones();
    if (CORRECT || threadIdx.x < 96) {
        float C[8][4];
        wgmma_fence();
        wgmma<false>(__half(), C, ones(), ones(), false); // here
        wgmma_commit();
        wgmma_wait<0>();
        out[threadIdx.x] = (int)C[7][3] + in[threadIdx.x];
    }
}
FAULT(product_of_three_warps, cudaErrorLaunchFailure, "wgmma is an instruction of a warpgroup", FIRST(T, 16 + in[i]),
      product_of_three_warps<CORRECT><<<1, T, ONES_BYTES>>>(in, out))

// ---- named barriers, registers

template <bool CORRECT> __global__ static void named_barrier_counts(const int *in, int *out) {
    int t = threadIdx.x;
    if (t < 64) {
        smem[t] = in[t];
        named_barrier_arrive(1, CORRECT ? T : 96); // here
    } else {
        named_barrier_sync(1, T); // here
        out[t - 64] = smem[t - 64];
    }
}
FAULT(named_barrier_counts, cudaErrorLaunchFailure, "threads at barrier 1, at which", FIRST(64, in[i]),
      named_barrier_counts<CORRECT><<<1, T, TILE_BYTES>>>(in, out))

template <bool CORRECT> __global__ static void named_barrier_waits(const int *in, int *out) {
    int t = threadIdx.x;
    smem[t] = in[t];
    if (t < 64)
        named_barrier_arrive(CORRECT ? 1 : 2, T);
    else
        named_barrier_sync(1, T); // here
    if (t >= 64) out[t - 64] = smem[t - 64];
}
FAULT(named_barrier_waits, cudaErrorLaunchFailure, "for barrier 1, to which 64 of 128 threads have come",
      FIRST(64, in[i]), named_barrier_waits<CORRECT><<<1, T, TILE_BYTES>>>(in, out))

// __syncthreads() is barrier 0 of all threads. The others may come to it before the two warps have met.
template <bool CORRECT> __global__ static void barrier_zero_of_two_warps(const int *in, int *out) {
    int t = threadIdx.x;
    smem[t] = in[t];
    if (t < 64) named_barrier_sync(CORRECT ? 1 : 0, 64); // here
    out[t] = smem[t < 64 ? t ^ 32 : t];
    __syncthreads(); // here
}
FAULT(barrier_zero_of_two_warps, cudaErrorLaunchFailure, "at barrier 0, of which this thread does not know|it is that of __syncthreads()|is barrier 0 of 128 threads",
      FIRST(T, in[i < 64 ? i ^ 32 : i]), barrier_zero_of_two_warps<CORRECT><<<1, T, TILE_BYTES>>>(in, out))

template <bool CORRECT> __global__ static void barrier_zero_while_others_wait(const int *in, int *out) {
    int t = threadIdx.x;
    if (t < 64) named_barrier_sync(CORRECT ? 1 : 0, 64); // here
    __syncthreads(); // here
    if (t < 64) named_barrier_sync(0, 64);
    out[t] = in[t];
}
FAULT(barrier_zero_while_others_wait, cudaErrorLaunchFailure, "at barrier 0, of which this thread does not know|it is that of __syncthreads()|is barrier 0 of 128 threads",
      FIRST(T, in[i]), barrier_zero_while_others_wait<CORRECT><<<1, T>>>(in, out))

// Two pairs of warps meet by one number: the first of each pair may meet the second of the other.
template <bool CORRECT> __global__ static void number_of_two_pairs(const int *in, int *out) {
    int t = threadIdx.x;
    smem[t] = in[t]; // here
    named_barrier_sync(CORRECT ? 1 + t / 64 : 1, 64); // here
    out[t] = smem[t ^ 32]; // here
}
FAULT(number_of_two_pairs, cudaErrorLaunchFailure, "does not know that the round before is over|race on", FIRST(T, in[i ^ 32]),
      number_of_two_pairs<CORRECT><<<1, T, TILE_BYTES>>>(in, out))

// Two halves take turns. In the end each meets alone: the number of its turn may still get the other half's last arrival.
template <bool CORRECT> __global__ static void last_barrier_by_turn(const int *in, int *out) {
    int t = threadIdx.x, half = t / 64;
    if (half == 1) named_barrier_arrive(1, T);
    for (int turn = 0; turn < 3; turn++) {
        named_barrier_sync(1 + half, T);
        named_barrier_arrive(1 + (half ^ 1), T); // here
    }
    smem[t] = in[t];
    named_barrier_sync(CORRECT ? 3 + half : 1 + half, 64); // here
    out[t] = smem[t ^ 32];
}
FAULT(last_barrier_by_turn, cudaErrorLaunchFailure, "does not know that the round before is over|threads at barrier [12], at which",
      FIRST(T, in[i ^ 32]), last_barrier_by_turn<CORRECT><<<1, T, TILE_BYTES>>>(in, out))

// For two blocks of a multiprocessor there are 65536 registers, and 67584 are asked for.
template <bool CORRECT> __global__ static __launch_bounds__(2 * T, 2) void registers_of_two_blocks(const int *in, int *out) {
    if (threadIdx.x < T) registers_decrease<24>();
    else registers_increase<CORRECT ? 232 : 240>(); // here
    if (threadIdx.x < T) out[threadIdx.x] = in[threadIdx.x];
}
FAULT(registers_of_two_blocks, cudaErrorLaunchFailure, "ask for 33792 registers, but by its __launch_bounds__ the block has 32768", FIRST(T, in[i]),
      registers_of_two_blocks<CORRECT><<<1, 2 * T>>>(in, out))

// 65536 registers in all, but the threads start with a multiple of 8, 168 each: the block has 64512.
template <bool CORRECT> __global__ static __launch_bounds__(3 * T, 1) void registers_of_three_roles(const int *in, int *out) {
    if (threadIdx.x < T) registers_decrease<CORRECT ? 24 : 32>();
    else registers_increase<240>(); // here
    if (threadIdx.x < T) out[threadIdx.x] = in[threadIdx.x];
}
FAULT(registers_of_three_roles, cudaErrorLaunchFailure, "ask for 65536 registers, but by its __launch_bounds__ the block has 64512", FIRST(T, in[i]),
      registers_of_three_roles<CORRECT><<<1, 3 * T>>>(in, out))

template <bool CORRECT> __global__ static void registers_of_one_warp(const int *in, int *out) {
    if (CORRECT || threadIdx.x < 32) registers_decrease<24>(); // here
    out[threadIdx.x] = in[threadIdx.x];
}
FAULT(registers_of_one_warp, cudaErrorLaunchFailure, "setmaxnreg is an instruction of a warpgroup", FIRST(T, in[i]),
      registers_of_one_warp<CORRECT><<<1, T>>>(in, out))

// cp.async writes as ordinary stores do: after its wait the async proxy still needs a fence.
template <bool CORRECT> __global__ static void copy_without_fence(MAP, const int *in) {
    if (threadIdx.x < TILE / 4)
        __pipeline_memcpy_async((int4 *)smem + threadIdx.x, (const int4 *)in + threadIdx.x, 16); // here
    __pipeline_commit();
    __pipeline_wait_prior(0);
    if (CORRECT) fence_proxy_async();
    __syncthreads();
    if (threadIdx.x != 0) return;
    tma_store(&map, 0, 0, 0, smem); // here
    tma_commit();
    tma_wait_read<0>();
}
FAULT(copy_without_fence, cudaErrorLaunchFailure, "no fence.proxy.async", FIRST(TILE, in[i]),
      copy_without_fence<CORRECT><<<1, T, TILE_BYTES>>>(map_of(out), in))

// ---- a producer and a consumer: a stage is full when its copy has landed, and empty when all who read it have said so

__device__ static void produce(ring *r, const CUtensorMap *map, int bytes, int first, int rows) {
    for (int i = 0; i < ROUNDS; i++) {
        int s = i % STAGES;
        mbarrier_wait(r->empty + s, i / STAGES % 2 ^ 1);
        mbarrier_arrive_expect(r->full + s, bytes);
        tma_load((char *)smem + s * bytes, map, 0, first + rows * (i % 3), 0, r->full + s);
    }
}

// The second warpgroup waits for empty stages and fills them; the first one's threads each arrive when they have read.
template <bool CORRECT> __global__ static void released_before_read(MAP, int *out) {
    __shared__ ring r;
    start_ring(&r, T);
    if (threadIdx.x >= T) {
        registers_decrease<40>();
        if (threadIdx.x == T) produce(&r, &map, TILE_BYTES, 0, ROWS);
        return;
    }
    registers_increase<232>();
    int sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        int s = i % STAGES;
        mbarrier_wait(r.full + s, i / STAGES % 2);
        if (!CORRECT) mbarrier_arrive(r.empty + s);
        sum += smem[s * TILE + threadIdx.x]; // here
        if (CORRECT) mbarrier_arrive(r.empty + s);
    }
    out[threadIdx.x] = sum;
}
FAULT(released_before_read, cudaErrorLaunchFailure, "race on", FIRST(T, 2 * (in[i] + in[TILE + i] + in[2 * TILE + i])),
      released_before_read<CORRECT><<<1, 2 * T, STAGES * TILE_BYTES>>>(map_of(in), out))

// One thread of each warp releases the stage for its warp, which must have met after its wait.
template <bool CORRECT> __global__ static void released_before_product(MAP, int *out) {
    __shared__ ring r;
    start_ring(&r, 4);
    if (threadIdx.x >= T) {
        if (threadIdx.x == T) produce(&r, &map, ONES_BYTES, 100, 0);
        return;
    }
    float C[8][4] = {};
    for (int i = 0; i < ROUNDS; i++) {
        int s = i % STAGES;
        mbarrier_wait(r.full + s, i / STAGES % 2);
        uint64_t tile = swizzled_tile((char *)smem + s * ONES_BYTES, 0);
        wgmma_fence();
        wgmma<false>(__half(), C, tile, tile, true); // here
        wgmma_commit();
        if (CORRECT) wgmma_wait<0>();
        __syncwarp();
        if (threadIdx.x % 32 == 0) mbarrier_arrive(r.empty + s);
        wgmma_wait<0>();
    }
    out[threadIdx.x] = (int)C[0][0] + 5;
}
FAULT(released_before_product, cudaErrorLaunchFailure, "while the wgmma issued at", FIRST(T, 5),
      released_before_product<CORRECT><<<1, 2 * T, STAGES * ONES_BYTES>>>(
          map_of(in + 768, {.rows = 1, .box_rows = 64, .swizzle = CU_TENSOR_MAP_SWIZZLE_128B}), out))

// ---- correct, though it looks suspicious

// The second warpgroup does not wait for the copy: it learns from the first one, through a named barrier, that it has landed.
__global__ static void wait_of_the_other_warpgroup(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    int t = threadIdx.x;
    if (t == 0) {
        mbarrier_arrive_expect(&full, TILE_BYTES);
        tma_load(smem, &map, 0, 0, 0, &full);
    }
    if (t < T) {
        mbarrier_wait(&full, 0);
        named_barrier_arrive(1, 2 * T);
    } else {
        named_barrier_sync(1, 2 * T);
        out[t - T] = smem[t - T];
    }
}
PATTERN(wait_of_the_other_warpgroup, FIRST(T, in[i]),
        wait_of_the_other_warpgroup<<<1, 2 * T, TILE_BYTES>>>(map_of(in), out))

// An elected lane arrives for its warp, which has met before; fences that nothing needs.
__global__ static void elected_lane_arrives(MAP, const int *in) {
    __shared__ uint64_t full;
    ready(&full, T / 32);
    int t = threadIdx.x;
    for (int i = t; i < TILE; i += T) smem[i] = in[i];
    fence_proxy_async();
    __syncwarp();
    if (t % 32 == 0) mbarrier_arrive(&full);
    if (t != 64) return;
    fence_proxy_async();
    mbarrier_wait(&full, 0);
    tma_store(&map, 0, 0, 0, smem);
    tma_commit();
    tma_wait_read<0>();
}
PATTERN(elected_lane_arrives, FIRST(TILE, in[i]), elected_lane_arrives<<<1, T, TILE_BYTES>>>(map_of(out), in))

// Two groups under way in turns, each with its own accumulators.
__global__ static void groups_in_turns(const int *in, int *out) {
    fill_with_ones();
    float C[8][4] = {}, D[8][4] = {};
    wgmma_fence();
    for (int i = 0; i < 3; i++) {
        wgmma<false>(__half(), C, ones(), ones(), true);
        wgmma_commit();
        wgmma<true>(__half(), D, ones(), ones(), true);
        wgmma_commit();
        wgmma_wait<1>();
        C[0][0] += 1.0f;
        wgmma_fence();
    }
    wgmma_wait<0>();
    out[threadIdx.x] = (int)(C[0][0] + D[0][0]) + in[threadIdx.x];
}
PATTERN(groups_in_turns, FIRST(T, 99 + in[i]), groups_in_turns<<<1, T, ONES_BYTES>>>(in, out))

// A map that the program has written itself; accumulators that are no registers.
template <bool CORRECT> __global__ static void map_of_own_bytes(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    CUtensorMap copy = map;
    if (!CORRECT) copy.opaque[0] += 2ull << 48; // of the swizzle, or of the version
    if (threadIdx.x == 0) mbarrier_arrive_expect(&full, TILE_BYTES);
    if (threadIdx.x == 0) tma_load(smem, CORRECT ? &map : &copy, 0, 0, 0, &full); // here
    take_tile(&full, out);
}
FAULT(map_of_own_bytes, cudaErrorIllegalInstruction, "is none that cuTensorMapEncodeTiled() has made", FIRST(T, in[i]),
      map_of_own_bytes<CORRECT><<<1, T, TILE_BYTES>>>(map_of(in), out))

// A copy in local memory, as a parameter that is no __grid_constant__ is one, too.
template <bool CORRECT> __global__ static void map_in_local_memory(const CUtensorMap map, const __grid_constant__ CUtensorMap constant, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x == 0) mbarrier_arrive_expect(&full, TILE_BYTES);
    if (threadIdx.x == 0) tma_load(smem, CORRECT ? &constant : &map, 0, 0, 0, &full); // here
    take_tile(&full, out);
}
FAULT(map_in_local_memory, cudaErrorIllegalInstruction, "its tensor map lies in local memory", FIRST(T, in[i]),
      map_in_local_memory<CORRECT><<<1, T, TILE_BYTES>>>(map_of(in), map_of(in), out))

// The same beside a parameter that is constant and so large that it covers the map in a stack whose frames begin elsewhere.
struct four_maps {
    CUtensorMap map[4];
};
template <bool CORRECT> __global__ static void map_beside_constants(const __grid_constant__ four_maps constants, const CUtensorMap map, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x == 0) mbarrier_arrive_expect(&full, TILE_BYTES);
    if (threadIdx.x == 0) tma_load(smem, CORRECT ? constants.map + 3 : &map, 0, 0, 0, &full); // here
    take_tile(&full, out);
}
FAULT(map_beside_constants, cudaErrorIllegalInstruction, "its tensor map lies in local memory", FIRST(T, in[i]),
      map_beside_constants<CORRECT><<<1, T, TILE_BYTES>>>({map_of(in), map_of(in), map_of(in), map_of(in)}, map_of(in), out))

template <bool CORRECT> __global__ static void accumulators_in_memory(const int *in, int *out) {
    fill_with_ones();
    float C[8][4];
    float(&target)[8][4] = CORRECT ? C : *(float(*)[8][4])(out + 512);
    wgmma_fence();
    wgmma<false>(__half(), target, ones(), ones(), false); // here
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)target[7][3] + in[threadIdx.x];
}
FAULT(accumulators_in_memory, cudaErrorIllegalAddress, "they must be registers", FIRST(T, 16 + in[i]),
      accumulators_in_memory<CORRECT><<<1, T, ONES_BYTES>>>(in, out))

// A box that begins 8 bytes into a row.
template <bool CORRECT> __global__ static void box_between_units(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x == 0) mbarrier_arrive_expect(&full, TILE_BYTES);
    if (threadIdx.x == 0) tma_load(smem, &map, CORRECT ? 0 : 2, 0, 0, &full); // here
    take_tile(&full, out);
}
FAULT(box_between_units, cudaErrorIllegalInstruction, "8 bytes into a row: that must be a multiple of 16",
      FIRST(T, in[i]), box_between_units<CORRECT><<<1, T, TILE_BYTES>>>(map_of(in), out))

// A store that begins a row before the tensor; a load may.
template <bool CORRECT> __global__ static void store_before_the_tensor(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, TILE_BYTES);
        tma_load(smem, &map, 0, 0, 0, &full);
        mbarrier_wait(&full, 0);
        tma_store(&map, 0, CORRECT ? 0 : -1, 0, smem); // here
        tma_commit();
        tma_wait<0>();
    }
    __syncthreads();
    out[threadIdx.x] = smem[threadIdx.x];
}
FAULT(store_before_the_tensor, cudaErrorIllegalInstruction, "no store begins before 0", FIRST(T, in[i]),
      store_before_the_tensor<CORRECT><<<1, T, TILE_BYTES>>>(map_of(in), out))
