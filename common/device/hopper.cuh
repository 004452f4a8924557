/* Single instructions of Hopper (compute capability 9.0, target sm_90a): barriers with transaction counts, copies of tiles by
 * the tensor memory accelerator (TMA), products of a warpgroup, registers that one role gives to another. PTX ISA 8.0,
 * sections 9.7.12 (mbarrier), 9.7.8.24 (cp.async.bulk) and 9.7.14 (wgmma). */
#ifndef HOPPER_CUH
#define HOPPER_CUH

#include <cuda.h>

#include "attention.h"
#include "ptx.cuh"

/* Hopper cards give a block 227 KiB of shared memory. */
constexpr size_t LEAST_SHARED_BYTES_9_0 = 227 * 1024;

constexpr int WARPGROUP = 128; // threads: 4 warps, the first of which is a multiple of 4

/* ---- mbarrier: 8 bytes in shared memory, aligned to 8. A phase ends when `count` arrivals and all announced bytes have come. */
__device__ inline uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ inline void mbarrier_init(uint64_t *barrier, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
}

/* By the thread that initialised them: from here on copies may complete on the barriers. */
__device__ inline void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline void mbarrier_arrive(uint64_t *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

/* Arrive, and announce that copies will bring so many bytes in this phase. */
__device__ inline void mbarrier_arrive_expect(uint64_t *barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

/* Until the phase of this parity has ended: 0 for the first, then in turns. The instruction itself waits for a while. */
__device__ inline void mbarrier_wait(uint64_t *barrier, uint32_t parity) {
    uint32_t ended = 0;
    while (!ended) // a loop of C++: with one inside of the asm, chapter 12 is 5 % slower at d 128
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(ended)
                     : "r"(shared_address(barrier)), "r"(parity)
                     : "memory");
}

/* ---- TMA: one thread has a whole box of a tensor copied. The tensor map says what the tensor and the box are. */

/* Copy the box at (column, row, head) to `tile`; the bytes count at the barrier. Elements outside the tensor become 0. */
__device__ inline void tma_load(void *tile, const CUtensorMap *map, int column, int row, int head, uint64_t *barrier) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
            "r"(shared_address(tile)),
        "l"(map), "r"(column), "r"(row), "r"(head), "r"(shared_address(barrier))
        : "memory");
}

/* Copy `tile` to the box at (column, row, head); what lies outside the tensor is not written. Part of a bulk group. */
__device__ inline void tma_store(const CUtensorMap *map, int column, int row, int head, const void *tile) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(map),
                 "r"(column), "r"(row), "r"(head), "r"(shared_address(tile))
                 : "memory");
}

/* Close a bulk group: the copies that this thread has started since the last commit. */
__device__ inline void tma_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/* Until the thread's bulk groups but for the newest PENDING have read their shared memory. */
template <int PENDING> __device__ inline void tma_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

/* Until they have written global memory, too: before another block may be told so. */
template <int PENDING> __device__ inline void tma_wait() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* ---- bulk copies: one thread has the TMA copy contiguous bytes. Their number and both addresses are multiples
 * of 16. */

/* The bytes count at the barrier. */
__device__ inline void bulk_load(void *to_shared, const void *from, uint32_t bytes, uint64_t *barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to_shared)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

/* Part of a bulk group. */
__device__ inline void bulk_store(void *to_global, const void *from_shared, uint32_t bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to_global),
                 "r"(shared_address(from_shared)), "r"(bytes)
                 : "memory");
}

/* Add the floats to those at `to_global`, each by an atomic addition. Part of a bulk group. */
__device__ inline void bulk_reduce_add(float *to_global, const float *from_shared, uint32_t bytes) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to_global),
                 "r"(shared_address(from_shared)), "r"(bytes)
                 : "memory");
}

/* The stores to shared memory that happen before this fence become visible to the TMA and to wgmma. */
__device__ inline void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* ---- semaphores: an int of global memory, 0 at first, by which blocks take turns. One thread waits or raises it for its block. */

/* Until it has the value. What the raising thread had stored, or seen stored, is visible then. */
__device__ inline void semaphore_wait(const int *semaphore, int value) {
    int seen;
    do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(semaphore) : "memory");
    while (seen != value);
}

__device__ inline void semaphore_raise(int *semaphore) {
    asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(semaphore) : "memory");
}

