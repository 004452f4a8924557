// Planted faults of a backward pass on Hopper, and their correct twins, as in hopper_faults.cu: bulk copies and reductions of bytes in a
// row, and blocks that wait for one another at semaphores. For cards of compute_capability = 90.
#include "faults.h"

#include "hopper.cuh"

// A slab is 128 floats, or as many ints.
enum { SLAB_BYTES = T * 4 };

extern __shared__ __align__(128) int smem[];

static inline int bits_of(float x) {
    int bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

__device__ static void ready(uint64_t *barrier, int count) {
    if (threadIdx.x == 0) {
        mbarrier_init(barrier, count);
        fence_mbarrier_init();
    }
    __syncthreads();
}

__device__ static void fill_slab(float *slab, const int *in) {
    slab[threadIdx.x] = (float)in[threadIdx.x];
    fence_proxy_async();
    __syncthreads();
}

// ---- loads of bytes: L and D

template <bool CORRECT> __global__ static void row_before_phase(const int *in, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, SLAB_BYTES);
        bulk_load(smem, in, SLAB_BYTES, &full); // here
    }
    __syncthreads();
    if (CORRECT) mbarrier_wait(&full, 0);
    out[threadIdx.x] = smem[threadIdx.x]; // here
    mbarrier_wait(&full, 0);
}
FAULT(row_before_phase, cudaErrorLaunchFailure, "while the bulk copy into it", FIRST(T, in[i]),
      row_before_phase<CORRECT><<<1, T, SLAB_BYTES>>>(in, out))

// L and D in one phase: both are announced.
template <bool CORRECT> __global__ static void rows_announced_as_one(const int *in, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, CORRECT ? 2 * SLAB_BYTES : SLAB_BYTES);
        bulk_load(smem, in, SLAB_BYTES, &full);
        bulk_load(smem + T, in + T, SLAB_BYTES, &full); // here
    }
    mbarrier_wait(&full, 0);
    out[threadIdx.x] = smem[threadIdx.x] + smem[T + threadIdx.x];
}
FAULT(rows_announced_as_one, cudaErrorLaunchFailure, "but its threads have announced 512 only",
      FIRST(T, in[i] + in[T + i]), rows_announced_as_one<CORRECT><<<1, T, 2 * SLAB_BYTES>>>(in, out))

// A tile that is shorter than the others: its bytes are no multiple of 16.
template <bool CORRECT> __global__ static void row_of_odd_size(const int *in, int *out, int rows) {
    __shared__ uint64_t full;
    ready(&full, 1);
    int bytes = CORRECT ? (rows + 3) / 4 * 16 : rows * 4;
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, bytes);
        bulk_load(smem, in, bytes, &full); // here
    }
    mbarrier_wait(&full, 0);
    if ((int)threadIdx.x < rows) out[threadIdx.x] = smem[threadIdx.x];
}
FAULT(row_of_odd_size, cudaErrorMisalignedAddress, "must be a multiple of 16", FIRST(77, in[i]),
      row_of_odd_size<CORRECT><<<1, T, SLAB_BYTES>>>(in, out, 77))

template <bool CORRECT> __global__ static void row_from_odd_place(const int *in, int *out) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, SLAB_BYTES);
        bulk_load(smem, in + (CORRECT ? 4 : 3), SLAB_BYTES, &full); // here
    }
    mbarrier_wait(&full, 0);
    out[threadIdx.x] = smem[threadIdx.x];
}
FAULT(row_from_odd_place, cudaErrorMisalignedAddress, "in global memory: that must be a multiple of 16",
      FIRST(T, in[4 + i]), row_from_odd_place<CORRECT><<<1, T, SLAB_BYTES>>>(in, out))

// ---- reductions: dQ by way of a slab

template <bool CORRECT> __global__ static void slab_without_fence(const int *in, float *out) {
    float *slab = (float *)smem;
    slab[threadIdx.x] = (float)in[threadIdx.x]; // here
    if (CORRECT) fence_proxy_async();
    __syncthreads();
    if (threadIdx.x != 0) return;
    bulk_reduce_add(out, slab, SLAB_BYTES); // here
    tma_commit();
    tma_wait_read<0>();
}
FAULT(slab_without_fence, cudaErrorLaunchFailure, "no fence.proxy.async", FIRST(T, bits_of((float)in[i])),
      slab_without_fence<CORRECT><<<1, T, SLAB_BYTES>>>(in, (float *)out))

