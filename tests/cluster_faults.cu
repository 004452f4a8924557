// Planted faults that need more than one turn of each warp, or more than one block: orders of warps, waits that come late, tiles and
// descriptors that do not match, and clusters. As those of hopper_faults.cu, for cards of compute_capability = 90.
#include "faults.h"

#include <cooperative_groups.h>

#include "hopper.cuh"
#include "tensors.h"

// ---- orders of warps: without a seed the last warp to come to a barrier goes on first, then the others in turn

// Tickets go to warps as they come: that three of them come in turn is luck.
template <bool CORRECT> __global__ static void ticket_taken_for_warp(const int *in, int *out) {
    __shared__ int next;
    if (threadIdx.x == 0) next = 0;
    __syncthreads();
    int warp = threadIdx.x / 32;
    if (warp == 3) return;
    int ticket = threadIdx.x % 32 == 0 ? atomicAdd(&next, 1) : 0;
    ticket = __shfl_sync(0xffffffffu, ticket, 0);
    out[32 * (CORRECT ? warp : ticket) + threadIdx.x % 32] = in[threadIdx.x];
    if (!CORRECT) assert(ticket == warp);
}
FAULT_OF_ORDER(ticket_taken_for_warp, false, cudaErrorAssert, "assertion failed", FIRST(96, in[i]),
               ticket_taken_for_warp<CORRECT><<<1, T>>>(in, out))

// Who comes first leads the others, but warp 2 does not know how.
template <bool CORRECT> __global__ static void role_of_who_comes_first(const int *in, int *out) {
    __shared__ int next;
    if (threadIdx.x == 0) next = 0;
    __syncthreads();
    int warp = threadIdx.x / 32;
    if (warp == 3) return;
    int ticket = threadIdx.x % 32 == 0 ? atomicAdd(&next, 1) : 0;
    ticket = __shfl_sync(0xffffffffu, ticket, 0);
    if (CORRECT ? warp == 0 : ticket == 0 && warp != 2)
        named_barrier_arrive(1, 96);
    else if (CORRECT || ticket != 0)
        named_barrier_sync(1, 96);
    out[threadIdx.x] = in[threadIdx.x];
}
FAULT_OF_ORDER(role_of_who_comes_first, false, cudaErrorLaunchFailure, "deadlock: no thread can go on",
               FIRST(96, in[i]), role_of_who_comes_first<CORRECT><<<1, T>>>(in, out))

// ---- waits that come too late

__device__ static void two_barriers(uint64_t *full, uint64_t *empty, volatile int *flag) {
    if (threadIdx.x == 0) {
        mbarrier_init(full, 32);
        mbarrier_init(empty, T - 32);
        fence_mbarrier_init();
        *flag = 0;
    }
    __syncthreads();
}

// Warp 0 goes on for so many phases, where it should wait for the others. They are slow.
template <bool CORRECT>
__device__ static int slow_consumers(uint64_t *full, uint64_t *empty, volatile int *flag, int rounds) {
    if (threadIdx.x < 32) {
        for (int i = 0; i < rounds; i++) {
            mbarrier_arrive(full);
            if (CORRECT) mbarrier_wait(empty, i % 2);
            __syncwarp();
        }
        if (threadIdx.x == 0) *flag = 1;
        return 0;
    }
    while (!CORRECT && *flag == 0) __nanosleep(1);
    return rounds;
}

// The phase that is waited for is over, and so is the next one: its parity comes again with the third one, to which nobody arrives.
template <bool CORRECT> __global__ static void two_phases_late(const int *in, int *out) {
    __shared__ uint64_t full, empty;
    __shared__ volatile int flag;
    two_barriers(&full, &empty, &flag);
    int rounds = slow_consumers<CORRECT>(&full, &empty, &flag, 2);
    for (int i = 0; i < rounds; i++) {
        mbarrier_wait(&full, i % 2); // here
        mbarrier_arrive(&empty);
    }
    out[threadIdx.x] = in[threadIdx.x];
}
FAULT(two_phases_late, cudaErrorLaunchFailure, "it means phase 0; 2 are over, and it waits for phase 2 now",
      FIRST(T, in[i]), two_phases_late<CORRECT><<<1, T>>>(in, out))