/* ---- named barriers: ids 1 to 15, of `threads` threads, whole warps. 0 is __syncthreads(). */
__device__ inline void named_barrier_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ inline void named_barrier_arrive(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* True in one lane of the warp, whose 32 lanes must all call: who issues a copy or arrives for the warp. What the other lanes have
 * stored, the elected lane knows after a __syncwarp() only. */
__device__ inline bool elect_one() {
    uint32_t elected;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(elected));
    return elected;
}

/* ---- clusters of two blocks, which run at the same time: each may use the other one's shared memory. */
__device__ inline uint32_t cluster_rank() {
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* The barrier of all threads of the cluster, in two halves. One before the first use of the other block's memory, and one after the
 * last, before the block ends. */
__device__ inline void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }

__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

/* tma_load() into each block of the cluster whose bit is set in `blocks`: the box lies at the same place of their shared memory, and
 * its bytes count at the barrier that lies where `barrier` does. */
__device__ inline void tma_load_multicast(void *tile, const CUtensorMap *map, int column, int row, int head,
                                          uint64_t *barrier, uint16_t blocks) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared_address(tile)),
                 "l"(map), "r"(column), "r"(row), "r"(head), "r"(shared_address(barrier)), "h"(blocks)
                 : "memory");
}

/* Arrive at the barrier that lies where `barrier` does in the block of this rank, this one or the other. What this thread has read by
 * wgmma may be overwritten then. To publish ordinary accesses, use an arrival with .release.cluster, which waits for all earlier stores. */
__device__ inline void mbarrier_arrive_remote(uint64_t *barrier, uint32_t rank) {
    asm volatile("{\n.reg .b32 address;\nmapa.shared::cluster.u32 address, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [address];\n}" ::"r"(shared_address(barrier)),
                 "r"(rank)
                 : "memory");
}

/* ---- registers: a warpgroup gives registers back, or takes some; a multiple of 8 from 24 to 256 per thread. */
template <int REGISTERS> __device__ inline void registers_decrease() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS> __device__ inline void registers_increase() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

/* ---- wgmma: C (64, N) = A (64, 16) B (16, N), or C += A B, by the 128 threads of a warpgroup: 4 warps from a multiple of 4 on.
 * Warp w holds rows 16 w to 16 w + 15 of C and of A as mma_m16n8k16() does, C[n] the columns from 8 n on. A matrix in shared
 * memory is named by a descriptor. B_ROWS_ARE_K: a row of B in memory is one k (V), not one column of C (K). A_ROWS_ARE_K: a row
 * of A in memory is one k, not one row of C. */

/* Before the first wgmma, and after other instructions have written C or the registers of A. */
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/* Until this warp's part of all but the newest PENDING groups is done; the warpgroup's other warps may be behind. */
template <int PENDING> __device__ inline void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* A tile whose rows are 128 bytes, with the TMA's 128-byte swizzle: `tile` is a multiple of 1024 bytes, plus 32 k for the 16
 * columns from 16 k on. Eight rows are 1024 bytes; `panel`: the bytes from one set of 64 columns to the next. */
__device__ inline uint64_t swizzled_tile(const void *tile, uint32_t panel) {
    uint64_t start = shared_address(tile) / 16 & 0x3fff, leading = panel / 16, stride = 1024 / 16, swizzle_128 = 1;
    return start | leading << 16 | stride << 32 | swizzle_128 << 62;
}

/* The registers of C in an instruction, and what they are in C++. */
#define FIRST_32                                                                                                       \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"                                             \
    ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define FIRST_40 FIRST_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define FIRST_48 FIRST_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define FIRST_64 FIRST_48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define FIRST_88                                                                                                       \
    FIRST_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"                        \
             ", %80, %81, %82, %83, %84, %85, %86, %87"
#define C1(n) "+f"(C[n][0]), "+f"(C[n][1]), "+f"(C[n][2]), "+f"(C[n][3])
#define C8(n) C1(n), C1(n + 1), C1(n + 2), C1(n + 3), C1(n + 4), C1(n + 5), C1(n + 6), C1(n + 7)
#define C_64 C8(0)
#define C_80 C_64, C1(8), C1(9)
#define C_96 C_80, C1(10), C1(11)
#define C_128 C_64, C8(8)
#define C_176 C_128, C1(16), C1(17), C1(18), C1(19), C1(20), C1(21)