// The writer warp's fence comes before the named barrier by which it learns of the stores.
template <bool CORRECT> __global__ static void fence_of_the_writer(const int *in, float *out) {
    float *slab = (float *)smem;
    int t = threadIdx.x;
    if (t < T) {
        slab[t] = (float)in[t]; // here
        if (CORRECT) fence_proxy_async();
        named_barrier_arrive(1, T + 32);
        return;
    }
    fence_proxy_async();
    named_barrier_sync(1, T + 32);
    if (t > T) return;
    bulk_reduce_add(out, slab, SLAB_BYTES); // here
    tma_commit();
    tma_wait_read<0>();
}
FAULT(fence_of_the_writer, cudaErrorLaunchFailure, "no fence.proxy.async", FIRST(T, bits_of((float)in[i])),
      fence_of_the_writer<CORRECT><<<1, T + 32, SLAB_BYTES>>>(in, (float *)out))

template <bool CORRECT> __global__ static void slab_overwritten(const int *in, float *out) {
    float *slab = (float *)smem;
    for (int round = 0; round < 2; round++) {
        fill_slab(slab, in + round * T);
        if (threadIdx.x == 0) {
            bulk_reduce_add(out, slab, SLAB_BYTES); // here
            tma_commit();
            if (CORRECT) tma_wait_read<0>();
        }
        __syncthreads();
        slab[threadIdx.x] = 0.0f; // here
    }
    if (threadIdx.x == 0) tma_wait_read<0>();
}
FAULT(slab_overwritten, cudaErrorLaunchFailure, "while the bulk reduction issued at",
      FIRST(T, bits_of((float)in[i] + (float)in[T + i])),
      slab_overwritten<CORRECT><<<1, T, SLAB_BYTES>>>(in, (float *)out))

// .read is enough for the slab, and not for who reads the sums.
template <bool CORRECT> __global__ static void sums_before_landing(const int *in, float *sums, float *out) {
    float *slab = (float *)smem;
    fill_slab(slab, in);
    if (threadIdx.x == 0) {
        bulk_reduce_add(sums, slab, SLAB_BYTES); // here
        tma_commit();
        if (CORRECT) tma_wait<0>();
        tma_wait_read<0>();
    }
    __syncthreads();
    out[threadIdx.x] = sums[threadIdx.x]; // here
}
FAULT(sums_before_landing, cudaErrorLaunchFailure, "may not have written yet", FIRST(T, bits_of((float)in[i] + 0.0f)),
      float *sums = (float *)new_ints(T);
      cudaMemset(sums, 0, SLAB_BYTES); sums_before_landing<CORRECT><<<1, T, SLAB_BYTES>>>(in, sums, (float *)out))

// Of the issuer itself, a later store by itself: neither is ordered before the other.
template <bool CORRECT> __global__ static void stores_in_no_order(const int *in, int *out) {
    smem[threadIdx.x] = in[threadIdx.x];
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x != 0) return;
    bulk_store(out, smem, SLAB_BYTES); // here
    tma_commit();
    if (CORRECT)
        tma_wait<0>();
    else
        tma_wait_read<0>();
    out[0] = 3; // here
}
FAULT(stores_in_no_order, cudaErrorLaunchFailure, "may not have written yet", FIRST(T, i == 0 ? 3 : in[i]),
      stores_in_no_order<CORRECT><<<1, T, SLAB_BYTES>>>(in, out))

// Blocks add to one row: that is atomic, and a plain store to it is not.
template <bool CORRECT> __global__ static void store_beside_reductions(const int *in, float *out) {
    float *slab = (float *)smem;
    fill_slab(slab, in);
    if (threadIdx.x == 0) {
        bulk_reduce_add(out, slab, SLAB_BYTES); // here
        tma_commit();
        tma_wait_read<0>();
    }
    if (threadIdx.x != 5) return;
    if (CORRECT)
        atomicAdd(&out[7], 1.0f);
    else
        out[7] = 1.0f; // here
}
FAULT(store_beside_reductions, cudaErrorLaunchFailure, "race on",
      FIRST(T, bits_of(2 * (float)in[i] + (i == 7 ? 2.0f : 0.0f))),
      store_beside_reductions<CORRECT><<<2, T, SLAB_BYTES>>>(in, (float *)out))