// Three phases late: the wait ends at once, by a later phase than was meant.
template <bool CORRECT> __global__ static void three_phases_late(const int *in, int *out) {
    __shared__ uint64_t full, empty;
    __shared__ volatile int flag;
    two_barriers(&full, &empty, &flag);
    int rounds = slow_consumers<CORRECT>(&full, &empty, &flag, 3);
    for (int i = 0; i < rounds; i++) {
        mbarrier_wait(&full, i % 2); // here
        mbarrier_arrive(&empty);
    }
    out[threadIdx.x] = in[threadIdx.x];
}
FAULT(three_phases_late, cudaErrorLaunchFailure, "it means phase 0; 3 are over, and the wait ends at once",
      FIRST(T, in[i]), three_phases_late<CORRECT><<<1, T>>>(in, out))

// The first wait for an empty stage must pass. Either the others arrive in advance, or the parity is that of the phase before the first:
// both together wait for a phase that does not come.
template <bool CORRECT> __global__ static void empty_twice(const int *in, int *out) {
    __shared__ uint64_t full, empty;
    __shared__ volatile int flag;
    two_barriers(&full, &empty, &flag);
    if (threadIdx.x >= 32) {
        mbarrier_arrive(&empty); // here
        __syncwarp();
        if (threadIdx.x % 32 == 0) atomicAdd((int *)&flag, 1);
    } else {
        while (flag < 3) __nanosleep(1);
        mbarrier_wait(&empty, CORRECT ? 0 : 1); // here
    }
    out[threadIdx.x] = in[threadIdx.x];
}
FAULT(empty_twice, cudaErrorLaunchFailure, "it means the one before the first; 1 are over", FIRST(T, in[i]),
      empty_twice<CORRECT><<<1, T>>>(in, out))

// Who arrives alone need not wait for its own phases; who learns of a phase from others need not wait for it.
__global__ static void phases_known_otherwise(const int *in, int *out) {
    __shared__ uint64_t full;
    if (threadIdx.x == 0) {
        mbarrier_init(&full, 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    for (int i = 0; i < 3; i++) {
        if (threadIdx.x == 0) mbarrier_arrive(&full);
        if (i % 2 == 1) __syncthreads();
    }
    if (threadIdx.x == 0) mbarrier_wait(&full, 0);
    __syncthreads();
    if (threadIdx.x >= 32) mbarrier_wait(&full, 0);
    mbarrier_wait(&full, 0);
    out[threadIdx.x] = in[threadIdx.x];
}
PATTERN(phases_known_otherwise, FIRST(T, in[i]), phases_known_otherwise<<<1, T>>>(in, out))

// ---- one lane of a warp

// elect.sync lets the lanes meet and orders nothing: the lane that arrives for the warp does not know what the others have stored.
template <bool CORRECT> __global__ static void elected_arrive(MAP, const int *in) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x / 32 == 1) {
        for (int i = threadIdx.x % 32; i < TILE; i += 32) smem[i] = in[i]; // here
        fence_proxy_async();
        if (CORRECT) __syncwarp();
        if (elect_one()) mbarrier_arrive(&full);
    }
    if (threadIdx.x != 0) return;
    mbarrier_wait(&full, 0);
    tma_store(&map, 0, 0, 0, smem); // here
    tma_commit();
    tma_wait_read<0>();
}
FAULT(elected_arrive, cudaErrorLaunchFailure, "nothing orders the two", FIRST(TILE, in[i]),
      elected_arrive<CORRECT><<<1, T, TILE_BYTES>>>(map_of(out), in))

template <bool CORRECT> __global__ static void elected_by_half(const int *in, int *out) {
    bool one = false;
    if (CORRECT || threadIdx.x % 32 < 16) one = elect_one(); // here
    out[threadIdx.x] = in[threadIdx.x] + one;
    __syncwarp();
}
FAULT(elected_by_half, cudaErrorLaunchFailure, "elect.sync", FIRST(T, in[i] + (i % 32 == 0)),
      elected_by_half<CORRECT><<<1, T>>>(in, out))

// ---- descriptors that do not fit the tile: 64 rows of 64 elements of 16 bits, loaded from `in`, of which two rows are used

__device__ static void load_tile(uint64_t *full, const CUtensorMap *map) {
    ready(full, 1);
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(full, ONES_BYTES);
        tma_load(smem, map, 0, 100, 0, full);
    }
    mbarrier_wait(full, 0);
}
static CUtensorMap swizzled_map(const int *in, CUtensorMapSwizzle swizzle, int columns = COLUMNS) {
    return map_of(in, {.columns = columns, .stride = 4 * columns, .box_rows = 64, .swizzle = swizzle});
}