/* Both products of one type and width: A from shared memory, and A from registers. */
#define WGMMA(T, type, N, registers, fragments, i0, i1, i2, i3, i4, i5, i6)                                            \
    template <bool B_ROWS_ARE_K, bool A_ROWS_ARE_K = false>                                                            \
    __device__ __forceinline__ void wgmma(T, float(&C)[N / 8][4], uint64_t A, uint64_t B, bool add) {                  \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " i2 ", 0;\n"                                                   \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." type "." type " {" registers "}, " i0 ", " i1   \
                     ", p, 1, 1, " i3 ", " i4 ";\n}"                                                                   \
                     : fragments                                                                                       \
                     : "l"(A), "l"(B), "r"((int)add), "n"((int)A_ROWS_ARE_K), "n"((int)B_ROWS_ARE_K));                 \
    }                                                                                                                  \
    template <bool B_ROWS_ARE_K>                                                                                       \
    __device__ __forceinline__ void wgmma(T, float(&C)[N / 8][4], const uint32_t(&A)[4], uint64_t B, bool add) {       \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " i5 ", 0;\n"                                                   \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." type "." type " {" registers "}, {" i0 ", " i1  \
                     ", " i2 ", " i3 "}, " i4 ", p, 1, 1, " i6 ";\n}"                                                  \
                     : fragments                                                                                       \
                     : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "l"(B), "r"((int)add), "n"((int)B_ROWS_ARE_K));     \
    }
WGMMA(__nv_bfloat16, "bf16", 64, FIRST_32, C_64, "%32", "%33", "%34", "%35", "%36", "%37", "%38")
WGMMA(__half, "f16", 64, FIRST_32, C_64, "%32", "%33", "%34", "%35", "%36", "%37", "%38")
WGMMA(__nv_bfloat16, "bf16", 80, FIRST_40, C_80, "%40", "%41", "%42", "%43", "%44", "%45", "%46")
WGMMA(__half, "f16", 80, FIRST_40, C_80, "%40", "%41", "%42", "%43", "%44", "%45", "%46")
WGMMA(__nv_bfloat16, "bf16", 96, FIRST_48, C_96, "%48", "%49", "%50", "%51", "%52", "%53", "%54")
WGMMA(__half, "f16", 96, FIRST_48, C_96, "%48", "%49", "%50", "%51", "%52", "%53", "%54")
WGMMA(__nv_bfloat16, "bf16", 128, FIRST_64, C_128, "%64", "%65", "%66", "%67", "%68", "%69", "%70")
WGMMA(__half, "f16", 128, FIRST_64, C_128, "%64", "%65", "%66", "%67", "%68", "%69", "%70")
WGMMA(__nv_bfloat16, "bf16", 176, FIRST_88, C_176, "%88", "%89", "%90", "%91", "%92", "%93", "%94")
WGMMA(__half, "f16", 176, FIRST_88, C_176, "%88", "%89", "%90", "%91", "%92", "%93", "%94")
#undef WGMMA
#undef C_64
#undef C_80
#undef C_96
#undef C_128
#undef C_176
#undef C1
#undef C8
#undef FIRST_32
#undef FIRST_40
#undef FIRST_48
#undef FIRST_64
#undef FIRST_88

/* ---- host: tensor maps. The map of a (heads, rows, d) matrix of 16-bit elements, for boxes of 64 columns and box_rows rows of one
 * head: in shared memory 128 bytes per row, in the 128-byte swizzle. d is a multiple of 8. The driver's function is looked up by
 * the runtime, so that programs need not link the driver's library. */
inline cudaError_t make_tensor_map(CUtensorMap *map, enum dtype dtype, const void *matrix, int heads, int rows, int d,
                                   int box_rows) {
    void *function;
    cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
#else
    cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found);
#endif
    if (error != cudaSuccess) return error;
    if (found != cudaDriverEntryPointSuccess) return cudaErrorNotSupported;
    cuuint64_t sizes[] = {(cuuint64_t)d, (cuuint64_t)rows, (cuuint64_t)heads};
    cuuint64_t strides[] = {2 * sizes[0], 2 * sizes[0] * sizes[1]}; // bytes from row to row, from head to head
    cuuint32_t box[] = {64, (cuuint32_t)box_rows, 1}, every[] = {1, 1, 1};
    CUresult result = ((decltype(&cuTensorMapEncodeTiled))function)(
        map, dtype == BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, (void *)matrix,
        sizes, strides, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

#endif