// ---- semaphores: blocks add their slabs one after the other

constexpr int BLOCKS = 4;

static int *new_semaphore(bool zeroed = true) {
    int *semaphore = new_ints(1);
    if (zeroed) cudaMemset(semaphore, 0, sizeof *semaphore);
    return semaphore;
}

// FlashAttention issue 2244: the next block may add before this one's sums have landed, which no run on a card has shown.
template <bool CORRECT> __global__ static void raised_after_read(const int *in, float *out, int *semaphore) {
    float *slab = (float *)smem;
    fill_slab(slab, in);
    if (threadIdx.x != 0) return;
    semaphore_wait(semaphore, blockIdx.x);
    bulk_reduce_add(out, slab, SLAB_BYTES); // here
    tma_commit();
    if (CORRECT)
        tma_wait<0>();
    else
        tma_wait_read<0>();
    semaphore_raise(semaphore);
}
FAULT(raised_after_read, cudaErrorLaunchFailure, "though a semaphore says that it comes first",
      FIRST(T, bits_of(BLOCKS *(float)in[i])),
      raised_after_read<CORRECT><<<BLOCKS, T, SLAB_BYTES>>>(in, (float *)out, new_semaphore()))

template <bool CORRECT> __global__ static void semaphore_not_zeroed(const int *in, int *out, int *semaphore) {
    if (threadIdx.x == 0) semaphore_wait(semaphore, blockIdx.x); // here
    __syncthreads();
    out[threadIdx.x] += in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) semaphore_raise(semaphore);
}
FAULT(semaphore_not_zeroed, cudaErrorLaunchFailure, "which nobody has written", FIRST(T, BLOCKS *in[i]),
      semaphore_not_zeroed<CORRECT><<<BLOCKS, T>>>(in, out, new_semaphore(CORRECT)))

// The launch before has left its value.
template <bool CORRECT> __global__ static void semaphore_of_last_launch(const int *in, int *out, int *semaphore) {
    if (threadIdx.x == 0) semaphore_wait(semaphore, blockIdx.x); // here
    __syncthreads();
    out[threadIdx.x] += in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) semaphore_raise(semaphore);
}
FAULT(semaphore_of_last_launch, cudaErrorLaunchFailure, "deadlock: no thread can go on", FIRST(T, 2 * BLOCKS * in[i]),
      int *semaphore = new_semaphore();
      semaphore_of_last_launch<CORRECT><<<BLOCKS, T>>>(in, out, semaphore);
      if (CORRECT) cudaMemset(semaphore, 0, sizeof *semaphore);
      semaphore_of_last_launch<CORRECT><<<BLOCKS, T>>>(in, out, semaphore))

// Who raises before its turn takes the value away for which another block waits, or it waits for itself.
template <bool CORRECT> __global__ static void raised_out_of_turn(const int *in, int *out, int *semaphore) {
    if (threadIdx.x == 0) {
        if (!CORRECT) semaphore_raise(semaphore);
        semaphore_wait(semaphore, blockIdx.x); // here
    }
    __syncthreads();
    atomicAdd(&out[threadIdx.x], in[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0 && CORRECT) semaphore_raise(semaphore);
}
FAULT(raised_out_of_turn, cudaErrorLaunchFailure, "for another value of the semaphore", FIRST(T, BLOCKS *in[i]),
      raised_out_of_turn<CORRECT><<<BLOCKS, T>>>(in, out, new_semaphore()))

// A block without query tiles has nothing to add, and must let the next one go on.
template <bool CORRECT> __global__ static void no_tiles_no_raise(const int *in, int *out, int *semaphore) {
    int tiles = blockIdx.x == 1 ? 0 : 1;
    if (threadIdx.x == 0 && (CORRECT || tiles > 0)) semaphore_wait(semaphore, blockIdx.x); // here
    __syncthreads();
    for (int i = 0; i < tiles; i++) out[threadIdx.x] += in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0 && (CORRECT || tiles > 0)) semaphore_raise(semaphore);
}
FAULT(no_tiles_no_raise, cudaErrorLaunchFailure, "deadlock: no thread can go on", FIRST(T, (BLOCKS - 1) * in[i]),
      no_tiles_no_raise<CORRECT><<<BLOCKS, T>>>(in, out, new_semaphore()))