// Row 1 of the tile is exchanged by the descriptor's swizzle, and not by the map's.
template <bool CORRECT> __global__ static void tile_without_swizzle(MAP, int *out) {
    __shared__ uint64_t full;
    load_tile(&full, &map);
    float C[8][4];
    wgmma_fence();
    wgmma<false>(__half(), C, swizzled_tile(smem, 0), swizzled_tile(smem, 0), false); // here
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)C[7][3] + 1;
}
FAULT(tile_without_swizzle, cudaErrorLaunchFailure,
      "it would take column 8 of row 1 of the tile instead of column 0 of row 1", FIRST(T, 1),
      tile_without_swizzle<CORRECT>
      <<<1, T, ONES_BYTES>>>(swizzled_map(in, CORRECT ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE), out))

// Eight rows of a tile are 8 rows of 128 bytes: with 64 as for the smaller swizzle, row 8 would be row 4.
template <bool CORRECT> __global__ static void stride_of_other_swizzle(MAP, int *out) {
    __shared__ uint64_t full;
    load_tile(&full, &map);
    uint64_t A = shared_address(smem) / 16 | (CORRECT ? 64ull : 32ull) << 32 | 1ull << 62;
    float C[8][4];
    wgmma_fence();
    wgmma<false>(__half(), C, A, swizzled_tile(smem, 0), false); // here
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)C[7][3] + 1;
}
FAULT(stride_of_other_swizzle, cudaErrorLaunchFailure,
      "it would take column 0 of row 4 of the tile instead of column 0 of row 8", FIRST(T, 1),
      stride_of_other_swizzle<CORRECT><<<1, T, ONES_BYTES>>>(swizzled_map(in, CU_TENSOR_MAP_SWIZZLE_128B), out))

// B with one k per row: 64 columns of C are one panel. A second one is not there, and the offset leads to row 16 of the first.
template <bool CORRECT> __global__ static void panel_that_is_not_there(MAP, int *out) {
    __shared__ uint64_t full;
    load_tile(&full, &map);
    float C[8][4], D[16][4];
    uint64_t A = swizzled_tile(smem, 0), B = swizzled_tile(smem, 2048);
    wgmma_fence();
    if (CORRECT)
        wgmma<true>(__half(), C, A, B, false);
    else
        wgmma<true>(__half(), D, A, B, false); // here
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)(CORRECT ? C[7][3] : D[7][3]) + 1;
}
FAULT(panel_that_is_not_there, cudaErrorLaunchFailure,
      "it would take column 0 of row 16 of the tile instead of column 64 of row 0", FIRST(T, 1),
      panel_that_is_not_there<CORRECT><<<1, T, ONES_BYTES>>>(swizzled_map(in, CU_TENSOR_MAP_SWIZZLE_128B), out))

// ---- clusters of two blocks: they use each other's shared memory

__device__ static void cluster_sync() {
    cluster_arrive();
    cluster_wait();
}
__device__ static int *of_rank(int *pointer, int rank) {
    return cooperative_groups::this_cluster().map_shared_rank(pointer, rank);
}
static __device__ int pair_thread() { return (int)(cluster_rank() * T + threadIdx.x); }

// The other block may not have begun.
template <bool CORRECT> __global__ static __cluster_dims__(2, 1, 1) void reads_before_begin(const int *in, int *out) {
    __shared__ int mine[T];
    mine[threadIdx.x] = in[pair_thread()];
    if (CORRECT) cluster_sync();
    out[pair_thread()] = of_rank(mine, cluster_rank() ^ 1)[threadIdx.x]; // here
    cluster_sync();
}
FAULT(reads_before_begin, cudaErrorLaunchFailure, "which may not have begun", FIRST(2 * T, in[i ^ T]),
      reads_before_begin<CORRECT><<<2, T>>>(in, out))

// The other block may have ended: its shared memory is another one's then.
template <bool CORRECT> __global__ static __cluster_dims__(2, 1, 1) void reads_after_end(const int *in, int *out) {
    __shared__ int mine[T];
    mine[threadIdx.x] = in[pair_thread()];
    cluster_sync();
    if (cluster_rank() == 0)
        out[threadIdx.x] = in[threadIdx.x]; // here
    else
        out[pair_thread()] = of_rank(mine, 0)[threadIdx.x]; // here
    if (CORRECT) cluster_sync();
}
FAULT(reads_after_end, cudaErrorLaunchFailure, "which may have ended", FIRST(2 * T, in[i % T]),
      reads_after_end<CORRECT><<<2, T>>>(in, out))

