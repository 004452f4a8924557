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