// The thread that raises knows of the others' stores from a barrier on.
template <bool CORRECT> __global__ static void raised_before_barrier(const int *in, int *out, int *semaphore) {
    if (threadIdx.x == 0) semaphore_wait(semaphore, blockIdx.x);
    __syncthreads();
    out[threadIdx.x] += in[threadIdx.x]; // here
    if (CORRECT) __syncthreads();
    if (threadIdx.x == 0) semaphore_raise(semaphore);
}
FAULT(raised_before_barrier, cudaErrorLaunchFailure, "a semaphore must be raised after the earlier access",
      FIRST(T, BLOCKS *in[i]), raised_before_barrier<CORRECT><<<BLOCKS, T>>>(in, out, new_semaphore()))

template <bool CORRECT> __global__ static void waited_for_by_one(const int *in, int *out, int *semaphore) {
    if (threadIdx.x == 0) semaphore_wait(semaphore, blockIdx.x);
    if (CORRECT || threadIdx.x < 32) __syncwarp();
    if (CORRECT) __syncthreads();
    out[threadIdx.x] += in[threadIdx.x]; // here
    __syncthreads();
    if (threadIdx.x == 0) semaphore_raise(semaphore);
}
FAULT(waited_for_by_one, cudaErrorLaunchFailure, "race on", FIRST(T, BLOCKS *in[i]),
      waited_for_by_one<CORRECT><<<BLOCKS, T>>>(in, out, new_semaphore()))

// An atomic addition alone releases nothing.
template <bool CORRECT> __global__ static void raised_by_plain_atomic(const int *in, int *out, int *semaphore) {
    if (threadIdx.x == 0) semaphore_wait(semaphore, blockIdx.x);
    __syncthreads();
    out[threadIdx.x] += in[threadIdx.x]; // here
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (CORRECT)
        semaphore_raise(semaphore);
    else
        atomicAdd(semaphore, 1);
}
FAULT(raised_by_plain_atomic, cudaErrorLaunchFailure, "race on", FIRST(T, BLOCKS *in[i]),
      raised_by_plain_atomic<CORRECT><<<BLOCKS, T>>>(in, out, new_semaphore()))

// Additions of numbers in turns, by one thread each: without a release the turns order nothing, and no race tells of it.
template <bool CORRECT> __device__ static void pass_turn(int *semaphore) {
    if (CORRECT)
        semaphore_raise(semaphore);
    else
        atomicAdd(semaphore, 1);
}
template <bool CORRECT> __global__ static void turn_without_release(const int *in, float *out, int *semaphore) {
    if (threadIdx.x != 0) return;
    semaphore_wait(semaphore, blockIdx.x);
    for (int i = 0; i < T; i++) atomicAdd(&out[i], (float)in[i]); // here
    pass_turn<CORRECT>(semaphore);
}
FAULT(turn_without_release, cudaErrorLaunchFailure, "which releases nothing", FIRST(T, bits_of(BLOCKS *(float)in[i])),
      turn_without_release<CORRECT><<<BLOCKS, T>>>(in, (float *)out, new_semaphore()))

template <bool CORRECT> __global__ static void bulk_turn_without_release(const int *in, float *out, int *semaphore) {
    float *slab = (float *)smem;
    fill_slab(slab, in);
    if (threadIdx.x != 0) return;
    semaphore_wait(semaphore, blockIdx.x);
    bulk_reduce_add(out, slab, SLAB_BYTES); // here
    tma_commit();
    tma_wait<0>();
    pass_turn<CORRECT>(semaphore);
}
FAULT(bulk_turn_without_release, cudaErrorLaunchFailure, "which releases nothing",
      FIRST(T, bits_of(BLOCKS *(float)in[i])),
      bulk_turn_without_release<CORRECT><<<BLOCKS, T, SLAB_BYTES>>>(in, (float *)out, new_semaphore()))