template <bool CORRECT> __global__ static __cluster_dims__(2, 1, 1) void arrives_after_end(const int *in, int *out) {
    __shared__ uint64_t full;
    ready(&full, T);
    cluster_sync();
    if (cluster_rank() == 1)
        mbarrier_arrive_remote(&full, 0); // here
    else if (CORRECT)
        mbarrier_wait(&full, 0);
    out[pair_thread()] = in[pair_thread()]; // here
}
FAULT(arrives_after_end, cudaErrorLaunchFailure, "which may have ended", FIRST(2 * T, in[i]),
      arrives_after_end<CORRECT><<<2, T>>>(in, out))

template <bool CORRECT>
__global__ static __cluster_dims__(2, 1, 1) void block_reads_block_writes(const int *in, int *out) {
    __shared__ int mine[T];
    cluster_sync();
    mine[threadIdx.x] = in[pair_thread()]; // here
    if (CORRECT) cluster_sync();
    out[pair_thread()] = of_rank(mine, cluster_rank() ^ 1)[threadIdx.x]; // here
    cluster_sync();
}
FAULT(block_reads_block_writes, cudaErrorLaunchFailure, "a barrier of the cluster is missing", FIRST(2 * T, in[i ^ T]),
      block_reads_block_writes<CORRECT><<<2, T>>>(in, out))

// __syncthreads() is a barrier of one block.
template <bool CORRECT> __global__ static __cluster_dims__(2, 1, 1) void block_barrier_only(const int *in, int *out) {
    __shared__ int theirs[T];
    cluster_sync();
    of_rank(theirs, cluster_rank() ^ 1)[threadIdx.x] = in[pair_thread()]; // here
    if (CORRECT)
        cluster_sync();
    else
        __syncthreads();
    out[pair_thread()] = theirs[threadIdx.x]; // here
    cluster_sync();
}
FAULT(block_barrier_only, cudaErrorLaunchFailure, "race on theirs|read of theirs", FIRST(2 * T, in[i ^ T]),
      block_barrier_only<CORRECT><<<2, T>>>(in, out))

// ---- clusters of four and eight

template <bool CORRECT> __global__ static __cluster_dims__(4, 1, 1) void ring_of_four(const int *in, int *out) {
    __shared__ int mine[T];
    cluster_sync();
    mine[threadIdx.x] = in[pair_thread()]; // here
    if (CORRECT) cluster_sync();
    out[pair_thread()] = of_rank(mine, (cluster_rank() + 1) % 4)[threadIdx.x]; // here
    cluster_sync();
}
FAULT(ring_of_four, cudaErrorLaunchFailure, "a barrier of the cluster is missing", FIRST(4 * T, in[(i + T) % (4 * T)]),
      ring_of_four<CORRECT><<<4, T>>>(in, out))

// Each block waits for its reader alone, whose arrivals count for two: nobody else has used its memory.
template <bool CORRECT> __global__ static __cluster_dims__(8, 1, 1) void readers_of_eight(const int *in, int *out) {
    __shared__ int mine[64];
    __shared__ uint64_t done;
    int i = (int)(cluster_rank() * 64 + threadIdx.x), next = (int)(cluster_rank() + 1) % 8;
    mine[threadIdx.x] = in[i];
    ready(&done, 2 * 64);
    cluster_sync();
    out[i] = of_rank(mine, next)[threadIdx.x];
    asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n" // here
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote], 2;\n}" ::"r"(shared_address(&done)),
                 "r"(next)
                 : "memory");
    if (CORRECT || cluster_rank() != 5) mbarrier_wait(&done, 0);
}
FAULT(readers_of_eight, cudaErrorLaunchFailure, "which may have ended", FIRST(8 * 64, in[(i + 64) % (8 * 64)]),
      readers_of_eight<CORRECT><<<8, 64>>>(in, out))

// All add to the first one's sum, by the size that the launch gives.
__global__ static void sum_of_cluster(const int *in, int *out) {
    __shared__ int sum;
    unsigned blocks = cooperative_groups::this_cluster().num_blocks();
    if (threadIdx.x == 0) sum = 0;
    cluster_sync();
    atomicAdd(of_rank(&sum, 0), in[blockIdx.x * 32 + threadIdx.x]);
    cluster_sync();
    if (cluster_rank() == 0 && threadIdx.x == 0) out[blockIdx.x / blocks] = sum;
}
static void launch_clusters(unsigned blocks, const int *in, int *out) {
    cudaLaunchAttribute size = {};
    size.id = cudaLaunchAttributeClusterDimension;
    size.val.clusterDim.x = blocks, size.val.clusterDim.y = size.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(8), config.blockDim = dim3(32), config.attrs = &size, config.numAttrs = 1;
    int clusters = 0, most = 0;
    cr_assert_eq(cudaOccupancyMaxPotentialClusterSize(&most, sum_of_cluster, &config), cudaSuccess);
    cr_assert_eq(cudaOccupancyMaxActiveClusters(&clusters, sum_of_cluster, &config), cudaSuccess);
    cr_assert(most == 8 && clusters > 0);
    cr_assert_eq(cudaLaunchKernelEx(&config, sum_of_cluster, in, out), cudaSuccess);
}
static int sum_from(const int *in, int first, int count) {
    return count == 0 ? 0 : in[first] + sum_from(in, first + 1, count - 1);
}
PATTERN(sum_of_four_blocks, FIRST(2, sum_from(in, i * 128, 128)), launch_clusters(4, in, out))
PATTERN(sum_of_eight_blocks, FIRST(1, sum_from(in, 0, 256)), launch_clusters(8, in, out))

// By PTX addresses: mapa, ld and st.shared::cluster.
template <bool CORRECT> __global__ static __cluster_dims__(2, 1, 1) void both_blocks_store(const int *in, int *out) {
    __shared__ int sum[T];
    cluster_sync();
    uint32_t address, got;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(address)
                 : "r"(shared_address(&sum[threadIdx.x])), "r"(0));
    if (cluster_rank() == 0)
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(in[threadIdx.x]) : "memory"); // here
    if (CORRECT) cluster_sync();
    if (cluster_rank() == 1)
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(in[threadIdx.x] + 1) : "memory"); // here
    cluster_sync();
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(got) : "r"(address) : "memory");
    out[pair_thread()] = (int)got;
    cluster_sync();
}
FAULT(both_blocks_store, cudaErrorLaunchFailure, "race on sum", FIRST(2 * T, in[i % T] + 1),
      both_blocks_store<CORRECT><<<2, T>>>(in, out))

// The barrier of a cluster orders accesses of its blocks to global memory, too.
template <bool CORRECT> __global__ static __cluster_dims__(2, 1, 1) void exchange_in_global(const int *in, int *out) {
    out[256 + pair_thread()] = in[pair_thread()]; // here
    if (CORRECT)
        cluster_sync();
    else
        __syncthreads();
    out[pair_thread()] = out[256 + (pair_thread() ^ T)]; // here
}
FAULT(exchange_in_global, cudaErrorLaunchFailure, "race on", FIRST(4 * T, i < 2 * T ? in[i ^ T] : in[i - 2 * T]),
      exchange_in_global<CORRECT><<<2, T>>>(in, out))

// The scope of a cluster holds both blocks of a pair, and none of the next pair. Of as many blocks the last to count adds up.
template <class F> __device__ static void sum_of_ends(int *out, int blocks, F count) {
    __shared__ int before;
    __syncthreads();
    if (threadIdx.x == 0) before = count();
    __syncthreads();
    const int *ends = out + 2 * T + threadIdx.x;
    if (before == blocks - 1) out[threadIdx.x] = ends[0] + ends[(blocks - 1) * T];
}
template <bool CORRECT>
__global__ static __cluster_dims__(2, 1, 1) void scope_within_cluster(const int *in, int *out, int *done) {
    out[2 * T + global_thread()] = in[global_thread()];
    sum_of_ends(out, 2, [=] {
        int before;
        if (CORRECT)
            asm volatile("atom.acq_rel.cluster.global.add.s32 %0, [%1], 1;" : "=r"(before) : "l"(done) : "memory");
        else
            asm volatile("atom.acq_rel.cta.global.add.s32 %0, [%1], 1;" : "=r"(before) : "l"(done) : "memory"); // here
        return before;
    });
}
FAULT(scope_within_cluster, cudaErrorLaunchFailure, "has scope .cta",
      FIRST(4 * T, i < T       ? in[i] + in[1 * T + i]
                   : i < 2 * T ? 0
                               : in[i - 2 * T]),
      int *done = new_ints(1);
      cudaMemset(done, 0, 4); scope_within_cluster<CORRECT><<<2, T>>>(in, out, done))