// Whole numbers may be added in any order.
__global__ static void counts_without_release(const int *in, int *out, int *semaphore) {
    if (threadIdx.x == 0) semaphore_wait(semaphore, blockIdx.x);
    __syncthreads();
    atomicAdd(&out[threadIdx.x], in[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(semaphore, 1);
}
PATTERN(counts_without_release, FIRST(T, BLOCKS *in[i]),
        counts_without_release<<<BLOCKS, T>>>(in, out, new_semaphore()))

// ---- the roles of a step

// The writer warp waits for a full slab, and the others for an empty one: before the first it is empty already.
template <bool CORRECT> __global__ static void nobody_said_empty(const int *in, float *out) {
    enum { EMPTY = 1, FULL = 2, ROUNDS = 3 };
    float *slab = (float *)smem;
    int t = threadIdx.x;
    if (t >= T) {
        if (CORRECT) named_barrier_arrive(EMPTY, T + 32);
        for (int i = 0; i < ROUNDS; i++) {
            named_barrier_sync(FULL, T + 32); // here
            if (t == T) {
                bulk_reduce_add(out, slab, SLAB_BYTES);
                tma_commit();
                tma_wait_read<0>();
            }
            __syncwarp();
            if (i + 1 < ROUNDS) named_barrier_arrive(EMPTY, T + 32);
        }
        return;
    }
    for (int i = 0; i < ROUNDS; i++) {
        named_barrier_sync(EMPTY, T + 32); // here
        slab[t] = (float)in[t];
        fence_proxy_async();
        named_barrier_arrive(FULL, T + 32);
    }
}
FAULT(nobody_said_empty, cudaErrorLaunchFailure, "for barrier 1, to which 128 of 160 threads have come",
      FIRST(T, bits_of(3 * (float)in[i])), nobody_said_empty<CORRECT><<<1, T + 32, SLAB_BYTES>>>(in, (float *)out))

// dS: each warpgroup stores its half of a tile of ones, and the product of the first one reads both.
enum { ONES_BYTES = 64 * 128 };
template <bool CORRECT> __global__ static void half_of_dS(const int *in, int *out) {
    for (int i = threadIdx.x; i < ONES_BYTES / 4; i += 2 * T) smem[i] = 0x3c003c00; // here
    fence_proxy_async();
    if (CORRECT)
        named_barrier_sync(1, 2 * T);
    else
        named_barrier_sync(1 + threadIdx.x / T, T);
    if (threadIdx.x >= T) return;
    uint64_t tile = swizzled_tile(smem, 0);
    float C[8][4];
    wgmma_fence();
    wgmma<false>(__half(), C, tile, tile, false); // here
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)C[7][3] + in[threadIdx.x];
}
FAULT(half_of_dS, cudaErrorLaunchFailure, "nothing orders the two|which nobody has written", FIRST(T, 16 + in[i]),
      half_of_dS<CORRECT><<<1, 2 * T, ONES_BYTES>>>(in, out))

// Of A in rows of k, too, what warps of the second half have stored is fenced by them.
template <bool CORRECT> __global__ static void half_of_dS_fenced(const int *in, int *out) {
    for (int i = threadIdx.x; i < ONES_BYTES / 4; i += 2 * T) smem[i] = 0x3c003c00; // here
    if (CORRECT || threadIdx.x < T) fence_proxy_async();
    named_barrier_sync(1, 2 * T);
    if (threadIdx.x >= T) return;
    uint64_t tile = swizzled_tile(smem, 0);
    float C[8][4];
    wgmma_fence();
    wgmma<true, true>(__half(), C, tile, tile, false); // here
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)C[7][3] + in[threadIdx.x];
}
FAULT(half_of_dS_fenced, cudaErrorLaunchFailure, "no fence.proxy.async", FIRST(T, 16 + in[i]),
      half_of_dS_fenced<CORRECT><<<1, 2 * T, ONES_BYTES>>>(in, out))