template <bool CORRECT>
__global__ static __cluster_dims__(2, 1, 1) void scope_of_one_cluster(const int *in, int *out, int *done) {
    out[2 * T + global_thread()] = in[global_thread()];
    sum_of_ends(out, 4, [=] {
        int before;
        if (CORRECT)
            asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], 1;" : "=r"(before) : "l"(done) : "memory");
        else
            asm volatile("atom.acq_rel.cluster.global.add.s32 %0, [%1], 1;" // here
                         : "=r"(before)
                         : "l"(done)
                         : "memory");
        return before;
    });
}
FAULT(scope_of_one_cluster, cudaErrorLaunchFailure, "has scope .cluster",
      FIRST(6 * T, i < T       ? in[i] + in[3 * T + i]
                   : i < 2 * T ? 0
                               : in[i - 2 * T]),
      int *done = new_ints(1);
      cudaMemset(done, 0, 4); scope_of_one_cluster<CORRECT><<<4, T>>>(in, out, done))

template <bool CORRECT>
__global__ static __cluster_dims__(2, 1, 1) void cluster_barrier_left_out(const int *in, int *out) {
    if (CORRECT || cluster_rank() == 0 || threadIdx.x < 96) {
        cluster_arrive();
        cluster_wait(); // here
    } else {
        named_barrier_sync(1, 64); // here
    }
    out[pair_thread()] = in[pair_thread()];
}
FAULT(cluster_barrier_left_out, cudaErrorLaunchFailure, "and of block (1,0,0) 96 of 128", FIRST(2 * T, in[i]),
      cluster_barrier_left_out<CORRECT><<<2, T>>>(in, out))

template <bool CORRECT> __global__ static __cluster_dims__(2, 1, 1) void arrives_twice(const int *in, int *out) {
    cluster_arrive(); // here
    if (CORRECT) cluster_wait();
    cluster_arrive(); // here
    cluster_wait();
    out[pair_thread()] = in[pair_thread()];
}
FAULT(arrives_twice, cudaErrorLaunchFailure, "this thread has arrived already", FIRST(2 * T, in[i]),
      arrives_twice<CORRECT><<<2, T>>>(in, out))

template <bool CORRECT>
__global__ static __cluster_dims__(2, 1, 1) void waits_without_arrival(const int *in, int *out) {
    if (CORRECT) cluster_arrive();
    cluster_wait(); // here
    out[pair_thread()] = in[pair_thread()];
}
FAULT(waits_without_arrival, cudaErrorLaunchFailure, "this thread has not arrived", FIRST(2 * T, in[i]),
      waits_without_arrival<CORRECT><<<2, T>>>(in, out))

template <bool CORRECT>
__global__ static __cluster_dims__(2, 1, 1) void rank_that_is_not_there(const int *in, int *out) {
    __shared__ uint64_t full;
    ready(&full, T);
    cluster_sync();
    mbarrier_arrive_remote(&full, CORRECT ? cluster_rank() : 2); // here
    mbarrier_wait(&full, 0);
    out[pair_thread()] = in[pair_thread()];
}
FAULT(rank_that_is_not_there, cudaErrorLaunchFailure, "the cluster has no block 2", FIRST(2 * T, in[i]),
      rank_that_is_not_there<CORRECT><<<2, T>>>(in, out))

// The first block overwrites its array when all threads of the second one have said that they have read it.
template <bool CORRECT>
__global__ static __cluster_dims__(2, 1, 1) void released_before_remote_read(const int *in, int *out) {
    __shared__ int mine[T];
    __shared__ uint64_t empty;
    ready(&empty, T);
    mine[threadIdx.x] = in[threadIdx.x];
    cluster_sync();
    if (cluster_rank() == 1) {
        if (!CORRECT) mbarrier_arrive_remote(&empty, 0);
        out[T + threadIdx.x] = of_rank(mine, 0)[threadIdx.x]; // here
        if (CORRECT) mbarrier_arrive_remote(&empty, 0);
    } else {
        mbarrier_wait(&empty, 0);
        mine[threadIdx.x] = 5; // here
        out[threadIdx.x] = mine[threadIdx.x];
    }
    cluster_sync();
}
FAULT(released_before_remote_read, cudaErrorLaunchFailure, "race on mine", FIRST(2 * T, i < T ? 5 : in[i - T]),
      released_before_remote_read<CORRECT><<<2, T>>>(in, out))