// L of one tile after the other in one buffer, read by two warpgroups: both release it, and a warp beside them loads the next.
// Of several readers of a word one is kept: when the one that releases reads last, the fault is not found.
template <bool CORRECT> __global__ static void row_released_by_one(const int *in, int *out) {
    __shared__ uint64_t full, empty;
    int t = threadIdx.x, sum = 0;
    if (t == 0) mbarrier_init(&empty, CORRECT ? 2 * T : T);
    ready(&full, 1);
    for (int i = 0; i < 2; i++) {
        if (t == 2 * T) {
            if (i > 0) mbarrier_wait(&empty, 0);
            mbarrier_arrive_expect(&full, SLAB_BYTES);
            bulk_load(smem, in + i * T, SLAB_BYTES, &full); // here
        }
        if (t >= 2 * T) continue;
        mbarrier_wait(&full, i);
        sum += smem[t % T]; // here
        if (i == 0 && (CORRECT || t < T)) mbarrier_arrive(&empty);
    }
    if (t >= T && t < 2 * T) out[t - T] = sum;
}
FAULT_OF_ORDER(row_released_by_one, true, cudaErrorLaunchFailure, "race on|comes too late", FIRST(T, in[i] + in[T + i]),
      row_released_by_one<CORRECT><<<1, 2 * T + 32, SLAB_BYTES>>>(in, out))

// ---- correct, though it looks suspicious

// What one block has learnt of another goes on to a third one, and reads before a release come before writes after the acquire.
__global__ static void known_by_way_of_another(const int *in, int *out, int *semaphores) {
    int t = threadIdx.x, block = blockIdx.x;
    if (block > 0 && t == 40) semaphore_wait(&semaphores[block - 1], 1);
    __syncthreads();
    if (block == 0) out[t] = in[t];
    if (block == 2) out[t] += in[t] + out[127 - t] * 0;
    __syncthreads();
    if (t == 7) semaphore_raise(&semaphores[block]);
}
PATTERN(known_by_way_of_another, FIRST(T, 2 * in[i]), int *semaphores = new_ints(4); cudaMemset(semaphores, 0, 16);
        known_by_way_of_another<<<3, T>>>(in, out, semaphores))

// The last block comes first: more blocks wait than there are CPU threads.
__global__ static void last_block_first(const int *in, int *out, int *semaphore) {
    if (threadIdx.x == 0) semaphore_wait(semaphore, gridDim.x - 1 - blockIdx.x);
    __syncthreads();
    out[threadIdx.x] = 2 * out[threadIdx.x] + (int)blockIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) semaphore_raise(semaphore);
    (void)in;
}
static int by_descending_blocks() {
    int value = 0;
    for (int block = 15; block >= 0; block--) value = 2 * value + block;
    return value;
}
PATTERN(last_block_first, FIRST(32, by_descending_blocks()), last_block_first<<<16, 32>>>(in, out, new_semaphore()))

// Additions of several blocks in no order: .read is enough.
__global__ static void additions_in_no_order(const int *in, float *out) {
    float *slab = (float *)smem;
    for (int i = 0; i < 3; i++) {
        fill_slab(slab, in);
        if (threadIdx.x == 0) {
            bulk_reduce_add(out, slab, SLAB_BYTES);
            tma_commit();
            tma_wait_read<0>();
        }
        __syncthreads();
    }
}
PATTERN(additions_in_no_order, FIRST(T, bits_of(3 * BLOCKS * (float)in[i])),
        additions_in_no_order<<<BLOCKS, T, SLAB_BYTES>>>(in, (float *)out))

// ---- global memory only

template <bool CORRECT> __global__ static void reduction_over_a_local_array(const int *in, float *out) {
    float *slab = (float *)smem, mine[T] = {};
    fill_slab(slab, in);
    if (threadIdx.x == 0) {
        bulk_reduce_add(CORRECT ? out : mine, slab, SLAB_BYTES); // here
        tma_commit();
        tma_wait<0>();
    }
}
FAULT(reduction_over_a_local_array, cudaErrorIllegalAddress, "the other side must be global memory",
      FIRST(T, bits_of((float)in[i])), reduction_over_a_local_array<CORRECT><<<1, T, SLAB_BYTES>>>(in, (float *)out))

template <bool CORRECT> __global__ static void semaphore_of_a_local_variable(const int *in, int *out, int *semaphore) {
    int mine = 0;
    if (threadIdx.x == 0) semaphore_raise(CORRECT ? semaphore : &mine); // here
    out[threadIdx.x] = in[threadIdx.x] + mine;
}
FAULT(semaphore_of_a_local_variable, cudaErrorIllegalAddress, "not of global memory", FIRST(T, in[i]),
      semaphore_of_a_local_variable<CORRECT><<<1, T>>>(in, out, new_semaphore()))