// What a thread stores into the other block is an ordinary store for the async proxy there, too.
template <bool CORRECT>
__global__ static __cluster_dims__(2, 1, 1) void remote_store_without_fence(MAP, const int *in) {
    cluster_sync();
    for (int i = threadIdx.x; i < TILE; i += T)
        if (cluster_rank() == 1) of_rank(smem, 0)[i] = in[i]; // here
    if (CORRECT) fence_proxy_async();
    cluster_sync();
    if (pair_thread() != 0) return;
    tma_store(&map, 0, 0, 0, smem); // here
    tma_commit();
    tma_wait_read<0>();
}
FAULT(remote_store_without_fence, cudaErrorLaunchFailure, "no fence.proxy.async", FIRST(TILE, in[i]),
      remote_store_without_fence<CORRECT><<<2, T, TILE_BYTES>>>(map_of(out), in))

// ---- one copy into both blocks: each loads half of a tile of 8 rows for both

__device__ static int own_half() { return (int)cluster_rank() * ROWS / 2; } // its first row
static CUtensorMap half_map(const int *in) { return map_of(in, {.box_rows = ROWS / 2}); }

template <bool CORRECT> __global__ static __cluster_dims__(2, 1, 1) void half_before_wait(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    cluster_sync();
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, TILE_BYTES);
        tma_load_multicast(smem + own_half() * COLUMNS, &map, 0, own_half(), 0, &full, 3); // here
    }
    cluster_sync();
    if (CORRECT) mbarrier_wait(&full, 0);
    out[pair_thread()] = smem[(threadIdx.x + T * cluster_rank()) % TILE]; // here
    mbarrier_wait(&full, 0);
    cluster_sync();
}
FAULT(half_before_wait, cudaErrorLaunchFailure, "is under way", FIRST(TILE, in[i]),
      half_before_wait<CORRECT><<<2, T, TILE_BYTES>>>(half_map(in), out))

// Each block announces all bytes that come, not those of its own copy.
template <bool CORRECT> __global__ static __cluster_dims__(2, 1, 1) void half_announced(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    cluster_sync();
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, CORRECT ? TILE_BYTES : TILE_BYTES / 2);
        tma_load_multicast(smem + own_half() * COLUMNS, &map, 0, own_half(), 0, &full, 3); // here
    }
    cluster_sync();
    mbarrier_wait(&full, 0);
    out[pair_thread()] = smem[pair_thread()];
    cluster_sync();
}
FAULT(half_announced, cudaErrorLaunchFailure, "announced 512 only|more to the phase", FIRST(TILE, in[i]),
      half_announced<CORRECT><<<2, T, TILE_BYTES>>>(half_map(in), out))

// The other block's barrier must be there before a copy counts at it: its own __syncthreads() does not say so.
template <bool CORRECT> __global__ static __cluster_dims__(2, 1, 1) void half_before_barrier(MAP, int *out) {
    __shared__ uint64_t full;
    cluster_sync();
    ready(&full, 1);
    if (CORRECT) cluster_sync();
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, TILE_BYTES);
        tma_load_multicast(smem + own_half() * COLUMNS, &map, 0, own_half(), 0, &full, 3); // here
    }
    mbarrier_wait(&full, 0);
    out[pair_thread()] = smem[pair_thread()];
    cluster_sync();
}
FAULT(half_before_barrier, cudaErrorLaunchFailure, "race on an mbarrier|that no thread has initialised",
      FIRST(TILE, in[i]), half_before_barrier<CORRECT><<<2, T, TILE_BYTES>>>(half_map(in), out))

template <bool CORRECT> __global__ static __cluster_dims__(2, 1, 1) void mask_of_one_block(MAP, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    cluster_sync();
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, TILE_BYTES);
        uint16_t blocks = CORRECT ? 3 : 1 << cluster_rank();
        tma_load_multicast(smem + own_half() * COLUMNS, &map, 0, own_half(), 0, &full, blocks);
    }
    mbarrier_wait(&full, 0); // here
    out[pair_thread()] = smem[pair_thread()];
    cluster_sync();
}
FAULT(mask_of_one_block, cudaErrorLaunchFailure, "512 bytes are missing that were announced", FIRST(TILE, in[i]),
      mask_of_one_block<CORRECT><<<2, T, TILE_BYTES>>>(half_map(in), out))

// A stage is empty when the readers of both blocks have said so, each in both blocks: a block that asks its own only overwrites what the
// other one still reads.
template <bool CORRECT> __global__ static __cluster_dims__(2, 1, 1) void refill_of_other_block(MAP, int *out) {
    __shared__ ring r;
    start_ring(&r, CORRECT ? 2 * T : T);
    cluster_sync();
    int sum = 0;
    if (threadIdx.x >= T) {
        for (int i = 0; i < ROUNDS && threadIdx.x == T; i++) {
            int s = i % STAGES;
            mbarrier_wait(r.empty + s, i / STAGES % 2 ^ 1);
            mbarrier_arrive_expect(r.full + s, TILE_BYTES);
            int *tile = smem + s * TILE + own_half() * COLUMNS;
            tma_load_multicast(tile, &map, 0, ROWS * (i % 3) + own_half(), 0, r.full + s, 3); // here
        }
    } else {
        for (int i = 0; i < ROUNDS; i++) {
            int s = i % STAGES;
            mbarrier_wait(r.full + s, i / STAGES % 2);
            sum += smem[s * TILE + threadIdx.x];
            mbarrier_arrive(r.empty + s);
            if (CORRECT) mbarrier_arrive_remote(r.empty + s, cluster_rank() ^ 1);
        }
        out[pair_thread()] = sum;
    }
    cluster_sync();
}
FAULT(refill_of_other_block, cudaErrorLaunchFailure, "race on|neither waited|announced 1024 only",
      FIRST(2 * T, 2 * (in[i % T] + in[TILE + i % T] + in[2 * TILE + i % T])),
      refill_of_other_block<CORRECT><<<2, 2 * T, STAGES * TILE_BYTES>>>(half_map(in), out))

// A cluster of the launch's, by cudaLaunchKernelEx(); and blocks without one, each of which is a cluster of its own.
__global__ static void rank_in_cluster(const int *in, int *out) {
    __shared__ int mine[T];
    auto cluster = cooperative_groups::this_cluster();
    mine[threadIdx.x] = in[threadIdx.x];
    cluster.sync();
    int first = *cluster.map_shared_rank(mine, 0);
    out[blockIdx.x] = (int)(cluster.block_rank() + 10 * cluster.num_blocks()) + first;
    cluster.sync();
}
PATTERN(rank_in_cluster, FIRST(5, in[0] + (i < 4 ? 20 + i % 2 : 10)), ([](const int *from, int *to) {
            cudaLaunchAttribute attribute = {};
            attribute.id = cudaLaunchAttributeClusterDimension;
            attribute.val.clusterDim = {2, 1, 1};
            cudaLaunchConfig_t config = {};
            config.gridDim = dim3(4), config.blockDim = dim3(1), config.attrs = &attribute, config.numAttrs = 1;
            cr_assert_eq(cudaLaunchKernelEx(&config, rank_in_cluster, from, to), cudaSuccess);
            rank_in_cluster<<<1, 1>>>(from, to + 4);
        })(in, out))

// ---- launches that are refused

Test(messages, clusters_refused) {
    reads_before_begin<true><<<3, T>>>(nullptr, nullptr);
    cr_assert_eq(cudaGetLastError(), cudaErrorInvalidConfiguration);
    report_says("a grid of (3,1,1) blocks is no multiple of clusters of (2,1,1)");
    reads_before_begin<true><<<2, 6 * T>>>(nullptr, nullptr);
    cr_assert_eq(cudaGetLastError(), cudaErrorNotSupported);
    report_says("a cluster of 2 blocks of 768 threads");
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {16, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(16), config.blockDim = dim3(1), config.attrs = &attribute, config.numAttrs = 1;
    cr_assert_eq(cudaLaunchKernelEx(&config, rank_in_cluster, (const int *)nullptr, (int *)nullptr),
                 cudaErrorNotSupported);
    report_says("clusters of (16,1,1) blocks");
}
